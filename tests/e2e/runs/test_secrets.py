"""Secrets: where they may be, where they never are, and repositories that want to have them."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import psutil
from hostile_repository import hostile
from run_stage import MODEL_KEY, RunStage, scenario
from sandbox_sight import files_with, holders_of, home_of
from scripted_host import scripted_host

RETAIN = {"onSuccess": "Retain", "onFailure": "Retain"}
# Prints as the agent itself would, past everything the scripted one can be told to say.
AS_AGENT = ">/proc/$PPID/fd/1"


async def test_the_key_is_nowhere_but_in_the_agents_own_processes(runs: RunStage) -> None:
    await runs.start_operator()
    # One that nobody else on this machine can have.
    key = f"sk-ant-{secrets.token_hex(16)}"
    secret = {"metadata": {"name": "own"}, "stringData": {"ANTHROPIC_API_KEY": key}}
    await runs.stage.api("POST", f"/api/v1/namespaces/{runs.stage.namespace}/secrets", secret)
    agent = {"envFrom": [{"secretRef": {"name": "own"}}]}
    steps = ("nohup 4", "tick 1 6 working", "write a.txt a")
    await runs.run_issue(*steps, run={"agent": agent}, cleanup=RETAIN)
    run = await runs.until_agent_runs()
    home = await home_of(runs, "one")
    looks = 0
    while (await runs.stage.status("one"))["run"]["phase"] == "Executing":
        holders = holders_of(key)
        looks += len(holders) > 2
        assert not [pid for pid in holders if _is_stranger(pid, run["id"])]
        assert files_with(home.parent, key) + files_with(home.parent, "ghs_") == []
    assert looks > 3
    await runs.until_finished()
    assert holders_of(key) == set()
    assert files_with(home.parent, key) + files_with(home.parent, "ghs_") == []


async def test_an_agent_that_shows_its_key_shows_it_to_nobody(runs: RunStage) -> None:
    # The checker searches resources, Events, ConfigMaps, comments and logs at the end.
    await runs.start_operator()
    said = '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}'
    spread = (
        'bash env; echo "$ANTHROPIC_API_KEY" | base64; echo "a$ANTHROPIC_API_KEY" | base64',
        f"bash printf '{said}\\\\n' \"$ANTHROPIC_API_KEY\" {AS_AGENT}",
        f'bash echo "x-api-key: $ANTHROPIC_API_KEY" {AS_AGENT}',
    )
    await runs.run_issue(
        *spread,
        'bash echo "The key is $ANTHROPIC_API_KEY." >ISSUESANDBOX_SUMMARY.md',
        "write a.txt a",
        name="open",
    )
    await runs.run_issue(
        *spread,
        'bash echo "$ANTHROPIC_API_KEY" >"$ANTHROPIC_API_KEY.txt"',
        f'bash echo "I die with $ANTHROPIC_API_KEY" {AS_AGENT}',
        "exit 3",
        name="dying",
        recovery={"saveWork": "Patch"},
    )
    # A session's name goes into the status as it is.
    line = """echo '{"session_id":"'$ANTHROPIC_API_KEY'"}'"""
    named = {"profile": "custom", "command": ["sh", "-c", line]}
    await runs.run_issue(name="named", run={"agent": named})
    # A branch would be there for everybody to read.
    await runs.run_issue("bash env >env.txt", "say Done.", name="careless")
    careless = await runs.until_finished("careless")
    assert (careless["outcome"], careless["reason"]) == ("Failed", "SecretInWork")
    assert careless["savedWork"]["kind"] == "Patch"
    assert "=***" in (await runs.config_map(careless["savedWork"]["ref"]))["patch"]
    assert (await runs.until_finished("named"))["outcome"] == "Succeeded"
    good, bad = await runs.until_finished("open"), await runs.until_finished("dying")
    assert set(await runs.refs()) == {"refs/heads/main", f"refs/heads/{good['branch']}"}
    assert (good["outcome"], bad["outcome"]) == ("Succeeded", "Failed")
    assert (await runs.stage.status("open"))["summary"]["text"] == "The key is ***."
    assert "I die with ***" in bad["message"]
    assert [each["path"] for each in bad["changes"]] == ["***.txt"]
    patch = await runs.config_map(bad["savedWork"]["ref"])
    assert "+***" in patch["patch"]
    pull = await runs.github_get(f"pulls/{good['pullRequest']['number']}")
    assert MODEL_KEY not in json.dumps(pull)
    assert "The key is ***." in pull["body"]


async def test_what_a_repository_brings_along_stays_off_unless_it_is_trusted(
    runs: RunStage, tmp_path: Path
) -> None:
    await runs.start_operator()
    async with scripted_host(200) as (host, visitors):
        for name in ("closed", "trusted"):
            files = hostile(host, tmp_path / name)
            await runs.hub("POST", "repos", {"repository": f"octo/{name}", "files": files})
            issue = {"title": "t", "body": scenario("write a.txt a", "say Done."), "as": "octocat"}
            number = (await runs.hub("POST", f"repos/octo/{name}/issues", issue))["number"]
            agent = {"trustRepositorySettings": name == "trusted"}
            repository = {"repository": f"octo/{name}"}
            run = {"trigger": "1", "agent": agent}
            await runs.stage.apply(name, number, issue=repository, run=run)
        closed = await runs.until_finished("closed")
        assert closed["outcome"] == "Succeeded"
        assert not (tmp_path / "closed").exists(), (tmp_path / "closed").read_text()
        init = await _init_line(runs, closed)
        assert (init["mcp_servers"], init["model"] == "evil") == ([], False)
        assert init["apiKeySource"] == "ANTHROPIC_API_KEY"
        # The same traps do act where they are allowed to: only then does the above mean anything.
        await runs.until_finished("trusted")
        acted = set((tmp_path / "trusted").read_text().split())
        assert {"hook", "helper", "server"} <= acted
        assert len(visitors) == 1


async def test_the_secrets_of_the_sandbox_itself_are_shown_to_nobody(runs: RunStage) -> None:
    await runs.start_operator()
    # Nothing but its Secret tells that this is one.
    value = f"correct horse {secrets.token_hex(6)}"
    secret = {"metadata": {"name": "database"}, "stringData": {"DATABASE": value}}
    await runs.stage.api("POST", f"/api/v1/namespaces/{runs.stage.namespace}/secrets", secret)
    sandbox = {"envFrom": [{"secretRef": {"name": "database"}}]}
    shown = f'bash echo "It is $DATABASE." | tee ISSUESANDBOX_SUMMARY.md {AS_AGENT}'
    told = await runs.run_issue(shown, "write a.txt a", name="told", sandbox=sandbox)
    setup = {"setup": ['echo "$DATABASE"; exit 1']}
    broken = await runs.run_issue(name="broken", sandbox=sandbox, run=setup)
    good, bad = await runs.until_finished("told"), await runs.until_finished("broken")
    assert (good["outcome"], bad["reason"]) == ("Succeeded", "SetupFailed")
    assert (await runs.stage.status("told"))["summary"]["text"] == "It is ***."
    assert bad["message"].endswith("***")
    transcript = await runs.config_map(good["transcript"])
    assert "It is ***." in transcript["transcript"]
    path = f"/apis/events.k8s.io/v1/namespaces/{runs.stage.namespace}/events"
    seen = [
        transcript,
        await runs.stage.api("GET", runs.stage.path()),
        await runs.stage.api("GET", path),
        await runs.comments(told),
        await runs.comments(broken),
    ]
    assert value not in json.dumps(seen)


def _is_stranger(pid: int, run_id: str) -> bool:
    """Tell whether a process is neither the run's supervisor nor below it nor marked by it."""
    try:
        process = psutil.Process(pid)
        line = [*process.parents(), process]
        if process.environ().get("ISSUESANDBOX_RUN") == f":{run_id}:":
            return False
        return not any("supervise" in each.cmdline() for each in line)
    except psutil.Error:
        return False


async def _init_line(runs: RunStage, run: dict[str, Any]) -> dict[str, Any]:
    lines = (await runs.config_map(run["transcript"]))["transcript"].splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    found: dict[str, Any] = next(each for each in told if each.get("subtype") == "init")
    return found
