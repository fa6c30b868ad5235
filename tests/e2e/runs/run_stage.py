"""A stage with everything a run needs: GitHub with real git, and an agent on the PATH."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import aiohttp
from operator_stage import Stage

from issuesandbox.local.github.server import GitHubSimulator

REPOSITORY = "octo/hello"
# An agent is looked at more often than in production, and work is not held as long.
QUICK = {
    "run_tick": "300ms",
    "work_hold": "15s",
    "rescue_hold": "40s",
    "tell_limit": "20s",
    "trigger_debounce": "1s",
    "comment_gap": "500ms",
}
PERSON = "person-token"
MODEL_KEY = "sk-ant-planted-0123456789abcdef"
FILES = {"README.md": "hello\n", "src/app.py": "print('hello')\n"}


def scenario(*lines: str) -> str:
    """Return the body of an issue that tells the scripted agent what to do."""
    steps = "\n".join(lines)
    return f"Please do this.\n\n```scenario\n{textwrap.dedent(steps)}\n```\n"


@dataclass
class RunStage:
    """An operator's stage and a GitHub beside it."""

    stage: Stage
    github: GitHubSimulator
    http: aiohttp.ClientSession

    async def start_operator(self, **settings: str) -> Any:
        """Start an operator that acts as the App on the simulated GitHub."""
        timings = {"ISSUESANDBOX_TIMINGS": self.stage.timings(**QUICK)}
        return await self.stage.start_operator(**{**self.credentials(), **timings, **settings})

    def credentials(self) -> dict[str, str]:
        return {
            "GITHUB_API_URL": self.github.url,
            "GITHUB_APP_ID": str(self.github.app_id),
            "GITHUB_APP_PRIVATE_KEY": self.github.app_private_key,
        }

    async def hub(self, method: str, path: str, body: Any = None) -> Any:
        """Call the admin API of the simulated GitHub."""
        url = f"{self.github.admin_url}/{path}"
        async with self.http.request(method, url, json=body) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return await answer.json() if text else None

    async def open_issue(self, *script: str, title: str = "Make it better") -> int:
        """Open an issue whose text is a scenario for the agent; return its number."""
        body = {"title": title, "body": scenario(*script), "as": "octocat"}
        issue = await self.hub("POST", f"repos/{REPOSITORY}/issues", body)
        return int(issue["number"])

    async def run_issue(self, *script: str, name: str = "one", **spec: Any) -> int:
        """Open an issue and ask for a run of it."""
        number = await self.open_issue(*script)
        await self.stage.apply(name, number, run={"trigger": "1", **spec.pop("run", {})}, **spec)
        return number

    async def until_finished(
        self, name: str = "one", seconds: float = 40, trigger: str = "1"
    ) -> dict[str, Any]:
        """Wait for the end of a run and return it."""

        async def finished() -> bool:
            run = (await self.stage.status(name)).get("run", {})
            return run.get("trigger") == trigger and run.get("phase") == "Finished"

        await self.stage.until(finished, f"the run of {name} to finish", seconds)
        run: dict[str, Any] = (await self.stage.status(name))["run"]
        return run

    async def until_run(self, phase: str, name: str = "one", seconds: float = 30) -> Any:
        """Wait until a run is in a phase and return it."""

        async def reached() -> Any:
            run = (await self.stage.status(name)).get("run", {})
            return run if run.get("phase") == phase else None

        return await self.stage.until(reached, f"the run of {name} to be {phase}", seconds)

    async def until_agent_runs(self, name: str = "one", trigger: str = "1") -> dict[str, Any]:
        """Wait until the agent of a run has been started and return the run."""

        async def started() -> Any:
            run = (await self.stage.status(name)).get("run", {})
            fits = run.get("trigger") == trigger and run.get("agentStartedAt")
            return run if fits else None

        run: dict[str, Any] = await self.stage.until(started, f"the agent of {name}")
        return run

    async def trigger(self, value: str, name: str = "one", **run: Any) -> None:
        """Ask for another run."""
        await self.stage.patch(name, {"spec": {"run": {"trigger": value, **run}}})

    async def processes(self) -> list[int]:
        """Return the processes that live in any sandbox."""
        found = await self.stage.admin("GET", "processes")
        return [pid for pids in found.values() for pid in pids]

    async def refs(self) -> dict[str, str]:
        refs: dict[str, str] = await self.hub("GET", f"repos/{REPOSITORY}/refs")
        return refs

    async def comments(self, number: int) -> list[dict[str, Any]]:
        """Return the comments on an issue."""
        found: list[dict[str, Any]] = await self.github_get(f"issues/{number}/comments")
        return found

    async def config_map(self, name: str) -> dict[str, str]:
        """Return what a ConfigMap holds."""
        path = f"/api/v1/namespaces/{self.stage.namespace}/configmaps/{name}"
        data: dict[str, str] = (await self.stage.api("GET", path))["data"]
        return data

    async def warnings(self, name: str = "one") -> list[str]:
        """Return the reason of every Event that warned of something."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.stage.namespace}/events"
        events = (await self.stage.api("GET", path))["items"]
        own = [each for each in events if each["regarding"]["name"] == name]
        return [each["reason"] for each in own if each["type"] == "Warning"]

    async def github_get(self, path: str) -> Any:
        """Read something of the repository through GitHub's own API."""
        url = f"{self.github.url}/repos/{REPOSITORY}/{path}"
        async with self.http.get(url, headers={"Authorization": f"Bearer {PERSON}"}) as answer:
            return await answer.json()
