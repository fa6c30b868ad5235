"""The scripted agent as one self-contained program.

Only the standard library, and only relative imports: a sandbox runs this folder as it lies on
disk (`python -I path/to/scripted`). It must know nothing of the operator that starts it.
"""
