"""A key of another organisation proves nothing, whatever it shows and whenever it comes."""

from __future__ import annotations

import pytest
from tests.fakes.daytona import ELSEWHERE, HOME, Outage
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create

from issuesandbox.api.names import ANNOTATION_FORCE_FINALIZE
from issuesandbox.domain.naming import sandbox_name

NAME = "claude-issue-7"


def served(world: World) -> str:
    """Return the sandbox of a resource that has all that it asks for."""
    create(world)
    world.settle()
    (row,) = world.daytona.live()
    return row.view.id


def change_key(world: World, outage: Outage) -> None:
    """Let the operator go on with a key of another organisation, or with the right one again."""
    world.daytona.outage = outage
    world.operators[0].change_key()


def homes(world: World) -> dict[str, str]:
    return {
        row.view.id: row.view.organization_id for row in world.daytona.live() if not row.foreign
    }


@pytest.mark.parametrize("deleted", [False, True], ids=["wanted", "deleted"])
@pytest.mark.parametrize("restarted", [False, True], ids=["live", "restarted"])
def test_a_namesake_in_the_other_organisation_changes_nothing(
    restarted: bool, deleted: bool
) -> None:
    # R18
    world = World()
    sandbox = served(world)
    world.daytona.plant(NAME, {}, ELSEWHERE)
    change_key(world, Outage.OTHER_ORGANIZATION)
    if restarted:
        world.restart(world.operators[0])
    if deleted:
        world.kube.delete(*PLACE)
    world.live(300.0)
    assert homes(world) == {sandbox: HOME}
    body = world.kube.find(*PLACE)
    assert body is not None, "the resource was let go though its sandbox lives"
    change_key(world, Outage.NONE)
    world.settle()
    assert homes(world) == ({} if deleted else {sandbox: HOME})


def test_what_the_old_key_opened_is_not_believed_of_the_new_one() -> None:
    world = World()
    served(world)
    # Something is absent, so that the organisation is looked up and remembered.
    (row,) = world.daytona.live()
    world.daytona.vanish(row)
    world.live(40.0)
    (row,) = world.daytona.live()
    change_key(world, Outage.OTHER_ORGANIZATION)
    world.live(120.0)
    assert homes(world) == {row.view.id: HOME}


def test_an_absence_counts_for_one_sandbox_only() -> None:
    # R18: the first look at the second sandbox finds nothing, as the last one at the first did.
    world = World()
    served(world)
    world.kube.edit(*PLACE, {"spec": {"desiredState": "Stopped"}})
    (row,) = world.daytona.live()
    world.daytona.vanish(row)
    world.live(60.0)
    world.daytona.shy = True
    world.kube.edit(*PLACE, {"spec": {"desiredState": "Running"}})
    world.live(60.0)
    creates = [each for each in world.network.journal if each.verb == "create"]
    assert len(creates) == 2, "one was lost, so one was made"
    world.heal()
    world.settle()


def test_what_was_given_up_and_is_found_again_is_not_deleted() -> None:
    world = World()
    sandbox = served(world)
    given_up = {"id": sandbox, "name": NAME, "reason": "Gone", "at": "2030-01-01T00:00:00Z"}
    wiped = {"sandbox": {"id": None, "name": NAME}, "retired": [given_up]}
    world.kube.edit(*PLACE, {"status": wiped})
    world.settle()
    assert homes(world) == {sandbox: HOME}
    body = world.kube.find(*PLACE)
    assert body is not None
    assert not body["status"].get("retired")


NEW = ("team", "new")


def create_new(world: World, *, announced: bool = False) -> None:
    """Make another resource, as a user does or as the webhook adapter does."""
    name = sandbox_name(8) if announced else ""
    world.kube.create(*NEW, {"issue": {"repository": "octo/hello", "number": 8}}, name)


def synced(world: World) -> tuple[str, str]:
    body = world.kube.find(*NEW)
    assert body is not None
    said = next(each for each in body["status"]["conditions"] if each["type"] == "Synced")
    return said["reason"], said["message"]


@pytest.mark.parametrize("announced", [False, True], ids=["applied", "announced"])
@pytest.mark.parametrize("restarted", [False, True], ids=["live", "restarted"])
def test_a_first_sandbox_is_not_made_where_none_of_the_others_is(
    restarted: bool, announced: bool
) -> None:
    # R18: back home nobody would see it, and its name would be taken there for ever.
    world = World()
    sandbox = served(world)
    world.live(60.0)
    change_key(world, Outage.OTHER_ORGANIZATION)
    if restarted:
        world.restart(world.operators[0])
    create_new(world, announced=announced)
    world.live(300.0)
    assert homes(world) == {sandbox: HOME}
    reason, message = synced(world)
    assert reason == "WrongOrganization"
    assert f"put the key of {HOME} back" in message
    assert f"move to {ELSEWHERE} on purpose" in message
    change_key(world, Outage.NONE)
    world.settle()
    assert set(homes(world).values()) == {HOME}
    assert len(homes(world)) == 2


def test_whoever_waits_for_the_right_key_may_be_deleted_meanwhile() -> None:
    world = World()
    sandbox = served(world)
    change_key(world, Outage.OTHER_ORGANIZATION)
    create_new(world)
    world.live(60.0)
    world.kube.delete(*NEW)
    world.live(60.0)
    assert world.kube.find(*NEW) is None
    assert homes(world) == {sandbox: HOME}


def test_a_move_goes_on_once_nobody_has_a_sandbox_in_the_old_organisation() -> None:
    world = World()
    served(world)
    change_key(world, Outage.OTHER_ORGANIZATION)
    create_new(world)
    world.live(60.0)
    world.kube.witness = lambda before, after: None  # what is left behind is left on purpose
    world.kube.edit(*PLACE, {"metadata": {"annotations": {ANNOTATION_FORCE_FINALIZE: "true"}}})
    world.kube.delete(*PLACE)
    world.live(60.0)
    body = world.kube.find(*NEW)
    assert body is not None
    assert body["status"]["sandbox"]["organizationId"] == ELSEWHERE


def test_the_first_of_all_asks_nobody_where_it_belongs() -> None:
    world = World()
    world.daytona.outage = Outage.OTHER_ORGANIZATION
    served(world)
    asked = [each for each in world.network.journal if each.verb == "organization"]
    assert asked == []
