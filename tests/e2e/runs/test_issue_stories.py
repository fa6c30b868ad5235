"""From what people do on GitHub to sandboxes, pull requests and comments: nothing in between faked.

GitHub delivers real webhooks to the adapter, also of everything that adapter and operator do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest_asyncio
from adapter_process import SECRET, Adapters
from run_stage import QUICK, REPOSITORY, RunStage, scenario

from issuesandbox.domain.webhook.resource_names import resource_name

POLICY = """
defaults:
  template:
    run: {keepAlive: true}
"""


@dataclass
class Issues:
    """Issues on GitHub, with an operator and an adapter behind them."""

    runs: RunStage
    adapters: Adapters

    async def open(self, *script: str) -> int:
        return await self.runs.open_issue(*script)

    async def act(self, number: int, verb: str, **body: Any) -> Any:
        path = f"repos/{REPOSITORY}/issues/{number}/{verb}"
        return await self.runs.hub("POST", path, {"as": "octocat", **body})

    async def status(self, number: int) -> dict[str, Any]:
        return await self.runs.stage.status(resource_name(REPOSITORY, number))

    async def run(self, number: int, begins: str = "", after: str = "") -> dict[str, Any]:
        """Wait for the end of the run whose trigger begins so, and which is not the last one."""

        async def over() -> Any:
            run = (await self.status(number)).get("run", {})
            fits = run.get("trigger", "").startswith(begins) and run.get("id") != after
            return run if fits and run.get("phase") == "Finished" else None

        run: dict[str, Any] = await self.runs.stage.until(over, f"a run of #{number}", 60)
        return run

    async def told(self, number: int, *words: str) -> str:
        """Wait until the only comment of ours says all of this."""

        async def said() -> str:
            found = [each["body"] for each in await self.runs.comments(number)]
            own = [each for each in found if "<!-- issuesandbox:status" in each]
            assert len(own) <= 1, own
            return own[0] if own and all(each in own[0] for each in words) else ""

        return str(await self.runs.stage.until(said, f"{words} under #{number}", 40))

    async def sandboxes(self) -> dict[str, str]:
        """Return the ids of all live sandboxes by name."""
        return {each["name"]: each["id"] for each in await self.runs.stage.sandboxes()}

    async def settled(self) -> None:
        """Wait until every delivery was answered; none may have failed."""
        await self.runs.hub("POST", "webhooks/drain")
        answers = [each for each in await self.journal() if each["type"] == "delivery"]
        assert {each["status"] for each in answers} <= {200, 202}

    async def journal(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.runs.hub("GET", "journal")
        return found


@pytest_asyncio.fixture
async def issues(runs: RunStage) -> AsyncIterator[Issues]:
    stage = runs.stage
    adapters = Adapters(stage.access, stage.namespace, runs.github, stage.folder)
    adapters.install()
    name = {"name": "issuesandbox-webhook-policy"}
    policy = {"metadata": name, "data": {"policy.yaml": POLICY}}
    await stage.api("POST", f"/api/v1/namespaces/{stage.namespace}/configmaps", policy)
    person = {"permission": "admin", "association": "OWNER"}
    await runs.hub("PUT", "users/octocat", person)
    child = adapters.spawn()
    timings = stage.timings(**QUICK, comment_refresh="1s")
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)

    async def ready() -> bool:
        assert child.returncode is None, child.last_lines(20)
        try:
            async with runs.http.get(f"{adapters.urls[0]}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    await stage.until(ready, "the adapter")
    hooks = [f"{url}/webhook" for url in adapters.urls]
    await runs.hub("PUT", "webhooks", {"urls": hooks, "secret": SECRET})
    yield Issues(runs, adapters)
    await adapters.stop()


async def test_the_same_issue_reuses_its_sandbox_and_others_have_their_own(issues: Issues) -> None:
    # R1 R14 R115 R130
    first = await issues.open("write a.txt a", "say Done.")
    begun = await issues.run(first)
    assert begun["outcome"] == "Succeeded"
    assert "Solved" in await issues.told(first, begun["pullRequest"]["url"])
    one = (await issues.sandboxes())["claude-issue-1"]

    await issues.act(first, "edit", body=scenario("write b.txt b"))
    second, third = await issues.open("write c.txt c"), await issues.open("write d.txt d")
    again = await issues.run(first, after=begun["id"])
    assert again["outcome"] == "Succeeded"
    assert again["pullRequest"]["number"] == begun["pullRequest"]["number"]
    for number in (second, third):
        assert (await issues.run(number))["outcome"] == "Succeeded"
    found = await issues.sandboxes()
    assert found["claude-issue-1"] == one
    assert set(found) == {f"claude-issue-{number}" for number in (first, second, third)}

    # What we ourselves did on GitHub was delivered as well, and began nothing.
    await issues.settled()
    delivered = [each["event"] for each in await issues.journal() if each["type"] == "delivery"]
    assert {"push", "pull_request", "issue_comment"} <= set(delivered)
    for number, past in ((first, 1), (second, 0), (third, 0)):
        assert len((await issues.status(number)).get("history", [])) == past

    # The pull request is merged, its issue closed with it: the sandbox ends.
    pull = again["pullRequest"]["number"]
    await issues.runs.hub("POST", f"repos/{REPOSITORY}/pulls/{pull}/merge", {"as": "octocat"})

    async def ended() -> bool:
        listed = await issues.runs.stage.sandboxes()
        return not [each for each in listed if each["id"] == one and each["state"] == "started"]

    await issues.runs.stage.until(ended, "the sandbox of the merged issue to end")


async def test_after_all_sandboxes_were_wiped_an_edited_issue_gets_a_new_one(
    issues: Issues,
) -> None:
    # R19 R32 R129
    number = await issues.open("write a.txt a")
    begun = await issues.run(number)
    before = await issues.sandboxes()
    await issues.runs.stage.admin("POST", "wipe", {})
    work = ("bash true", "tick 1 8 working", "write b.txt b", "summary Wrote b.")
    await issues.act(number, "edit", body=scenario(*work))
    going = await issues.told(number, "**Last tool:** `Bash`", "**Elapsed:**")
    assert "Working on it: executing" in going
    again = await issues.run(number, after=begun["id"])
    assert again["outcome"] == "Succeeded"
    after = await issues.sandboxes()
    assert set(after) == set(before) == {"claude-issue-1"}
    assert after != before
    last = await issues.told(number, "Solved", "Wrote b.")
    assert "not running" not in going + last
    assert (await issues.status(number))["conditions"]


async def test_a_closed_issue_is_stopped_and_cleaned_up_and_runs_anew_when_reopened(
    issues: Issues,
) -> None:
    # R60 R138
    number = await issues.open("forever 1")
    name = resource_name(REPOSITORY, number)
    stage = issues.runs.stage
    await stage.until_phase(name, "Executing")
    uid = (await stage.get(name))["metadata"]["uid"]
    await issues.act(number, "close")
    run = await issues.run(number)
    assert (run["outcome"], (await stage.get(name))["spec"]["desiredState"]) == (
        "Cancelled",
        "Stopped",
    )
    assert "Stopped" in await issues.told(number, "kept:")
    (sandbox,) = await stage.sandboxes()
    assert sandbox["state"] == "stopped"

    await issues.act(number, "edit", body=scenario("write a.txt a"))
    await issues.act(number, "reopen")
    again = await issues.run(number, "reopen-")
    assert again["outcome"] == "Succeeded"
    assert (await stage.get(name))["metadata"]["uid"] == uid
    (same,) = await stage.sandboxes()
    assert same["id"] == sandbox["id"]
