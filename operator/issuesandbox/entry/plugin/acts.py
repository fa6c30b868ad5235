"""Verbs about runs: run, stop, retry and continue. Each is one guarded patch of the spec."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

import click

from issuesandbox.api.names import API_VERSION, KIND
from issuesandbox.domain.webhook.resource_names import resource_name
from issuesandbox.entry.plugin.choice import (
    Chosen,
    change_each,
    chosen_resources,
    namespace_option,
    operator_option,
    output_option,
    tell,
)
from issuesandbox.entry.plugin.cluster import Body, Cluster, MissingError
from issuesandbox.entry.plugin.settings_status import in_force
from issuesandbox.entry.plugin.until import Rules

_ISSUE = re.compile(r"([\w.-]+/[\w.-]+)#([1-9]\d*)", re.ASCII)
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)
_BAD_RESULTS = ("Failed", "Cancelled", "TimedOut")


@click.command()
@chosen_resources
@operator_option
@output_option
def stop(chosen: Chosen, operator_namespace: str, output: str) -> None:
    """End the run and stop the sandbox, of resources NAMES or of all with --all.

    `run` starts them again; back to Running alone repeats nothing.
    """
    rules = Rules.of(in_force(chosen.cluster, operator_namespace).settings)

    def told(body: Body) -> str:
        deafness = rules.deafness(body)
        return f"told to stop, but {deafness}" if deafness is not None else "told to stop"

    change_each(chosen, stopping, told, output)


def stopping(body: Body) -> dict[str, Any] | None:
    """Return the patch that ends the run and stops the sandbox; None where that is told."""
    stopped = body["spec"].get("desiredState") == "Stopped"
    return None if stopped else {"spec": {"desiredState": "Stopped"}}


@click.command()
@click.argument("target")
@click.option("--prompt", help="Instructions for the agent beside the issue.")
@namespace_option
@output_option
def run(target: str, prompt: str | None, namespace: str | None, output: str) -> None:
    """Start a run of TARGET: a resource's name, or an issue such as octocat/hello-world#12.

    For an issue that has no resource here yet, one is created.
    """
    cluster = Cluster.load()
    home = namespace or cluster.namespace
    issue = _ISSUE.fullmatch(target)
    if issue is None and not _NAME.fullmatch(target):
        raise click.UsageError(f"{target} is neither a name nor an issue such as owner/name#12.")
    told = "run asked for"
    try:
        body = cluster.change(home, target, lambda _: _asked(prompt))
    except MissingError:
        if issue is None:
            raise
        body = cluster.create(home, _resource(issue[1], int(issue[2]), prompt))
        told = "created, with one run"
    tell([{"namespace": home, "name": body["metadata"]["name"], "result": told}], output)


@click.command()
@chosen_resources
@output_option
def retry(chosen: Chosen, output: str) -> None:
    """Run again what failed, was cancelled or ran out of time."""

    def decide(body: Body) -> dict[str, Any]:
        past = (body.get("status") or {}).get("run") or {}
        if past.get("outcome") not in _BAD_RESULTS:
            raise click.ClickException(_no_retry(body, past.get("outcome")))
        return _asked(None)

    change_each(chosen, decide, lambda _: "run asked for", output)


@click.command("continue")
@click.argument("name")
@click.argument("message")
@namespace_option
@output_option
def continue_run(name: str, message: str, namespace: str | None, output: str) -> None:
    """Send the agent of NAME a follow-up MESSAGE, in the same sandbox and session."""
    cluster = Cluster.load()
    home = namespace or cluster.namespace
    body = cluster.change(home, name, follow_up(name, message))
    tell(
        [{"namespace": home, "name": body["metadata"]["name"], "result": "follow-up sent"}], output
    )


def follow_up(name: str, message: str) -> Callable[[Body], dict[str, Any]]:
    """Return what makes the patch that sends a follow-up to the agent of `name`."""
    if not message.strip():
        raise click.UsageError("The message is empty.")

    def decide(body: Body) -> dict[str, Any]:
        if not (body.get("status") or {}).get("run"):
            raise click.ClickException(f"{name} had no run yet; use `kubectl isb run {name}`")
        return _asked(message)

    return decide


def _asked(prompt: str | None) -> dict[str, Any]:
    """Return the patch that starts a run: any new trigger does."""
    return {"spec": {"desiredState": "Running", "run": _run(prompt)}}


def _run(prompt: str | None) -> dict[str, str]:
    trigger = {"trigger": f"kubectl-{secrets.token_hex(6)}"}
    return {**trigger, "prompt": prompt} if prompt else trigger


def _resource(repository: str, number: int, prompt: str | None) -> Body:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": resource_name(repository, number)},
        "spec": {"issue": {"repository": repository, "number": number}, "run": _run(prompt)},
    }


def _no_retry(body: Body, outcome: str | None) -> str:
    name = body["metadata"]["name"]
    if outcome is None and (body.get("status") or {}).get("run"):
        return f"the run of {name} goes on; stop it first"
    if outcome is None:
        return f"{name} had no run yet; use `kubectl isb run {name}`"
    return f"the last run of {name} succeeded; use `kubectl isb run {name}` for another"
