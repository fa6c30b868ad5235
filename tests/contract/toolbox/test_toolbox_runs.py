"""Whole runs of the scripted agent: profile, supervisor, toolbox, stream and verdict together."""

from __future__ import annotations

import time

import psutil
import pytest
from toolbox_stage import AMPLE, MODEL_KEY, SESSION, Stage, eventually

from issuesandbox.api.spec_agent import Agent, AgentProfile
from issuesandbox.domain.agents.profiles import launch
from issuesandbox.domain.agents.stream import StreamReader
from issuesandbox.domain.agents.verdict import judge
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.supervision import (
    EndedBy,
    Limits,
    RunState,
    kill_command,
    poll_command,
    supervisor_sent,
    sweep_command,
)

FAST = {"ISSUESANDBOX_AGENT_SPEED": "50"}


async def test_a_run_does_the_work_and_tells_all_about_it(stage: Stage) -> None:
    paths = await stage.begin(
        "read README.md\nwrite fix.txt fixed\nsummary I fixed it.\nsay All is done.", env=FAST
    )
    reader = StreamReader()
    pulse = await stage.follow(paths, reader)

    facts = reader.facts
    assert judge(facts, pulse.exit_code, pulse.ended_by).ok
    assert facts.session_id == SESSION
    assert facts.final_text == "All is done."
    assert facts.turns >= 4
    assert facts.usage.output_tokens
    assert facts.cost
    assert facts.last_tool == "Write"
    assert pulse.survivors == 0
    written = await stage.toolbox.download(stage.id, f"{paths.work}/fix.txt", limit=100)
    assert written.strip() == b"fixed"
    summary = await stage.toolbox.download(stage.id, paths.summary, limit=100)
    assert summary.strip() == b"I fixed it."
    assert await stage.processes() == []


async def test_every_option_of_the_profile_is_understood(stage: Stage) -> None:
    agent = Agent(
        model="claude-other",
        max_turns=50,
        max_budget_usd="9.50",
        system_prompt="Be brief.",
        mcp_config='{"mcpServers": {}}',
    )
    paths = await stage.begin("say Hello.", agent=agent, env=FAST)
    reader = StreamReader()
    pulse = await stage.follow(paths, reader)
    verdict = judge(reader.facts, pulse.exit_code, pulse.ended_by)
    assert verdict.ok, verdict


async def test_a_session_is_found_and_resumed(stage: Stage) -> None:
    first = await stage.begin("say One.", env=FAST)
    await stage.follow(first, StreamReader())
    order = launch(Agent(), paths=first, session_id=SESSION, resume=True, limits=AMPLE)
    assert order.session_command is not None
    found = await stage.toolbox.execute(stage.id, order.session_command, seconds=5)
    assert found.exit_code == 0
    other = launch(Agent(), paths=first, session_id=SESSION[::-1], resume=True, limits=AMPLE)
    assert other.session_command is not None
    missing = await stage.toolbox.execute(stage.id, other.session_command, seconds=5)
    assert missing.exit_code != 0
    checked = await stage.toolbox.execute(stage.id, order.check_command, seconds=5)
    assert checked.exit_code == 0


@pytest.mark.parametrize(
    ("scenario", "agent", "reason"),
    [
        ("api 401", Agent(), "AgentUnauthorized"),
        ("api 403", Agent(), "AgentUnauthorized"),
        ("api 529", Agent(), "ModelUnavailable"),
        ("say a\nsay b\nsay c", Agent(max_turns=1), "MaxTurnsReached"),
        ("cost 5\nsay b", Agent(max_budget_usd="1"), "BudgetExceeded"),
        ("crash", Agent(), "AgentKilled"),
        ("exit 0", Agent(), "AgentNoResult"),
        ("exit 9", Agent(), "AgentFailed"),
        ("done\ncrash", Agent(), "AgentKilled"),
        ("say x", Agent(command=("no-such-program",)), "CliMissing"),
    ],
)
async def test_every_bad_end_has_its_word(
    stage: Stage, scenario: str, agent: Agent, reason: str
) -> None:
    fast = {"ISSUESANDBOX_AGENT_SPEED": "2000"}
    paths = await stage.begin(scenario, agent=agent, env=fast)
    reader = StreamReader()
    pulse = await stage.follow(paths, reader)
    verdict = judge(reader.facts, pulse.exit_code, pulse.ended_by)
    assert (verdict.ok, verdict.reason) == (False, reason)


async def test_a_refused_key_is_seen_before_the_agent_gives_up(stage: Stage) -> None:
    paths = await stage.begin("api 401")
    reader = StreamReader()

    async def unauthorized() -> bool:
        pulse = await stage.pulse(poll_command(paths, reader.offset, 0.2, 1 << 20))
        reader.feed(pulse.chunk, pulse.chunk_offset if pulse.chunk else None)
        return reader.facts.unauthorized

    await eventually(unauthorized)
    await stage.pulse(kill_command(paths))
    assert judge(reader.facts, 143, EndedBy.STOP).reason == "AgentUnauthorized"


