"""The baseline of a run: the steps from an issue to its pull request, one after another.

What somebody would write in an afternoon: the Daytona SDK, git in the sandbox and plain requests
to GitHub. It keeps no record, follows nobody, stops for nobody, and hands its GitHub token to the
sandbox. Reads one job per line from standard input, a JSON object, and answers each with a line.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig, Sandbox

from issuesandbox.clock import SystemClock


class GitHub:
    """Requests as `curl` makes them: one connection each."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send one request and return its answer."""
        request = urllib.request.Request(
            f"{self._url}/{path}",
            method=method,
            headers=self._headers,
            data=json.dumps(body).encode() if body is not None else None,
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def run(daytona: Daytona, github: GitHub, token: str, job: dict[str, Any]) -> int:
    """Bring one issue to its pull request and return its number."""
    repository, number = job["repository"], job["number"]
    issue = github.call("GET", f"repos/{repository}/issues/{number}")
    view = github.call("GET", f"repos/{repository}")
    comment = {"body": "Working on it."}
    github.call("POST", f"repos/{repository}/issues/{number}/comments", comment)
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(name=f"script-{number}"))
    work = f"{sandbox.get_user_home_dir()}/work"
    _must(sandbox, "command -v git && command -v sh")
    base, branch = view["default_branch"], f"script-{number}"
    user = "x-access-token"
    sandbox.git.clone(view["clone_url"], work, base, username=user, password=token)
    sandbox.git.create_branch(work, branch)
    sandbox.git.checkout_branch(work, branch)
    text = f"# {issue['title']}\n\n{issue['body']}\n"
    sandbox.fs.upload_file(text.encode(), f"{work}/../issue.md")
    _must(sandbox, job["command"], work, job["env"])
    sandbox.git.add(work, ["."])
    sandbox.git.commit(work, f"Fix #{number}", "script", "script@example.com")
    sandbox.git.push(work, user, token)
    order = {
        "title": issue["title"],
        "head": branch,
        "base": base,
        "body": f"Closes #{number}",
    }
    pull: int = github.call("POST", f"repos/{repository}/pulls", order)["number"]
    sandbox.delete()
    return pull


def _must(
    sandbox: Sandbox, command: str, cwd: str | None = None, env: dict[str, str] | None = None
) -> None:
    done = sandbox.process.exec(command, cwd=cwd, env=env)
    if done.exit_code != 0:
        raise SystemExit(f"{command}: {done.exit_code} {done.result}")


def main() -> None:
    """Do the jobs that come."""
    token = os.environ["GITHUB_TOKEN"]
    config = DaytonaConfig(
        api_key=os.environ["DAYTONA_API_KEY"], api_url=os.environ["DAYTONA_API_URL"]
    )
    daytona, github = Daytona(config), GitHub(os.environ["GITHUB_API_URL"], token)
    clock = SystemClock()
    for line in sys.stdin:
        began = clock.now().timestamp()
        pull = run(daytona, github, token, json.loads(line))
        print(json.dumps({"began": began, "pull": pull}), flush=True)


if __name__ == "__main__":
    main()
