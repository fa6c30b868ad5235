"""Tokens: as few rights as possible, as few requests as possible, and secret."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest
from tests.fakes.github_stage import REPOSITORY, TOKEN, Stage

from issuesandbox.adapters.github.app import AppKey
from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.ports.errors import Denied, Invalid, NotFound
from issuesandbox.ports.github import Token

MINT = "apps/create-installation-access-token"
METADATA = {"metadata": "read"}


async def _minted(stage: Stage) -> list[dict[str, str]]:
    asked = await stage.requests(MINT)
    return [effect["permissions"] for each in asked for effect in each["effect"]]


async def test_each_token_can_do_one_thing_in_one_repository(
    github: GitHubConnection, stage: Stage
) -> None:
    read = await github.client.read_token(REPOSITORY)
    assert read is not None
    write = await github.client.write_token(REPOSITORY)
    await github.client.repository(REPOSITORY)
    kinds = await _minted(stage)
    assert kinds[0] == {"contents": "read"} | METADATA
    assert kinds[1]["contents"] == "write"
    assert set(kinds[1]) <= {"contents", "workflows", "metadata"}
    assert kinds[2]["issues"] == kinds[2]["pull_requests"] == "write"
    assert kinds[2]["contents"] == "read"
    assert len({read.value, write.value}) == 2
    (asked,) = await stage.requests("repos/get")
    assert asked["identity"]["repositories"] == [REPOSITORY]


async def test_tokens_are_kept_until_shortly_before_they_expire(
    github: GitHubConnection, stage: Stage
) -> None:
    await asyncio.gather(*(github.client.repository(REPOSITORY) for _ in range(10)))
    first = await github.client.read_token(REPOSITORY)
    assert await github.client.read_token("ACME/App") == first  # R46
    assert len(await _minted(stage)) == 2
    assert len(await stage.requests("apps/get-repo-installation")) == 1
    stage.clock.ahead = timedelta(minutes=55)
    assert await github.client.read_token(REPOSITORY) != first


async def test_a_push_gets_a_token_of_its_own(github: GitHubConnection) -> None:
    first = await github.client.write_token(REPOSITORY)
    assert await github.client.write_token(REPOSITORY) != first


async def test_a_token_that_died_early_is_replaced(github: GitHubConnection, stage: Stage) -> None:
    number = await stage.issue()
    await github.client.issue(REPOSITORY, number)
    await stage.post("/tokens/expire", all=True)
    made = await github.client.create_comment(REPOSITORY, number, "once")
    assert made.body == "once"
    assert [each["status"] for each in await stage.requests("issues/create-comment")] == [401, 201]


async def test_an_installation_that_was_made_anew_is_found(
    github: GitHubConnection, stage: Stage
) -> None:
    await github.client.repository(REPOSITORY)
    await stage.admin("DELETE", f"/installations/{stage.installation}")
    with pytest.raises((NotFound, Denied)):
        await github.client.write_token(REPOSITORY)
    await stage.post("/installations", account="acme")
    await github.client.write_token(REPOSITORY)
    assert (await github.client.repository(REPOSITORY)).full_name == REPOSITORY


async def test_the_installation_that_an_event_names_is_used_before_any_other(
    github: GitHubConnection, stage: Stage
) -> None:
    # R46
    for _ in range(2):
        github.forge.installed(REPOSITORY, stage.installation)
        await github.client.repository(REPOSITORY)
    assert len(await stage.requests("apps/get-installation")) == 1, "then it is known"
    assert await stage.requests("apps/get-repo-installation") == []

    await stage.admin("DELETE", f"/installations/{stage.installation}")
    anew = (await stage.post("/installations", account="acme"))["id"]
    github.forge.installed(REPOSITORY, anew)
    await github.client.repository(REPOSITORY)
    minted = await stage.requests("apps/create-installation-access-token")
    assert {each["status"] for each in minted} == {201}, "the old one was not tried"

    github.forge.installed(REPOSITORY, 1)
    await github.client.repository(REPOSITORY)
    assert len(await stage.requests("apps/get-repo-installation")) == 1, "nobody has that one"


async def test_missing_rights_are_named(stage: Stage) -> None:
    await stage.admin("DELETE", f"/installations/{stage.installation}")
    rights = {"contents": "read", "issues": "write"}
    await stage.post("/installations", account="acme", permissions=rights)
    connection = stage.connect()
    try:
        await connection.client.read_token(REPOSITORY)
        await connection.client.repository(REPOSITORY)
        with pytest.raises(Denied, match="grant it the permission `contents: write`") as caught:
            await connection.client.write_token(REPOSITORY)
        assert caught.value.code == "PermissionNotGranted"
    finally:
        await connection.close()


async def test_a_suspended_installation_is_denied(stage: Stage) -> None:
    await stage.admin("PATCH", f"/installations/{stage.installation}", {"suspended": True})
    connection = stage.connect()
    try:
        with pytest.raises(Denied) as caught:
            await connection.client.read_token(REPOSITORY)
        assert caught.value.code == "InstallationSuspended"
    finally:
        await connection.close()


def test_a_bad_key_is_one_line_without_the_key() -> None:
    with pytest.raises(Invalid) as caught:
        AppKey("1", "-----BEGIN RSA PRIVATE KEY-----\nTOPSECRET\n-----END RSA PRIVATE KEY-----")
    assert "TOPSECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_key_with_written_line_ends_works(stage: Stage) -> None:
    stage.key = stage.key.replace("\n", "\\n")
    connection = stage.connect()
    try:
        assert await connection.forge.own_login() == "issuesandbox[bot]"
    finally:
        await connection.close()


async def test_no_secret_is_shown(
    github: GitHubConnection, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = await github.client.write_token(REPOSITORY)
    assert token.value not in repr(token)
    assert "hidden" not in repr(Token("hidden"))
    await stage.fault("status", "repos/get", status=500, count=None)
    with pytest.raises(Exception, match="GitHub answered 500") as caught:
        await github.client.repository(REPOSITORY)
    assert "ghs_" not in str(caught.value) + caplog.text
    assert "eyJ" not in caplog.text


async def test_a_plain_token_is_not_what_a_sandbox_clones_with(stage: Stage) -> None:
    for read in (None, "read-only"):
        identity = PlainToken(TOKEN, read)
        connection = GitHubConnection(stage.sim.url, identity, stage.clock)
        try:
            found = await connection.client.read_token(REPOSITORY)
            assert (found.value if found is not None else None) == read
            assert (await connection.client.write_token(REPOSITORY)).value == TOKEN
        finally:
            await connection.close()
