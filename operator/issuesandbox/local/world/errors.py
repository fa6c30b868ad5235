"""What goes wrong with a local world, in one line each."""

from __future__ import annotations

import click


class WorldError(click.ClickException):
    """A local world cannot start, or something in it ended by itself."""