async def test_a_result_line_is_not_the_end(stage: Stage) -> None:
    paths = await stage.begin("done\nwait 1.5\nsay Later.")
    reader = StreamReader()

    async def result() -> bool:
        pulse = await stage.pulse(poll_command(paths, reader.offset, 0.1, 1 << 20))
        reader.feed(pulse.chunk, pulse.chunk_offset if pulse.chunk else None)
        assert pulse.state is RunState.RUNNING or reader.facts.result_seen
        return reader.facts.result_seen

    await eventually(result)
    pulse = await stage.follow(paths, reader)
    assert reader.facts.final_text == "Later."
    assert pulse.exit_code == 0


@pytest.mark.parametrize("scenario", ["flood 30", "longline 20", "binary 500000", "raw {]"])
async def test_no_output_breaks_a_run(stage: Stage, scenario: str) -> None:
    paths = await stage.begin(f"{scenario}\nunknown odd\nsay Through.", env=FAST)
    reader = StreamReader()
    pulse = await stage.follow(paths, reader)
    verdict = judge(reader.facts, pulse.exit_code, pulse.ended_by)
    assert verdict.ok, verdict
    assert reader.facts.final_text == "Through."


async def test_an_agent_that_defies_everything_is_dead_within_5_s(stage: Stage) -> None:
    # R54
    paths = await stage.begin("nohup 600\ndeaf\nstubborn 3")

    async def grown() -> bool:
        return len(await stage.processes()) > 9

    await eventually(grown)
    began = time.monotonic()
    pulse = await stage.pulse(kill_command(paths))
    assert time.monotonic() - began < 6
    assert (pulse.state, pulse.ended_by, pulse.survivors) == (RunState.ENDED, EndedBy.STOP, 0)
    assert await stage.processes() == []
    assert (await stage.pulse(sweep_command(paths), supervisor_sent())).survivors == 0


async def test_the_key_is_in_no_file_and_no_command_line(stage: Stage) -> None:
    paths = await stage.begin("bash env\nforever 1")
    reader = StreamReader()

    async def talking() -> bool:
        pulse = await stage.pulse(poll_command(paths, reader.offset, 0.1, 1 << 20))
        reader.feed(pulse.chunk, pulse.chunk_offset if pulse.chunk else None)
        return reader.facts.turns > 1

    await eventually(talking)
    for pid in await stage.processes():
        try:
            assert MODEL_KEY not in " ".join(psutil.Process(pid).cmdline())
        except psutil.NoSuchProcess:
            continue
    await stage.pulse(kill_command(paths))
    # The agent itself printed it, and so its own files and its output hold it; nothing else does.
    found = await stage.toolbox.execute(
        stage.id, f"grep -rl {MODEL_KEY} {paths.home} | sort", seconds=10
    )
    named = {line.removeprefix(f"{paths.root}/").split("/")[0] for line in found.output.split()}
    assert named <= {"agent", "run"}
    output = await stage.toolbox.execute(stage.id, f"cat {paths.run}/out.*", seconds=10)
    assert MODEL_KEY in output.output
    assert MODEL_KEY not in Redactor().redact(output.output)


async def test_a_restart_of_the_daemon_does_not_touch_the_run(stage: Stage) -> None:
    paths = await stage.begin("tick 0.2 8 still here\nsay Done.")
    await stage.act("restart-daemon")
    reader = StreamReader()
    pulse = await stage.follow(paths, reader)
    assert judge(reader.facts, pulse.exit_code, pulse.ended_by).ok


async def test_one_call_per_tick_brings_everything(stage: Stage) -> None:
    paths = await stage.begin("tick 0.2 20 still here\nsay Done.")
    before = await stage.calls("toolbox.execute")
    began = time.monotonic()
    reader = StreamReader()
    pulse = await stage.follow(paths, reader)
    took = time.monotonic() - began
    assert pulse.state is RunState.ENDED
    assert await stage.calls("toolbox.execute") - before <= took / 2 + 2


async def test_the_limits_hold_while_nobody_looks(stage: Stage) -> None:
    # R75
    paths = await stage.begin("tick 0.3 1000 busy", limits=Limits(inactivity=30, agent=2))

    async def quiet() -> bool:
        return await stage.processes() == []

    await eventually(quiet)
    reader = StreamReader()
    pulse = await stage.follow(paths, reader)
    assert judge(reader.facts, pulse.exit_code, pulse.ended_by).reason == "AgentTimeout"


async def test_a_custom_program_is_judged_by_its_exit_code(stage: Stage) -> None:
    program = 'cat; echo "$ISSUESANDBOX_SUMMARY_FILE"; exit $CODE'
    for code, ok in (("0", True), ("4", False)):
        agent = Agent(profile=AgentProfile.CUSTOM, command=("sh", "-c", program))
        paths = await stage.begin("", agent=agent, env={"CODE": code})
        reader = StreamReader(AgentProfile.CUSTOM)
        pulse = await stage.follow(paths, reader)
        verdict = judge(reader.facts, pulse.exit_code, pulse.ended_by)
        assert verdict.ok is ok
        assert reader.facts.last_words == paths.summary
