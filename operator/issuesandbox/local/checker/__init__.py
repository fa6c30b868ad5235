"""The invariant checker: reads what everybody saw and names every promise that was broken.

`check(evidence)` is pure; `guarded(...)` records, collects and checks around a block.
"""
