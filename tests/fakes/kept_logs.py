"""Logs of the test run itself, kept while a test sets up those of the operator."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from issuesandbox.entry.logs import set_levels


@contextmanager
def kept_logs() -> Iterator[None]:
    """Put handlers, levels and hooks back at the end."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    factory = logging.getLogRecordFactory()
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield
        logging.captureWarnings(False)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    logging.setLogRecordFactory(factory)
    set_levels("WARNING")
    root.handlers[:] = handlers
    root.setLevel(level)
