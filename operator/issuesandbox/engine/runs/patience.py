"""Which failures of a call are worth no patience; how long to be patient, each caller knows."""

from __future__ import annotations

from issuesandbox.ports.errors import Denied, Invalid, NotFound

# What no repetition changes.
FINAL = (NotFound, Denied, Invalid)
