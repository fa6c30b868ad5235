"""The scripted agent: a stand-in for the `claude` command line that costs nothing and never varies.

`scripted/` is the program itself. The rest of this package puts it where people and sandboxes
find it.
"""
