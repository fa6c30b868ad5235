"""Verbs that mark a resource: pause, resume and keep."""

from __future__ import annotations

from typing import Any

import click

from issuesandbox.api.names import ANNOTATION_PAUSED, LABEL_KEEP
from issuesandbox.entry.plugin.choice import Chosen, change_each, chosen_resources, output_option
from issuesandbox.entry.plugin.cluster import Body


@click.command()
@chosen_resources
@output_option
def pause(chosen: Chosen, output: str) -> None:
    """Let the operator leave NAMES alone; what was asked to end still ends."""
    _mark(chosen, "annotations", ANNOTATION_PAUSED, "true", ("paused", output))


@click.command()
@chosen_resources
@output_option
def resume(chosen: Chosen, output: str) -> None:
    """End a pause of NAMES."""
    _mark(chosen, "annotations", ANNOTATION_PAUSED, None, ("resumed", output))


@click.command()
@chosen_resources
@click.option("--off", is_flag=True, help="Keep it no longer.")
@output_option
def keep(chosen: Chosen, off: bool, output: str) -> None:
    """Keep NAMES from being deleted some time after they finished."""
    told = "kept no longer" if off else "kept"
    _mark(chosen, "labels", LABEL_KEEP, None if off else "true", (told, output))


def _mark(chosen: Chosen, kind: str, name: str, value: str | None, answer: tuple[str, str]) -> None:
    def decide(body: Body) -> dict[str, Any] | None:
        if (body["metadata"].get(kind) or {}).get(name) == value:
            return None
        return {"metadata": {kind: {name: value}}}

    told, output = answer
    change_each(chosen, decide, lambda _: told, output)
