"""The right to push: asked for before a push is decided, once, and clearly refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status_run import Outcome
from issuesandbox.clock import SystemClock
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.collecting import Collector
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.publishing import Publisher
from issuesandbox.engine.runs.sources import Hopeless, source_of
from issuesandbox.ports.errors import CallError, Denied, NotFound, Unavailable
from issuesandbox.ports.github import RepositoryView, Token
from issuesandbox.ports.resources import ResourceKey

URL = "https://github.example/octo/hello.git"
COMMIT = "c" * 40


class Hub:
    """A GitHub that mints tokens, or fails to; and a remote that has the commit already."""

    def __init__(self, failure: CallError | None = None, *, private: bool = False) -> None:
        self.failure = failure
        self.private = private
        self.minted = 0

    async def repository(self, name: str) -> RepositoryView:
        return RepositoryView(name, "main", URL, self.private)

    async def write_token(self, _: str) -> Token:
        if self.failure is not None:
            raise self.failure
        self.minted += 1
        return Token(f"token-{self.minted}")

    async def branch_tip(self, _: str, branch: str) -> str | None:
        return COMMIT if branch == "main" else None

    async def open_pull(self, *_: str) -> None:
        return None

    async def read_token(self, _: str) -> Token | None:
        return await self.write_token(_)

    async def refs(self, url: str, token: Token) -> dict[str, str]:
        assert (url, token.value) == (URL, "token-1")
        return {"refs/heads/work": COMMIT}

    async def get(self, _: ResourceKey) -> Any:
        return assignment(spec={"desiredState": "Stopped"}).resource.model_dump(by_alias=True)

    async def secret(self, *_: str) -> Any:
        raise NotFound("no such Secret")


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
    assert (published.pushed, published.ending.reason) == (True, "TooLateToStop")
    assert hub.minted == 1


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
