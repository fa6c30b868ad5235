"""The one way in which the control plane says no.

A click exception, so that every command shows it as one line with exit code 1.
"""

from __future__ import annotations

import click


class ControlPlaneError(click.ClickException):
    """What is wrong, with which object, and what to do next, in one line."""

    def __str__(self) -> str:
        """Return the line itself, also where no command shows it."""
        return self.message
