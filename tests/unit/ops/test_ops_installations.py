"""Two operators that were given one id: neither takes the other's sandboxes, and it is told."""

from __future__ import annotations

from issuesandbox.domain.naming import Identity, Ownership
from issuesandbox.domain.orphans import Scope


def identity(home: str, uid: str = "u1") -> Identity:
    return Identity("same", "team", "one", uid, "octo/hello", 1, home)


def test_a_sandbox_of_the_other_operator_is_foreign_though_the_id_is_the_same() -> None:
    theirs = identity("their-home", "u2").labels("claude-issue-1", 1)
    assert identity("our-home").ownership(theirs) is Ownership.FOREIGN
    assert not Scope("same", (), "our-home").covers(theirs), "the reaper leaves it alone"


def test_a_leftover_of_our_own_is_still_adopted_and_reaped() -> None:
    leftover = identity("our-home", "u2").labels("claude-issue-1", 1)
    assert identity("our-home").ownership(leftover) is Ownership.KIN
    assert Scope("same", (), "our-home").covers(leftover)


def test_a_sandbox_of_an_older_version_has_no_home_and_stays_ours() -> None:
    older = identity("", "u2").labels("claude-issue-1", 1)
    assert identity("our-home").ownership(older) is Ownership.KIN
    assert Scope("same", (), "our-home").covers(older)


def test_an_operator_that_moved_keeps_the_sandboxes_of_its_resources() -> None:
    before = identity("old-home").labels("claude-issue-1", 1)
    assert identity("new-home").ownership(before) is Ownership.OURS
