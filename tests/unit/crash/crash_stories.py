"""Lives of a resource, told step by step, for tests that disturb them at every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.daytona import Row
from tests.fakes.operator_process import INSTALLATION
from tests.fakes.world import World

Step = Callable[[World], None]
PLACE = ("team", "hello")


def create(world: World, **spec: Any) -> None:
    world.kube.create(*PLACE, {"issue": {"repository": "octo/hello", "number": 7}, **spec})


def create_announced(world: World) -> None:
    """Make a resource as the webhook adapter does, when an operator has long been in charge."""
    world.live(60.0)
    spec = {"issue": {"repository": "octo/hello", "number": 7}}
    world.kube.create(*PLACE, spec, announced="claude-issue-7")


def create_orphaning(world: World) -> None:
    create(world, deletionPolicy="Orphan")


def create_for_runs(world: World) -> None:
    create(world, run={"trigger": "1"}, cleanup={"ttlAfterFinished": "1h"})


def fail_run(world: World) -> None:
    world.kube.finish_run(*PLACE, "Failed")


def run_again(world: World) -> None:
    world.kube.edit(*PLACE, {"spec": {"run": {"trigger": "2"}}})


def succeed(world: World) -> None:
    world.kube.finish_run(*PLACE, "Succeeded")


def grow_old(world: World) -> None:
    world.live(3_700.0)


def delete(world: World) -> None:
    world.kube.delete(*PLACE)


def want_stopped(world: World) -> None:
    world.kube.edit(*PLACE, {"spec": {"desiredState": "Stopped"}})


def want_running(world: World) -> None:
    world.kube.edit(*PLACE, {"spec": {"desiredState": "Running"}})


def stop_behind_its_back(world: World) -> None:
    world.daytona.rest(_own(world), "stopped")


def vanish(world: World) -> None:
    world.daytona.vanish(_own(world))


def fail_recoverably(world: World) -> None:
    world.daytona.break_down(_own(world), recoverable=True)


def break_for_good(world: World) -> None:
    world.daytona.break_down(_own(world), recoverable=False)


def plant_foreign(world: World) -> None:
    world.daytona.plant("claude-issue-7", {"team": "other"})


def wipe_status(world: World) -> None:
    world.kube.edit(*PLACE, {"status": None})


STORIES: dict[str, tuple[Step, ...]] = {
    "life": (
        create,
        stop_behind_its_back,
        vanish,
        fail_recoverably,
        break_for_good,
        want_stopped,
        want_running,
        delete,
    ),
    "collision": (plant_foreign, create, break_for_good, wipe_status, delete),
    "announced": (create_announced, vanish, wipe_status, want_stopped, want_running, delete),
    "announced, collision": (plant_foreign, create_announced, break_for_good, wipe_status, delete),
    "cleanup": (create_for_runs, fail_run, run_again, succeed, grow_old),
    "adoption": (create_orphaning, delete, create, vanish, delete),
}


@dataclass(frozen=True)
class Chapter:
    """How the world looks at the end of a step."""

    step: str
    resource: tuple[Any, ...] | None
    live: tuple[tuple[str, str | None], ...]


def tell(world: World, story: str) -> list[Chapter]:
    """Live through a story; return how the world looked at the end of each step."""
    chapters = []
    for step in STORIES[story]:
        step(world)
        world.settle()
        chapters.append(_chapter(world, step.__name__))
    return chapters


def _chapter(world: World, step: str) -> Chapter:
    body = world.kube.find(*PLACE)
    live = tuple(sorted((row.view.name, row.view.state) for row in world.daytona.live()))
    if body is None:
        return Chapter(step, None, live)
    status = body["status"]
    ready = next(each for each in status["conditions"] if each["type"] == "Ready")
    shown = (
        status["phase"],
        ready["status"],
        ready["reason"],
        status["sandbox"]["name"],
        status["sandbox"]["attempt"],
    )
    return Chapter(step, shown, live)


def _own(world: World) -> Row:
    (row,) = world.daytona.live(installation=INSTALLATION)
    return row
