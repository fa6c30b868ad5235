"""What tells whether the key opens the organisation in which the sandboxes belong."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.domain.timings import Timings
from issuesandbox.engine.organization import Homes, KeyCheck, WrongOrganization
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes

T = Timings()


def put(homes: Homes, uid: str, home: str | None, sandbox: str | None = "sb") -> ResourceKey:
    key = ResourceKey("team", f"name-{uid}", uid)
    told: dict[str, Any] = {"id": sandbox, "organizationId": home}
    homes.put(key, {"status": {"sandbox": told}})
    return key


class TestHomes:
    def test_only_who_has_a_sandbox_counts(self) -> None:
        homes = Homes()
        homes.put(ResourceKey("team", "blank", "0"), {})
        put(homes, "1", "org-a", sandbox=None)
        assert not homes
        assert homes.instead_of("org-b") is None

    def test_one_at_home_is_enough_and_else_most_tell(self) -> None:
        homes = Homes()
        put(homes, "1", "org-a")
        put(homes, "2", "org-c")
        put(homes, "3", "org-c")
        assert homes.instead_of("org-b") == "org-c"
        assert homes.instead_of("org-a") is None

    def test_who_moves_or_goes_counts_no_more(self) -> None:
        homes = Homes()
        moved, gone = put(homes, "1", "org-a"), put(homes, "2", "org-a")
        put(homes, "1", "org-a")
        homes.drop(gone)
        homes.drop(gone)
        assert homes.instead_of("org-b") == "org-a"
        put(homes, moved.uid, "org-b")
        assert homes.instead_of("org-b") is None
        put(homes, moved.uid, None, sandbox=None)
        assert not homes


class Daytona:
    """Tells one thing only, and counts how often."""

    def __init__(self) -> None:
        self.opens, self.asked = "org-a", 0
        self.meanwhile = lambda: None

    async def organization(self) -> str:
        self.asked += 1
        opens = self.opens
        self.meanwhile()
        return opens


class TestKeyCheck:
    def setup_method(self) -> None:
        self.daytona, self.homes, self.time = Daytona(), Homes(), FakeTime()
        clock, sandboxes = FakeClock(self.time), cast("Sandboxes", self.daytona)
        self.check = KeyCheck(sandboxes, self.homes, clock, T)

    def ask(self, known: str | None = None) -> None:
        asyncio.run(self.check.check(known))

    def test_nobody_is_asked_while_nothing_is_known(self) -> None:
        self.ask()
        assert self.daytona.asked == 0

    def test_it_is_asked_once_in_a_while_whatever_the_answer(self) -> None:
        put(self.homes, "1", "org-b")
        for _ in range(3):
            with pytest.raises(WrongOrganization, match="org-b"):
                self.ask()
        assert self.daytona.asked == 1
        self.time.seconds += T.organization_cache.total_seconds()
        put(self.homes, "1", "org-a")
        self.ask()
        self.ask("org-a")
        assert self.daytona.asked == 2

    def test_a_new_key_is_asked_for_at_once(self) -> None:
        self.ask("org-a")
        self.daytona.opens = "org-b"
        self.check.changed()
        with pytest.raises(WrongOrganization, match="restore the key"):
            self.ask("org-a")

    def test_an_answer_to_the_old_key_is_not_believed_of_the_new_one(self) -> None:
        self.daytona.meanwhile = self.check.changed
        with pytest.raises(Unavailable):
            self.ask("org-a")
        self.daytona.meanwhile = lambda: None
        self.ask("org-a")
        assert self.daytona.asked == 2
