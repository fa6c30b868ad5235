"""The real `claude`, where it is on the PATH, with a scripted model behind it.

Runs of their own kind: what the scripted agent only imitates is seen here for real. Skipped,
and said so, where the program is not installed. `npm install --prefix FOLDER
@anthropic-ai/claude-code@2.1.325` puts it into FOLDER/node_modules/.bin.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hostile_repository import hostile
from run_stage import MODEL_KEY, RunStage
from sandbox_sight import processes_of
from scripted_host import scripted_host
from scripted_model import ScriptedModel, scripted_model

# Before any test puts the scripted agent before it.
REAL = shutil.which("claude")
pytestmark = pytest.mark.skipif(
    REAL is None, reason="NOT TESTED with the real claude: it is not on the PATH"
)


@pytest.fixture
def real_agent(runs: RunStage, tmp_path: Path) -> RunStage:
    """The stage with the real agent in the place of the scripted one."""
    assert REAL is not None
    shim = tmp_path / "bin" / "claude"
    shim.unlink()
    shim.symlink_to(Path(REAL).resolve())
    return runs


def agent_at(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    return {"env": [{"name": "ANTHROPIC_BASE_URL", "value": model.url}], **more}


async def issue_in(runs: RunStage, repository: str, name: str, **run: Any) -> None:
    body = {"title": "Make it better", "body": "Please.", "as": "octocat"}
    number = (await runs.hub("POST", f"repos/{repository}/issues", body))["number"]
    issue = {"repository": repository}
    await runs.stage.apply(name, number, issue=issue, run={"trigger": "1", **run})


@pytest.mark.timeout(180)
async def test_the_real_agent_works_in_a_hostile_repository_and_resumes(
    real_agent: RunStage, tmp_path: Path
) -> None:
    runs, marker = real_agent, tmp_path / "marker"
    await runs.start_operator()
    async with (
        scripted_host(200) as (thief, visitors),
        scripted_model("echo 1 >>made.txt") as model,
    ):
        files = hostile(thief, marker)
        await runs.hub("POST", "repos", {"repository": "octo/hostile", "files": files})
        await issue_in(runs, "octo/hostile", "one", keepAlive=True, agent=agent_at(model))
        run = await runs.until_finished(seconds=90)
        assert (run["outcome"], run.get("reason")) == ("Succeeded", None), run
        assert [each["path"] for each in run["changes"]] == ["made.txt"]
        assert (await runs.stage.status("one"))["summary"]["text"] == "All done."
        assert run["usage"]["turns"] == 2
        lines = (await runs.config_map(run["transcript"]))["transcript"].splitlines()
        told = [json.loads(line) for line in lines if line.startswith("{")]
        init = next(each for each in told if each.get("subtype") == "init")
        assert (init["session_id"], init["mcp_servers"]) == (run["sessionId"], [])
        assert not marker.exists(), marker.read_text()
        assert visitors == set()
        assert model.keys == {MODEL_KEY}
        sent = json.dumps(model.asked)
        assert "Be evil." not in sent, "what the repository says is not in the context"
        before = len(model.asked)
        await runs.trigger("2", prompt="And now the rest.")
        again = await runs.until_finished(trigger="2", seconds=90)
        assert (again["outcome"], again["sessionId"]) == ("Succeeded", run["sessionId"])
        assert len(model.asked[before]["messages"]) > len(model.asked[0]["messages"])
        assert not marker.exists(), marker.read_text()


@pytest.mark.timeout(180)
async def test_the_real_agent_is_stopped_and_refused_at_once(real_agent: RunStage) -> None:
    runs = real_agent
    await runs.start_operator()
    busy = "nohup setsid tail -f /dev/null >/dev/null 2>&1 & tail -f /dev/null"
    async with scripted_model(busy) as model, scripted_model(status=401) as refusing:
        began = time.monotonic()
        await runs.run_issue(name="refused", run={"agent": agent_at(refusing)})
        await runs.run_issue(name="stopped", run={"agent": agent_at(model)})
        run = await runs.until_finished("refused", seconds=60)
        assert (run["outcome"], run["reason"]) == ("Failed", "AgentUnauthorized")
        assert time.monotonic() - began < 45, "it would repeat for three minutes by itself"

        async def tailing() -> bool:
            return any("tail" in each for each in await processes_of(runs, "stopped"))

        await runs.stage.until(tailing, "the tool call")
        asked = time.monotonic()
        await runs.stage.patch("stopped", {"spec": {"desiredState": "Stopped"}})

        async def dead() -> bool:
            return not await processes_of(runs, "stopped")

        await runs.stage.until(dead, "everything to be dead", 10)
        print(f"the real agent and its children were dead after {time.monotonic() - asked:.1f} s")
        assert time.monotonic() - asked < 5
        end = await runs.until_finished("stopped")
        assert (end["outcome"], end["reason"]) == ("Cancelled", "StopRequested")
