"""What each setting does to a model that is silent for long: printed, and held to it.

Time runs thirty times as fast: 60 s of inactivity are 2 s here.
"""

from __future__ import annotations

import asyncio

from toolbox_stage import Stage

from issuesandbox.api.spec_agent import Agent
from issuesandbox.api.spec_common import EnvVar
from issuesandbox.domain.agents.stream import StreamReader
from issuesandbox.domain.agents.verdict import judge
from issuesandbox.domain.supervision import Limits

_SPEED = 30.0


def _settings(api_timeout: float) -> Agent:
    # The script counts this one in its own seconds.
    return Agent(env=(EnvVar(name="API_TIMEOUT_MS", value=f"{api_timeout * 1000:.0f}"),))


_CASES = {
    # Name: (scenario, API time-out, inactivity, a working child counts, what becomes of it)
    "no answer for 90 s, profile's API time-out": ("wait 90", 45, 60, False, "AgentCompleted"),
    "no answer for 300 s, profile's API time-out": ("wait 300", 45, 60, False, "AgentCompleted"),
    "no answer for 90 s, no API time-out": ("wait 90", 600, 60, False, "InactivityTimeout"),
    "no answer for 300 s, inactivity 400 s": ("wait 300", 600, 400, False, "AgentCompleted"),
    "open stream silent for 90 s": ("stall 90", 45, 60, False, "InactivityTimeout"),
    "open stream with pings for 300 s": ("ping 300 10", 45, 60, False, "AgentCompleted"),
    "silent build of 120 s": (
        "bash timeout 4 sh -c 'while :; do :; done'; true",
        45,
        60,
        True,
        "AgentCompleted",
    ),
    "output each 30 s for 3 min": ("tick 30 6 slow", 45, 60, False, "AgentCompleted"),
}


async def test_what_each_setting_does_to_a_silent_model(stage: Stage) -> None:
    # R70
    async def run(number: int, name: str) -> tuple[str, str]:
        scenario, api_timeout, inactivity, or_child, _ = _CASES[name]
        limits = Limits(inactivity=inactivity / _SPEED, agent=40, or_child=or_child)
        paths = await stage.begin(
            f"speed {_SPEED:g}\n{scenario}\nsay Done.",
            session=f"6d0a2c7e-0000-4000-8000-{number:012d}",
            agent=_settings(api_timeout),
            limits=limits,
        )
        reader = StreamReader()
        pulse = await stage.follow(paths, reader, within=45)
        verdict = judge(reader.facts, pulse.exit_code, pulse.ended_by)
        return name, verdict.reason

    outcomes = await asyncio.gather(*(run(index, name) for index, name in enumerate(_CASES)))
    for name, reason in outcomes:
        print(f"{name}: {reason}")
    assert dict(outcomes) == {name: case[-1] for name, case in _CASES.items()}
