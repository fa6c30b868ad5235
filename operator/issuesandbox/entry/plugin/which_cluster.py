"""Which cluster a verb is about: kubectl's options `--kubeconfig` and `--context`."""

from __future__ import annotations

from dataclasses import dataclass

import click

_KEY = "issuesandbox.which-cluster"


@dataclass(frozen=True, slots=True)
class Which:
    """The kubeconfig and its context; None means what kubectl would take."""

    kubeconfig: str | None = None
    context: str | None = None


def which_cluster() -> Which:
    """Return what the caller of the present command said."""
    context = click.get_current_context(silent=True)
    said = context.meta.get(_KEY, {}) if context is not None else {}
    return Which(**said)


def cluster_options() -> list[click.Option]:
    """Return the options that every verb has."""
    return [
        _option("kubeconfig", "File to use instead of KUBECONFIG."),
        _option("context", "Context of the kubeconfig. Default: its current one."),
    ]


def _option(name: str, text: str) -> click.Option:
    return click.Option([f"--{name}"], help=text, expose_value=False, callback=_remember)


def _remember(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta.setdefault(_KEY, {})[option.name] = value
