"""`kubectl isb why`: what a resource waits for and until when, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import click

from issuesandbox.api.names import ANNOTATION_PAUSED, FREEZE_MAP
from issuesandbox.clock import SystemClock
from issuesandbox.domain.admission import Limits, rank
from issuesandbox.domain.naming import generation
from issuesandbox.engine.cache import key_of
from issuesandbox.engine.candidates import registered
from issuesandbox.entry.output import print_json, printable
from issuesandbox.entry.plugin.choice import namespace_option, operator_option, output_option
from issuesandbox.entry.plugin.cluster import Body, Cluster, issue_of
from issuesandbox.entry.plugin.settings_status import in_force
from issuesandbox.entry.plugin.shape import (
    conditions_of,
    moment,
    phase_of,
    run_of,
    span,
    status_of,
)
from issuesandbox.entry.plugin.until import Rules, waits

_ENDLESS = 1_000_000


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around a resource and may hold it up."""

    now: datetime | None = None
    frozen: str | None = None
    settings_problem: str | None = None
    others: Sequence[Body] = field(default_factory=tuple)
    settings: Mapping[str, str] | None = None


@click.command()
@click.argument("name")
@namespace_option
@operator_option
@output_option
def why(name: str, namespace: str | None, operator_namespace: str, output: str) -> None:
    """Say in plain words what NAME waits for, and until when."""
    cluster = Cluster.load()
    body = cluster.get(namespace or cluster.namespace, name)
    lines = list(reasons(body, look_around(cluster, operator_namespace, body)))
    if output == "json":
        print_json({"issue": issue_of(body), "phase": phase_of(body), "reasons": lines})
        return
    for line in lines:
        click.echo(printable(line))


def look_around(cluster: Cluster, operator_namespace: str, body: Body) -> Surroundings:
    """Look at what the caller may see; what they may not is left out."""
    freeze = cluster.peek(operator_namespace, FREEZE_MAP)
    stored = in_force(cluster, operator_namespace)
    try:
        # Only who waits in a queue needs to know the others: there may be thousands.
        others = cluster.list(None) if _is_queued(body) else []
    except click.ClickException:
        others = []
    return Surroundings(
        now=SystemClock().now(),
        frozen=None if freeze is None else freeze.get("reason", "no reason given"),
        settings_problem=stored.problem,
        others=others,
        settings=stored.settings,
    )


def reasons(body: Body, around: Surroundings | None = None) -> Iterator[str]:
    """Yield the answer to "why is it not running", the most important line first."""
    around = around or Surroundings()
    conditions = conditions_of(body)
    ready = conditions.get("Ready")
    if ready is None:
        yield f"{issue_of(body)}: no operator has looked at it yet; is one running?"
    else:
        yield f"{issue_of(body)} is {phase_of(body)}: {ready['message']}"
    yield from _held_up(body, around)
    for kind, held in (("Admitted", "False"), ("Synced", "False"), ("DeletionStuck", "True")):
        condition = conditions.get(kind, {})
        if condition.get("status") == held and condition["message"] != (ready or {}).get("message"):
            yield f"{kind} {condition['reason']}: {condition['message']}"
    if _is_queued(body):
        yield from _place_in_line(body, around)
    yield from _open_steps(body, around.now)
    if around.now is not None:
        yield from waits(body, Rules.of(around.settings), around.now)


def _is_queued(body: Body) -> bool:
    return conditions_of(body).get("Admitted", {}).get("reason") == "Queued"


def _held_up(body: Body, around: Surroundings) -> Iterator[str]:
    metadata = body["metadata"]
    if around.frozen is not None:
        yield f"Everything is frozen: {around.frozen}. `kubectl isb unfreeze` lifts it."
    if (metadata.get("annotations") or {}).get(ANNOTATION_PAUSED) == "true":
        yield "It is paused; `kubectl isb resume` lets it go on."
    if body["spec"].get("desiredState") == "Stopped":
        yield "It is told to be stopped; `kubectl isb run` starts it again."
    if around.settings_problem is not None:
        yield f"The operator works with older settings: {around.settings_problem}"
    seen, present = status_of(body).get("observedGeneration"), metadata.get("generation")
    if seen is not None and present is not None and seen < present:
        yield "The operator has not looked at the last edit yet."


def _place_in_line(body: Body, around: Surroundings) -> Iterator[str]:
    """Rank all resources as the operator does; the place in the status may be old."""
    if around.now is None or not around.others:
        return
    candidates = [registered(key_of(each), each) for each in around.others]
    # As if all places were taken: the order of the line does not depend on their number.
    taken = sum(each.live for each in candidates)
    verdicts = rank(candidates, Limits(taken, _ENDLESS, _ENDLESS), around.now)
    line = [each.position for each in verdicts.values() if each.position is not None]
    verdict = verdicts.get(body["metadata"]["uid"])
    if verdict is not None and verdict.position is not None:
        yield f"It is number {verdict.position} of {len(line)} in the queue right now."


def _open_steps(body: Body, now: datetime | None) -> Iterator[str]:
    status, run = status_of(body), run_of(body)
    intent = status.get("intent")
    if intent:
        what = "run" if intent["kind"] == "StartRun" else f"{intent['kind'].lower()} its sandbox"
        yield f"Since {intent['at']} it wants to {what}."
    if status.get("stopRequestedAt") and not run.get("outcome"):
        yield f"A stop is being carried out since {status['stopRequestedAt']}."
    if run and not run.get("outcome"):
        for name, at in (run.get("deadlines") or {}).items():
            end = moment(at)
            left = f", in {span(end - now)}" if end is not None and now is not None else ""
            yield f"The {name} limit ends at {at}{left}."
    waiting = [each["id"] for each in status.get("retired", ()) if "goneAt" not in each]
    if waiting:
        yield f"Earlier sandboxes that are not confirmed gone: {', '.join(waiting)}."
    name = (status.get("sandbox") or {}).get("name") or ""
    if generation(name) > 1:
        why = "an earlier sandbox could not be deleted and kept its name"
        yield f"It is called {name} because {why}."
