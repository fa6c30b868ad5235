"""What the source of signs of life means for a run that prints nothing for a while."""

from __future__ import annotations

import asyncio

import pytest
from run_stage import RunStage

# One second of the test stands for so many of the story.
SPEED = 8
# Shown to the agent as it is where limits.inactivity is a minute.
PATIENCE = {"name": "API_TIMEOUT_MS", "value": "45000"}
# What the model does, limits.inactivity in seconds, its source, and what becomes of the run.
MODELS = (
    ("wait 90", 60, "Output", None),
    ("wait 300", 60, "Output", None),
    ("ping 300", 60, "Output", None),
    ("stall 90", 60, "Output", "InactivityTimeout"),
    ("stall 90", 60, "OutputOrChild", "InactivityTimeout"),
    ("stall 90", 120, "Output", None),
    ("stall 300", 120, "Output", "InactivityTimeout"),
    ("stall 300", 400, "Output", None),
)
WORDS = {
    "wait": "the model does not answer for {} s",
    "ping": "the model sends only pings for {} s",
    "stall": "the model falls silent inside an answer for {} s",
}


async def test_a_healthy_build_without_output_needs_its_children_to_count(runs: RunStage) -> None:
    # R70
    await runs.start_operator()
    # An agent announces a command after 3 s; from then on the build is silent for 9 s.
    work = "head -c 200000 /dev/urandom | cksum >/dev/null"
    build = f"bash for i in $(seq 48); do {work}; sleep 0.25; done"
    cases = {
        "build-output": (build, "Output"),
        "build-child": (build, "OutputOrChild"),
        "hung-output": ("bash sleep 30", "Output"),
        "hung-child": ("bash sleep 30", "OutputOrChild"),
    }
    for name, (step, source) in cases.items():
        limits = {"inactivity": "5s", "agent": "60s", "inactivitySource": source}
        await runs.run_issue(step, "write a.txt a", name=name, run={"limits": limits})
    ends = await asyncio.gather(*(runs.until_finished(name, 60) for name in cases))
    reasons = {name: run.get("reason") for name, run in zip(cases, ends, strict=True)}
    for name, reason in reasons.items():
        print(f"inactivitySource {cases[name][1]}, {name.partition('-')[0]}: {reason or 'done'}")
    assert reasons == {
        "build-output": "InactivityTimeout",
        "build-child": None,
        "hung-output": "InactivityTimeout",
        "hung-child": "InactivityTimeout",
    }


@pytest.mark.timeout(180)
async def test_what_each_setting_makes_of_a_silent_model(
    runs: RunStage, capsys: pytest.CaptureFixture[str]
) -> None:
    # R68, R70
    await runs.start_operator()
    for index, (step, seconds, source, _) in enumerate(MODELS):
        limits = {
            "inactivity": f"{seconds * 1000 // SPEED}ms",
            "agent": "120s",
            "inactivitySource": source,
        }
        await runs.run_issue(
            f"speed {SPEED}",
            step,
            "write a.txt a",
            name=f"model-{index}",
            run={"limits": limits, "agent": {"env": [PATIENCE]}},
        )
    names = [f"model-{index}" for index in range(len(MODELS))]
    ends = await asyncio.gather(*(runs.until_finished(name, 120) for name in names))
    with capsys.disabled():
        print()
        for (step, seconds, source, _), run in zip(MODELS, ends, strict=True):
            verb, length = step.split()
            what = WORDS[verb].format(length)
            end = "ended: InactivityTimeout" if run.get("reason") else "goes on"
            print(f"{what}; inactivity {seconds} s, {source}: {end}")
    assert [run.get("reason") for run in ends] == [each[3] for each in MODELS]
