"""Keys that cannot be right are refused without being shown; new ones are used at once."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.clock import FakeClock, FakeTime
from tests.fakes.kept_logs import kept_logs

from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.adapters.daytona.toolbox import DaytonaToolbox
from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.domain.key_formats import KeyKind, flaw
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.tuning import Listeners
from issuesandbox.entry.settings import Settings, SettingsError, load_settings
from issuesandbox.entry.tuned import attach, build_tuning
from issuesandbox.ports.configuration import Opinion, Stored
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.resources import EventNote

GOOD = {
    "DAYTONA_API_KEY": "dtn_" + "a1" * 20,
    "GITHUB_TOKEN": "github_pat_" + "Ab1" * 10,
}
BAD = [
    ("DAYTONA_API_KEY", "ghp_" + "Ab3" * 12, "looks like a GitHub token"),
    ("DAYTONA_API_KEY", "dtn_abc def", "spaces or line breaks"),
    ("DAYTONA_API_KEY", '"dtn_abcdef"', "in quotes"),
    ("DAYTONA_API_KEY", "schlüssel", "characters in it that no key has"),
    ("GITHUB_TOKEN", "sk-ant-api03-abc", "looks like an Anthropic key"),
    ("GITHUB_APP_PRIVATE_KEY", "MIIEowIBAAKCAQEA", "not a private key in PEM"),
    (
        "GITHUB_APP_PRIVATE_KEY",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "not an RSA key in PEM",
    ),
]


@pytest.mark.parametrize(("name", "value", "says"), BAD)
def test_a_key_that_cannot_be_right_is_named_and_never_shown(
    name: str, value: str, says: str
) -> None:  # R108
    given = {**GOOD, name: value}
    if name == "GITHUB_APP_PRIVATE_KEY":
        given["GITHUB_APP_ID"] = "1"
    with pytest.raises(SettingsError) as caught:
        load_settings(given)
    assert name in str(caught.value)
    assert says in str(caught.value)
    for part in value.replace("RSA PRIVATE KEY", "").split():
        assert part.strip('"-') == "" or part.strip('"') not in str(caught.value)


def test_an_unknown_look_is_no_flaw() -> None:
    assert flaw(KeyKind.DAYTONA, "whatever-a-self-hosted-one-gives-out") is None
    assert flaw(KeyKind.ANTHROPIC, "") is None
    load_settings(GOOD)


class Cluster:
    """Nothing is stored; what is reported is kept."""

    def __init__(self) -> None:
        self.opinions: list[Opinion] = []

    async def read(self) -> Stored:
        return Stored()

    async def follow(self, *_: object) -> None:
        raise NotImplementedError

    async def accepted(self) -> dict[str, str]:
        return {}

    async def report(self, opinion: Opinion) -> None:
        self.opinions.append(opinion)

    async def note(self, event: EventNote) -> None:
        return None


async def test_a_secrets_file_that_changes_is_taken_up_and_a_broken_one_is_not(
    tmp_path: Path,
) -> None:
    file, heard = tmp_path / "api-key", []
    file.write_text("dtn_first\n")
    environment = {"DAYTONA_API_KEY_FILE": str(file)}
    listeners: Listeners[Settings] = Listeners(
        changed=lambda settings: heard.append(settings.daytona_api_key.get_secret_value())
    )
    cluster = Cluster()
    with kept_logs():
        clock = FakeClock(FakeTime())
        tuning = build_tuning(cluster, clock, environment)
        attach(tuning, await tuning.start(), listeners, environment)
        file.write_text("dtn_second\n")
        await tuning.refresh()
        file.write_text("ghp_" + "Ab3" * 12)
        await tuning.refresh()
    assert heard == ["dtn_second"]
    assert tuning.current.daytona_api_key.get_secret_value() == "dtn_second"
    assert not cluster.opinions[-1].valid
    assert "looks like a GitHub token" in cluster.opinions[-1].message
    assert "ghp_" not in cluster.opinions[-1].message


async def test_every_client_uses_a_new_key_from_the_next_call_on() -> None:
    shown: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        shown.append(request.headers["Authorization"])
        raise web.HTTPServiceUnavailable

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        sandboxes = DaytonaSandboxes(url, "one", Timings())
        toolbox = DaytonaToolbox(url, "one", Timings())
        github = GitHubConnection(url, PlainToken("one"), FakeClock(FakeTime()))
        for key in ("one", "two"):
            for client in (sandboxes, toolbox):
                client.use_key(key)
            github.act_as(PlainToken(key))
            for call in (
                sandboxes.get("sb"),
                toolbox.home("sb"),
                github.client.issue("octo/hello", 1),
            ):
                with pytest.raises((CallError, aiohttp.ClientError)):
                    await call
        for closable in (sandboxes, toolbox, github):
            await closable.close()
    assert {each.rpartition(" ")[2] for each in shown[: len(shown) // 2]} == {"one"}
    assert {each.rpartition(" ")[2] for each in shown[len(shown) // 2 :]} == {"two"}


def test_another_app_is_another_identity_also_with_the_same_key() -> None:
    one = load_settings(GOOD)
    other = one.model_copy(update={"github_app_id": "2"})
    assert one.identity() != other.identity()
    assert one.secrets() == other.secrets()
