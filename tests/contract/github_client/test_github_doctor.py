"""What `kubectl isb doctor` says of GitHub, asked at the simulator."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import ApiException
from tests.fakes.github_stage import TOKEN, Stage

from issuesandbox.entry.plugin.checks import Finding, Verdict
from issuesandbox.entry.plugin.checks_github import app_rights, github_findings


class Cluster:
    """A cluster with one Secret, or with none that may be read."""

    def __init__(self, **data: str) -> None:
        self._data = {name: base64.b64encode(text.encode()) for name, text in data.items()}
        self.core = self

    def peek(self, namespace: str, name: str) -> None:
        return None

    def read_namespaced_secret(self, name: str, namespace: str) -> Any:
        if not self._data:
            raise ApiException(status=403, reason="Forbidden")
        return SimpleNamespace(data=self._data)


async def examine(stage: Stage, **secret: str) -> Mapping[str, Finding]:
    cluster: Any = Cluster(**{name.replace("_", "-"): text for name, text in secret.items()})
    found = await asyncio.to_thread(lambda: list(github_findings(cluster, "home")))
    assert not [text for text in secret.values() if text in repr(found)], "a secret is shown"
    return {each.check: each for each in found}


@pytest.fixture(autouse=True)
def _environment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_API_URL", stage.sim.url)
    for name in ("GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GITHUB_WEBHOOK_SECRET", raising=False)


async def test_an_app_is_asked_what_it_may_and_what_it_sends(stage: Stage) -> None:
    app_id = str(stage.sim.app_id)
    found = await examine(stage, private_key=stage.key, webhook_secret="s" * 32, app_id=app_id)
    assert {name: each.verdict for name, each in found.items()} == {
        "GitHub App": Verdict.OK,
        # The simulated App has no right to workflows, which is told and is no failure.
        "GitHub rights": Verdict.WARNING,
        "GitHub events": Verdict.OK,
        "webhook secret": Verdict.OK,
    }


def test_missing_rights_of_an_app_are_named() -> None:
    enough = {"contents": "write", "issues": "write", "pull_requests": "write"}
    assert app_rights({**enough, "workflows": "write"}).verdict is Verdict.OK
    lacking = app_rights({**enough, "contents": "read"})
    assert lacking.verdict is Verdict.FAILED
    assert lacking.what == "the App lacks contents: write"


async def test_a_token_is_asked_for_its_owner(stage: Stage) -> None:
    found = await examine(stage, token=TOKEN)
    assert found["GitHub token"].verdict is Verdict.OK
    assert "octocat" in found["GitHub token"].what


async def test_what_is_refused_or_broken_has_a_fix(stage: Stage) -> None:
    wrong = await examine(stage, token="ghp_somebody_elses_entirely")
    assert wrong["GitHub"].what == "GitHub refuses the credentials"
    assert "issuesandbox-github" in wrong["GitHub"].fix
    broken = await examine(stage, app_id="99999999", private_key="no key at all")
    assert broken["GitHub App"].verdict is Verdict.FAILED
    assert "RSA key in PEM" in broken["GitHub App"].what
    other = await examine(stage, token="dtn_0123456789abcdef")
    assert (
        other["GitHub token"].what == "the token looks like a Daytona key, not like a GitHub token"
    )
    short = await examine(stage, token=TOKEN, webhook_secret="0123456789abcde")
    assert short["webhook secret"].verdict is Verdict.FAILED


async def test_nothing_to_ask_with_is_unknown_and_nobody_there_is_a_failure(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = await examine(stage)
    assert nothing["GitHub"].verdict is Verdict.UNKNOWN
    assert "GITHUB_TOKEN" in nothing["GitHub"].fix
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:1")
    away = await examine(stage, token=TOKEN)
    assert away["GitHub"].verdict is Verdict.FAILED
    assert "GITHUB_API_URL" in away["GitHub"].fix
