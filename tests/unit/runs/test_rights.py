"""The right to push: asked for before a push is decided, once, and clearly refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status_run import Outcome
from issuesandbox.clock import SystemClock
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.runs.agents import hidden_values
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.collecting import Collector
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.publishing import Publisher
from issuesandbox.engine.runs.sources import Hopeless, destination, source_of
from issuesandbox.ports.errors import CallError, Denied, NotFound, Unavailable
from issuesandbox.ports.github import PullView, RepositoryView, Token
from issuesandbox.ports.resources import ResourceKey

URL = "https://github.example/octo/hello.git"
COMMIT = "c" * 40
ELSEWHERE = "https://elsewhere.example/octo/hello.git"


class Hub:
    """A GitHub that mints tokens, or fails to; and a remote that has the commit already."""

    def __init__(self, failure: CallError | None = None, *, private: bool = False) -> None:
        self.failure = failure
        self.private = private
        self.minted = 0
        self.revoked: set[str] = set()
        self.refs_elsewhere: dict[str, str] | CallError = {}
        self.password: str | None = None
        self.more: dict[str, str] = {}
        self.desired_state = "Stopped"
        self.pull: PullView | None = None

    async def repository(self, name: str) -> RepositoryView:
        return RepositoryView(name, "main", URL, self.private)

    async def write_token(self, _: str) -> Token:
        if self.failure is not None:
            raise self.failure
        self.minted += 1
        return Token(f"token-{self.minted}")

    async def branch_tip(self, _: str, branch: str) -> str | None:
        return COMMIT if branch == "main" else None

    async def open_pull(self, *_: str) -> PullView | None:
        return self.pull

    async def read_token(self, _: str) -> Token | None:
        return await self.write_token(_)

    async def refs(self, url: str, token: Token) -> dict[str, str]:
        if token.value in self.revoked:
            raise Denied("401")
        if url == ELSEWHERE:
            assert token.value == self.password
            if isinstance(self.refs_elsewhere, CallError):
                raise self.refs_elsewhere
            return self.refs_elsewhere
        assert (url, token.value) == (URL, f"token-{self.minted}")
        return {"refs/heads/work": COMMIT}

    async def get(self, _: ResourceKey) -> Any:
        fresh = assignment(spec={"desiredState": self.desired_state}).resource
        return fresh.model_dump(by_alias=True)

    async def secret(self, *_: str) -> Any:
        if self.password is None:
            raise NotFound("no such Secret")
        return {"password": self.password, **self.more}


def assignment(**parts: Any) -> Assignment:
    body = {
        "metadata": {"name": "one", "namespace": "team", "uid": "u-1"},
        "spec": {
            "issue": {"repository": "octo/hello", "number": 1},
            "run": {"trigger": "1"},
            **parts.get("spec", {}),
        },
        "status": {
            "run": {
                "id": "r1",
                "phase": "Publishing",
                "startedAt": "2030-01-01T00:00:00Z",
                "branch": "work",
                "publish": {"commit": COMMIT, "old": "0" * 40, "at": "2030-01-01T00:00:00Z"},
            }
        },
    }
    resource = IssueSandbox.model_validate(body)
    return Assignment(
        ResourceKey("team", "one", "u-1"), resource, resource.status, "sb", RunLimits()
    )


def outside(hub: Any) -> Outside:
    return Outside(SimpleNamespace(), hub, hub, hub, hub, SystemClock(), Timings(), "own")


def publisher(hub: Hub) -> Publisher:
    nobody: Any = SimpleNamespace()
    return Publisher(outside(hub), Collector(outside(hub), nobody))


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Denied("no", code="PermissionNotGranted"), "PermissionNotGranted"),
        (Denied("no"), "PublishDenied"),
        (NotFound("no"), "PublishDenied"),
    ],
)
async def test_a_refused_right_ends_the_run_before_the_push_is_decided(
    failure: CallError, reason: str
) -> None:
    ending = await publisher(Hub(failure)).authorize(assignment())
    assert ending is not None
    assert (ending.outcome, ending.reason) == (Outcome.FAILED, reason)


async def test_a_github_that_is_away_refuses_nothing() -> None:
    with pytest.raises(Unavailable):
        await publisher(Hub(Unavailable("away"))).authorize(assignment())


async def test_the_right_that_was_got_is_the_one_that_is_used() -> None:
    hub = Hub()
    publishing = publisher(hub)
    assert await publishing.authorize(assignment()) is None
    published = await publishing.publish(assignment())
    assert published.ending is not None
    assert (published.pushed, published.ending.reason) == (True, "TooLateToStop")
    assert hub.minted == 1


async def test_a_right_that_was_taken_back_meanwhile_is_asked_for_anew() -> None:
    hub = Hub()
    publishing = publisher(hub)
    assert await publishing.authorize(assignment()) is None
    hub.revoked = {"token-1"}
    with pytest.raises(Denied):
        await publishing.publish(assignment())
    assert (await publishing.publish(assignment())).pushed
    assert hub.minted == 2


@pytest.mark.parametrize(("minutes", "minted"), [(29, 1), (31, 2)])
async def test_a_right_that_was_got_before_a_long_pause_is_asked_for_anew(
    minutes: int, minted: int
) -> None:
    hub, time = Hub(), FakeTime()
    there = replace(outside(hub), clock=FakeClock(time))
    nobody: Any = SimpleNamespace()
    publishing = Publisher(there, Collector(there, nobody))
    assert await publishing.authorize(assignment()) is None
    time.seconds += minutes * 60
    assert (await publishing.publish(assignment())).pushed
    assert hub.minted == minted


@pytest.mark.parametrize(
    ("source", "hub", "reason"),
    [
        ({"cloneURL": "https://evil.example/octo/hello.git"}, Hub(), "CredentialsMissing"),
        (
            {
                "cloneURL": "https://evil.example/octo/hello.git",
                "credentialsSecretRef": {"name": "s"},
            },
            Hub(),
            "SecretNotFound",
        ),
        ({}, Hub(Denied("no", code="PermissionNotGranted")), "PermissionNotGranted"),
        ({}, Hub(Denied("no")), "RepositoryDenied"),
    ],
)
async def test_what_no_repetition_changes_ends_the_run_at_once(
    source: dict[str, Any], hub: Hub, reason: str
) -> None:
    given = {"run": {"trigger": "1", "publish": {"branch": "work"}}, "repository": source}
    with pytest.raises(Hopeless) as refused:
        await source_of(assignment(spec=given), outside(hub))
    assert refused.value.ending.reason == reason


class Plain(Hub):
    """A GitHub for whom there is a plain token alone, which may write."""

    async def read_token(self, _: str) -> None:
        return None


async def test_a_token_that_may_write_never_enters_a_sandbox() -> None:
    given = assignment(spec={"run": {"trigger": "1", "publish": {"branch": "work"}}})
    assert (await source_of(given, outside(Plain()))).credential is None
    with pytest.raises(Hopeless) as refused:
        await source_of(given, outside(Plain(private=True)))
    assert refused.value.ending.reason == "ReadTokenMissing"


def elsewhere(**publish: Any) -> Assignment:
    source = {"cloneURL": ELSEWHERE, "credentialsSecretRef": {"name": "s"}}
    given = {"run": {"trigger": "1", "publish": publish}, "repository": source}
    return assignment(spec=given)


KEYS = {"username": "bot", "read-username": "reader", "read-password": "reads-only"}


@pytest.mark.parametrize("enabled", [True, False])
async def test_what_writes_to_another_host_stays_out_of_the_sandbox(enabled: bool) -> None:
    hub, given = Hub(), elsewhere(branch="work", enabled=enabled)
    hub.password, hub.more = "writes", KEYS
    found = await source_of(given, outside(hub))
    assert (found.credential, found.keyless) == (Token("reads-only", "reader"), None)
    assert await destination(given, outside(hub)) == (ELSEWHERE, Token("writes", "bot"))
    hub.more = {}
    found = await source_of(given, outside(hub))
    assert found.credential is None
    assert found.keyless is not None
    for word in ("team/s", "`read-password`", "sandbox"):
        assert word in found.keyless


@pytest.mark.parametrize(
    ("secret", "enabled", "reason"),
    [
        ({"password": "one", "read-password": "one"}, True, "SecretInvalid"),
        ({"read-password": "one"}, True, "SecretInvalid"),
        ({"read-password": "one"}, False, None),
    ],
)
async def test_a_secret_that_cannot_be_used_as_it_is_ends_the_run_at_once(
    secret: dict[str, str], enabled: bool, reason: str | None
) -> None:
    hub = Hub()
    hub.password, hub.more = "", secret
    given = elsewhere(branch="work", enabled=enabled)
    if reason is None:
        assert (await source_of(given, outside(hub))).credential == Token("one", "git")
        with pytest.raises(Denied, match="no credentials to push"):
            await destination(given, outside(hub))
        return
    with pytest.raises(Hopeless) as refused:
        await source_of(given, outside(hub))
    assert refused.value.ending.reason == reason
    with pytest.raises(Denied):
        await destination(given, outside(hub))


async def test_nothing_of_a_run_shows_the_keys_of_another_host() -> None:
    hub = Hub()
    hub.password, hub.more = "writes", KEYS
    hidden = await hidden_values(elsewhere(), outside(hub), {})
    assert set(hidden.secrets) == {"writes", "reads-only"}, "the name of a user may be any word"


STEM = "claude-fix-issue-1"


@pytest.mark.parametrize(
    ("publish", "there", "branch", "existed", "checkout"),
    [
        ({}, [], STEM, False, None),
        ({"base": "dev"}, [STEM, "dev"], f"{STEM}-2", False, "dev"),
        ({"branch": "work"}, ["main"], "work", False, None),
        ({"branch": "work", "base": "dev"}, ["work"], "work", True, "work"),
    ],
)
async def test_the_branch_on_another_host_is_looked_for_there(
    publish: dict[str, str], there: list[str], branch: str, existed: bool, checkout: str | None
) -> None:
    hub = Hub()
    hub.password = "theirs"
    hub.refs_elsewhere = {f"refs/heads/{each}": COMMIT for each in there}
    found = await source_of(elsewhere(**publish), outside(hub))
    assert (found.url, found.branch, found.branch_existed) == (ELSEWHERE, branch, existed)
    assert found.checkout == checkout


@pytest.mark.parametrize(
    ("publish", "there", "reason"),
    [
        ({}, NotFound("404"), "RepositoryNotFound"),
        ({}, Denied("401"), "RepositoryDenied"),
        ({"branch": "dev", "base": "dev"}, {}, "BranchIsBase"),
        (
            {},
            {f"refs/heads/{STEM}{each}": COMMIT for each in ["", *(f"-{k}" for k in range(2, 21))]},
            "NoFreeBranch",
        ),
    ],
)
async def test_another_host_that_cannot_be_used_ends_the_run_at_once(
    publish: dict[str, str], there: dict[str, str] | CallError, reason: str
) -> None:
    hub = Hub()
    hub.password, hub.refs_elsewhere = "theirs", there
    with pytest.raises(Hopeless) as refused:
        await source_of(elsewhere(**publish), outside(hub))
    assert refused.value.ending.reason == reason


@pytest.mark.parametrize(
    ("state", "outcome", "reason"),
    [
        ("Running", Outcome.SUCCEEDED, "Pushed"),
        ("Stopped", Outcome.CANCELLED, "TooLateToStop"),
    ],
)
async def test_what_goes_to_another_host_is_proposed_nowhere(
    state: str, outcome: Outcome, reason: str
) -> None:
    hub = Hub()
    hub.password, hub.refs_elsewhere = "theirs", {"refs/heads/work": COMMIT}
    hub.desired_state = state
    hub.pull = PullView(1, "https://github.example/pull/1", "open", "work", COMMIT, "main")
    published = await publisher(hub).publish(elsewhere(branch="work"))
    assert published.ending is not None
    assert (published.ending.outcome, published.ending.reason) == (outcome, reason)
    assert (published.pushed, published.pull) == (True, None)
