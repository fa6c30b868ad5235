"""One comment per resource, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from tests.fakes.github_stage import REPOSITORY, Stage

from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.domain.comment import CommentText
from issuesandbox.engine.telling import Teller
from issuesandbox.ports.errors import CallError, NotFound, Throttled, Unavailable

MARKER = "<!-- issuesandbox:status u1 -->"


def _text(words: str, digest: str = "") -> CommentText:
    return CommentText(MARKER, f"{MARKER}\n\n{words}", digest or words)


@pytest.fixture
def teller(github: GitHubConnection, stage: Stage) -> Teller:
    return Teller(github.client, stage.clock, gap=5, refresh=60)


@pytest.fixture
async def number(stage: Stage) -> int:
    return await stage.issue()


@pytest.fixture
async def others(stage: Stage) -> AsyncIterator[Teller]:
    """Another operator."""
    connection = stage.connect()
    yield Teller(connection.client, stage.clock, gap=5, refresh=60)
    await connection.close()


async def _comments(github: GitHubConnection, number: int) -> list[str]:
    found = await github.client.comments(REPOSITORY, number, MARKER)
    return [each.body.partition("\n\n")[2] for each in found]


async def test_it_is_written_once_and_edited_in_place(
    github: GitHubConnection, stage: Stage, teller: Teller, number: int
) -> None:
    first = await teller.tell(REPOSITORY, number, _text("one"), None)
    assert first.url
    stage.clock.ahead += timedelta(seconds=6)
    second = await teller.tell(REPOSITORY, number, _text("two"), first)
    assert (second.id, second.digest) == (first.id, "two")
    assert await _comments(github, number) == ["two"]  # R45


async def test_without_news_nothing_is_sent(stage: Stage, teller: Teller, number: int) -> None:
    known = await teller.tell(REPOSITORY, number, _text("one"), None)
    before = len(await stage.requests())
    stage.clock.ahead += timedelta(seconds=30)
    assert await teller.tell(REPOSITORY, number, _text("1 min", "one"), known) == known
    assert len(await stage.requests()) == before
    stage.clock.ahead += timedelta(seconds=31)
    await teller.tell(REPOSITORY, number, _text("1 min", "one"), known)
    assert len(await stage.requests("issues/update-comment")) == 1


async def test_edits_keep_their_distance(
    github: GitHubConnection, stage: Stage, number: int
) -> None:
    teller = Teller(github.client, stage.clock, gap=0.5, refresh=60)
    known = None
    for words in ("one", "two", "three"):
        known = await teller.tell(REPOSITORY, number, _text(words), known)
    posted = await stage.requests("issues/create-comment")
    times = [
        datetime.fromisoformat(each["at"])
        for each in posted + await stage.requests("issues/update-comment")
    ]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == 2
    assert all(each >= timedelta(seconds=0.4) for each in gaps)


async def test_a_lost_answer_leaves_no_second_comment(
    github: GitHubConnection, stage: Stage, teller: Teller, number: int
) -> None:
    await stage.fault("status", "issues/create-comment", status=502, after_effect=True)
    with pytest.raises(Unavailable):
        await teller.tell(REPOSITORY, number, _text("one"), None)
    await teller.tell(REPOSITORY, number, _text("two"), None)
    assert await _comments(github, number) == ["two"]


async def test_the_lowest_of_several_wins(
    github: GitHubConnection, teller: Teller, number: int
) -> None:
    made = [
        await github.client.create_comment(REPOSITORY, number, _text(f"old {index}").body)
        for index in range(3)
    ]
    known = await teller.tell(REPOSITORY, number, _text("new"), None)
    assert known.id == made[0].id
    assert await _comments(github, number) == ["new"]


async def test_two_operators_at_once_end_with_one_comment(
    github: GitHubConnection, stage: Stage, teller: Teller, others: Teller, number: int
) -> None:
    results = await asyncio.gather(
        teller.tell(REPOSITORY, number, _text("one"), None),
        others.tell(REPOSITORY, number, _text("two"), None),
        return_exceptions=True,
    )
    kept = [each for each in results if not isinstance(each, CallError)]
    assert kept
    stage.clock.ahead += timedelta(seconds=6)
    await teller.tell(REPOSITORY, number, _text("three"), None)
    assert await _comments(github, number) == ["three"]


async def test_a_deleted_comment_is_written_again(
    github: GitHubConnection, stage: Stage, teller: Teller, number: int
) -> None:
    known = await teller.tell(REPOSITORY, number, _text("one"), None)
    await github.client.delete_comment(REPOSITORY, known.id)
    stage.clock.ahead += timedelta(seconds=6)
    again = await teller.tell(REPOSITORY, number, _text("two"), known)
    assert again.id != known.id
    assert await _comments(github, number) == ["two"]


async def test_a_stranger_with_our_marker_is_not_touched(
    github: GitHubConnection, stage: Stage, teller: Teller, number: int
) -> None:
    path = f"/repos/{REPOSITORY}/issues/{number}/comment"
    forged = await stage.post(path, body=_text("forged").body, **{"as": "mallory"})
    known = await teller.tell(REPOSITORY, number, _text("one"), None)
    assert known.id != forged["id"]
    since = stage.clock.now() - timedelta(minutes=1)
    listed = {each.id: each async for each in github.forge.comments_since(REPOSITORY, since)}
    assert listed[forged["id"]].author == "mallory"
    assert listed[forged["id"]].body == _text("forged").body


async def test_limits_and_missing_issues_are_passed_on(
    stage: Stage, teller: Teller, number: int
) -> None:
    with pytest.raises(NotFound):
        await teller.tell(REPOSITORY, 999, _text("one"), None)
    await stage.fault("secondary-rate-limit", "issues/create-comment", seconds=9)
    with pytest.raises(Throttled) as caught:
        await teller.tell(REPOSITORY, number, _text("one"), None)
    assert caught.value.retry_after == 9
