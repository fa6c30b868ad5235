"""Pushes of collected packs into a real git, and every way they can be refused or lost."""

from __future__ import annotations

import asyncio
import logging
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
from aiohttp import web
from git_work import BRANCH, OWN, Work
from tests.fakes.github_stage import REPOSITORY, Stage

from issuesandbox.adapters.git.remote import HttpRemote
from issuesandbox.ports.errors import Denied, Invalid, NotFound, Throttled, Unavailable
from issuesandbox.ports.github import Token
from issuesandbox.ports.remote import ZERO, PushOrder, PushVerdict


async def test_a_collected_pack_arrives_and_can_be_cloned(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    order = await work.collected({"src/app.py": "print(2)\n", "new\nline ☃": "x"})
    pushed = await remote.push(stage.git_url, OWN, order)  # R42
    assert pushed.verdict is PushVerdict.ACCEPTED, pushed
    assert (await remote.refs(stage.git_url, OWN))[BRANCH] == order.new
    assert await work.shown(order.new, "src/app.py") == "print(2)\n"
    assert await work.shown(order.new, "README.md") == "hello\n"
    parent = await work.shown(f"{order.new}~1", "src/app.py")
    assert parent == "print(1)\n"


async def test_a_branch_is_moved_on_from_its_tip(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    first = await work.collected({"a": "1\n"})
    await remote.push(stage.git_url, OWN, first)
    second = await work.moved_on({"b": "2\n"}, first)
    assert (await remote.push(stage.git_url, OWN, second)).verdict is PushVerdict.ACCEPTED
    assert (await stage.refs())[BRANCH] == second.new
    assert await work.shown(second.new, "a") == "1\n"


async def test_the_same_push_twice_moves_nothing_twice(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    order = await work.collected({"a": "1\n"})
    assert (await remote.push(stage.git_url, OWN, order)).verdict is PushVerdict.ACCEPTED
    assert (await remote.push(stage.git_url, OWN, order)).verdict is PushVerdict.ACCEPTED
    pushes = [
        each for each in await stage.admin("GET", "/journal?since=0") if each["type"] == "push"
    ]
    assert [each["new"] for each in pushes if each["ref"] == BRANCH] == [order.new]


async def test_a_humans_commit_is_never_dropped(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    first = await work.collected({"a": "1\n"})
    await remote.push(stage.git_url, OWN, first)
    human = await stage.post(
        f"/repos/{REPOSITORY}/push",
        branch="claude-fix-issue-1",
        files={"human": "1"},
        message="mine",
    )
    second = await work.moved_on({"b": "2\n"}, replace(first))
    pushed = await remote.push(stage.git_url, OWN, second)
    assert pushed.verdict is PushVerdict.MOVED
    assert "expected" in pushed.reason
    assert (await stage.refs())[BRANCH] == human["new"]


async def test_a_branch_that_vanished_has_moved(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    first = await work.collected({"a": "1\n"})
    await remote.push(stage.git_url, OWN, first)
    second = await work.moved_on({"b": "2\n"}, first)
    await stage.post(f"/repos/{REPOSITORY}/push", branch="claude-fix-issue-1", delete=True)
    assert (await remote.push(stage.git_url, OWN, second)).verdict is PushVerdict.MOVED
    assert BRANCH not in await stage.refs()


async def test_of_two_pushes_at_once_one_wins(stage: Stage, remote: HttpRemote, work: Work) -> None:
    one = await work.collected({"a": "1\n"})
    two = await work.collected({"a": "2\n"})

    async def sent(order: PushOrder) -> PushVerdict:
        # A ref that is being moved proves nothing: as a driver does, try again.
        while True:
            with suppress(Unavailable):
                return (await remote.push(stage.git_url, OWN, order)).verdict

    verdicts = await asyncio.gather(*(sent(each) for each in (one, two, one, two)))
    winner = (await stage.refs())[BRANCH]
    expected = [
        PushVerdict.ACCEPTED if each.new == winner else PushVerdict.MOVED
        for each in (one, two, one, two)
    ]
    assert verdicts == expected


async def test_a_protected_branch_refuses_and_says_why(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    await stage.admin("PUT", f"/repos/{REPOSITORY}/protection/main")
    order = replace(await work.collected({"a": "1"}), ref="refs/heads/main", old=work.parent)
    pushed = await remote.push(stage.git_url, OWN, order)
    assert pushed.verdict is PushVerdict.REFUSED
    assert "protected branch hook declined" in pushed.reason
    assert "GH006" in pushed.reason


async def test_workflow_files_need_the_permission(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    made = await stage.post(
        "/tokens", installation=stage.installation, permissions={"contents": "write"}
    )
    order = await work.collected({".github/workflows/x.yml": "on: push\n"})
    pushed = await remote.push(stage.git_url, Token(made["token"]), order)
    assert pushed.verdict is PushVerdict.REFUSED
    assert "without `workflows` permission" in pushed.reason


async def test_a_token_that_may_only_read_is_refused(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    made = await stage.post(
        "/tokens", installation=stage.installation, permissions={"contents": "read"}
    )
    token = Token(made["token"])
    assert await remote.refs(stage.git_url, token) == await stage.refs()
    pushed = await remote.push(stage.git_url, token, await work.collected({"a": "1"}))
    assert pushed.verdict is PushVerdict.REFUSED
    assert "Write access to repository not granted" in pushed.reason


async def test_a_broken_pack_is_refused(stage: Stage, remote: HttpRemote, work: Work) -> None:
    order = await work.collected({"a": "1"})
    broken = replace(order, pack=order.pack[:-30] + b"x" * 30)
    pushed = await remote.push(stage.git_url, OWN, broken)
    assert pushed.verdict is PushVerdict.REFUSED
    assert "pack" in pushed.reason
    other = replace(order, new="1" * 40)
    assert (await remote.push(stage.git_url, OWN, other)).verdict is PushVerdict.REFUSED
    assert BRANCH not in await stage.refs()


async def test_a_large_pack_goes_through(stage: Stage, remote: HttpRemote, work: Work) -> None:
    order = await work.collected({"big": os.urandom(8_000_000)})
    assert len(order.pack) > 8_000_000
    assert (await remote.push(stage.git_url, OWN, order)).verdict is PushVerdict.ACCEPTED


@pytest.mark.parametrize("kind", ["reset", "status"])
async def test_a_lost_answer_is_unknown_and_the_push_may_have_happened(
    stage: Stage, remote: HttpRemote, work: Work, kind: str
) -> None:
    await stage.fault(kind, "smart-http/receive-pack", after_effect=True)
    order = await work.collected({"a": "1"})
    with pytest.raises(Unavailable):
        await remote.push(stage.git_url, OWN, order)
    assert (await remote.refs(stage.git_url, OWN))[BRANCH] == order.new


async def test_silence_ends_in_time(work: Work, remote: HttpRemote) -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/acme/app.git"
    hasty = HttpRemote(remote._session, read_timeout=0.2, push_timeout=0.2)
    async with server:
        with pytest.raises(Unavailable, match=r"no answer .* in 0.2 s"):
            await hasty.refs(url, OWN)
        with pytest.raises(Unavailable, match=r"no answer .* in 0.2 s"):
            await hasty.push(url, OWN, await work.collected({"a": "1"}))


async def test_bad_tokens_and_addresses_have_their_own_failures(
    stage: Stage, remote: HttpRemote, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bad = Token("ghs_wrong_and_secret")
    order = await work.collected({"a": "1"})
    texts = []
    with pytest.raises(Denied) as denied:
        await remote.push(stage.git_url, bad, order)
    texts.append(str(denied.value))
    with pytest.raises(Denied):
        await remote.refs(stage.git_url, None)
    with pytest.raises(NotFound) as missing:
        await remote.push(f"{stage.sim.url}/acme/none.git", OWN, order)
    texts.append(str(missing.value))
    with pytest.raises(Invalid) as invalid:
        await remote.refs(f"http://x:{bad.value}@127.0.0.1/acme/app.git", None)
    texts.append(str(invalid.value))
    with pytest.raises(Unavailable) as dead:
        await remote.push("http://127.0.0.1:9/acme/app.git", OWN, order)
    texts.append(str(dead.value))
    for secret in (bad.value, OWN.value, "eC1hY2Nlc3"):
        assert secret not in "".join(texts) + caplog.text


async def test_an_empty_repository_has_no_refs(stage: Stage, remote: HttpRemote) -> None:
    await stage.post("/repos", repository="acme/empty")
    assert await remote.refs(f"{stage.sim.url}/acme/empty.git", OWN) == {}


@asynccontextmanager
async def _host(answer: web.Response | str) -> AsyncIterator[tuple[str, list[web.Request]]]:
    """Serve one answer to everything and note who asked."""
    seen: list[web.Request] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        await request.read()
        if isinstance(answer, str):
            return web.Response(status=307, headers={"Location": answer + request.path})
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", seen
    await runner.cleanup()


async def test_credentials_do_not_follow_to_another_host(remote: HttpRemote, work: Work) -> None:
    order = await work.collected({"a": "1"})
    async with _host(web.Response()) as (other, caught), _host(other) as (url, _):
        with pytest.raises(Denied, match="another host"):
            await remote.push(f"{url}/acme/app.git", OWN, order)
        with pytest.raises(Denied, match="another host"):
            await remote.refs(f"{url}/acme/app.git", OWN)
        assert caught == []


async def test_a_host_that_shows_what_it_was_sent_shows_it_to_nobody(
    remote: HttpRemote, work: Work
) -> None:
    sent = b64encode(f"{OWN.username}:{OWN.value}".encode()).decode()
    order = await work.collected({"a": "1"})
    echo = f"You sent {sent}, which is {OWN.value}."
    async with _host(web.Response(status=403, text=echo)) as (url, _):
        refused = await remote.push(f"{url}/acme/app.git", OWN, order)
        with pytest.raises(Denied) as caught:
            await remote.refs(f"{url}/acme/app.git", OWN)
    assert refused.reason == "You sent ***, which is ***."
    assert str(caught.value).endswith(refused.reason)


async def test_a_renamed_repository_is_followed_on_its_own_host(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    order = await work.collected({"a": "1"})

    async def forward(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if request.path.startswith("/old/"):
            target = request.path_qs.replace("/old/", "/acme/")
            return web.Response(status=301, headers={"Location": target})
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Content-Type")
            if name in request.headers
        }
        async with stage.session.request(
            request.method, stage.sim.url + request.path_qs, data=body or None, headers=headers
        ) as answer:
            return web.Response(status=answer.status, body=await answer.read())

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/old/app.git"
    try:
        assert await remote.refs(url, OWN) == await stage.refs()
        assert (await remote.push(url, OWN, order)).verdict is PushVerdict.ACCEPTED
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (web.Response(status=200, body=b"<html>sign in</html>"), Unavailable),
        (web.Response(status=200, body=b""), Unavailable),
        (web.Response(status=200, body=b"0030\x01000eunpack ok\n"), Unavailable),
        (web.Response(status=503, body=b"down"), Unavailable),
        (web.Response(status=429, headers={"Retry-After": "7"}), Throttled),
        (web.Response(status=413), Invalid),
    ],
)
async def test_answers_that_prove_nothing_are_failures(
    remote: HttpRemote, work: Work, answer: web.Response, failure: type[Exception]
) -> None:
    order = await work.collected({"a": "1"})
    async with _host(answer) as (url, _):
        with pytest.raises(failure) as caught:
            await remote.push(f"{url}/acme/app.git", OWN, order)
    if failure is Throttled:
        assert isinstance(caught.value, Throttled)
        assert caught.value.retry_after == 7


async def test_zero_means_that_the_branch_must_not_exist(
    stage: Stage, remote: HttpRemote, work: Work
) -> None:
    order = replace(await work.collected({"a": "1"}), ref="refs/heads/main", old=ZERO)
    before = await stage.refs()
    assert (await remote.push(stage.git_url, OWN, order)).verdict is PushVerdict.MOVED
    assert await stage.refs() == before
