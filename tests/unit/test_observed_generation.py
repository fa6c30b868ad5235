"""Conditions answer the edit they were seen for: `kubectl wait` neither hangs nor comes early."""

from __future__ import annotations

from tests.fakes.world import World

PLACE = ("team", "one")
FINISHED = {
    "type": "Finished",
    "status": "True",
    "reason": "Succeeded",
    "message": "Done.",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
    "observedGeneration": 1,
}
RUN = {
    "id": "r1",
    "trigger": "1",
    "phase": "Finished",
    "outcome": "Succeeded",
    "startedAt": "2030-01-01T00:00:00Z",
    "finishedAt": "2030-01-01T00:00:00Z",
}


def finished(world: World) -> tuple[int, int]:
    """Return the generation of the resource, and the one that the end was seen for."""
    body = world.kube.find(*PLACE)
    assert body is not None
    (condition,) = (each for each in body["status"]["conditions"] if each["type"] == "Finished")
    return body["metadata"]["generation"], condition["observedGeneration"]


def test_the_end_of_a_run_answers_edits_that_ask_for_no_other_and_only_those() -> None:
    world = World()
    issue = {"repository": "octo/hello", "number": 7}
    world.kube.create(*PLACE, {"issue": issue, "run": {"trigger": "1"}})
    world.kube.edit(*PLACE, {"status": {"run": RUN, "conditions": [FINISHED]}})
    world.kube.edit(*PLACE, {"spec": {"desiredState": "Stopped"}})
    world.live(60)
    generation, seen = finished(world)
    assert generation > 1
    assert seen == generation, "`kubectl wait --for=condition=Finished` would wait for ever"
    world.kube.edit(*PLACE, {"spec": {"desiredState": "Running", "run": {"trigger": "2"}}})
    world.live(60)
    generation, seen = finished(world)
    assert seen < generation, "`kubectl wait` would not wait for the run that was asked for"
