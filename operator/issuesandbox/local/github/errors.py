"""What stops the simulator before it serves: one line each, for the person who started it.

Knows nothing of HTTP answers; those are in answers.py.
"""

from __future__ import annotations


class SimulatorError(Exception):
    """The simulator cannot start or go on; the message says what to do."""


class StateInUseError(SimulatorError):
    """Another simulator works on the same state folder."""


class StateDamagedError(SimulatorError):
    """The state folder cannot be read and was left as it is."""
