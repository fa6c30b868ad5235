"""The process's memory, put in order once everything that stays is there."""

from __future__ import annotations

import ctypes
import gc


def settle_memory() -> None:
    """Keep what lives now out of the collector's way, and give back what is free."""
    gc.collect()
    gc.freeze()
    # Reading thousands of resources leaves holes; only the GNU library can be asked to close them.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
