"""No end-to-end test with a simulator escapes the checker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.e2e.court import Court

from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.daytona.config import SimulatorConfig
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.local.github.server import GitHubConfig, GitHubSimulator

E2E = Path(__file__).parents[1] / "e2e"
AS_A_PROCESS = re.compile(r'"local", "(up|daytona|github)"|"make", "up"|running_world\(')


async def test_a_simulator_that_was_never_judged_fails_its_test() -> None:
    court = Court()
    with pytest.raises(AssertionError, match="the checker did not judge"), court.in_session():
        async with Simulator(SimulatorConfig()):
            pass


async def test_a_github_that_was_never_judged_fails_its_test() -> None:
    court = Court()
    with pytest.raises(AssertionError, match="the checker did not judge"), court.in_session():
        async with GitHubSimulator(GitHubConfig()):
            pass


async def test_simulators_that_were_judged_are_fine(tmp_path: Path) -> None:
    court = Court()
    with court.in_session():
        async with (
            Simulator(SimulatorConfig()) as simulator,
            GitHubSimulator(GitHubConfig()) as github,
        ):
            sources = Sources("installation", simulator.admin_url, github.url)
            # Who is judged is noted first: that this cluster cannot be watched is another matter.
            with pytest.raises(Exception, match="kube-config"):
                async with court.judged(sources, tmp_path / "no-kubeconfig"):
                    pass


def test_the_court_sits_in_every_end_to_end_test() -> None:
    fixture = "@pytest.fixture(autouse=True)\ndef court("
    assert fixture in (E2E / "conftest.py").read_text()
    others = [path.name for path in E2E.rglob("*.py") if "def court(" in path.read_text()]
    assert others == ["conftest.py"]


def test_a_world_that_runs_as_a_process_is_judged_by_the_module_that_starts_it() -> None:
    starters = [path for path in E2E.rglob("*.py") if AS_A_PROCESS.search(path.read_text())]
    assert starters
    escaped = [path.name for path in starters if "judged(" not in path.read_text()]
    assert escaped == []
