"""The supervisor alone: start, output, limits, end."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import psutil
from inside_sandbox import AMPLE, SECRET, InsideSandbox, alive, eventually

from issuesandbox.domain.supervision import (
    EndedBy,
    Limits,
    RunState,
    kill_command,
    parse_pulse,
    start_command,
)


def test_dash_and_bash_are_installed() -> None:
    assert shutil.which("dash")
    assert shutil.which("bash")


def test_an_agent_runs_to_its_end_and_what_it_left_is_killed(sandbox: InsideSandbox) -> None:
    begun = sandbox.start(
        "echo hello; nohup setsid sleep 600 >/dev/null 2>&1 & echo $! >child; sleep 0.7; exit 3"
    )
    assert begun.pulse.fresh
    assert begun.seconds < 0.7
    child = sandbox.number("child")

    ended = sandbox.poll(wait=10)

    # It does not wait for its full time.
    assert ended.seconds < 5
    assert ended.pulse.state is RunState.ENDED
    assert (ended.pulse.exit_code, ended.pulse.ended_by) == (3, None)
    assert ended.pulse.survivors == 0
    assert ended.pulse.chunk == b"hello\n"
    assert not alive(child)


def test_of_many_starts_exactly_one_starts_the_agent(sandbox: InsideSandbox) -> None:
    line = start_command(
        sandbox.paths, AMPLE, ["/bin/sh", "-c", "echo x >>started; sleep 600"], "/dev/null"
    )
    starting = [sandbox.spawn(line) for _ in range(6)]
    pulses = [parse_pulse(process.communicate()[0]) for process in starting]

    assert [pulse.fresh for pulse in pulses].count(True) == 1
    # None of the others may take a run that is just being started for a lost one.
    assert {pulse.state for pulse in pulses} <= {RunState.STARTING, RunState.RUNNING}
    eventually((Path(sandbox.paths.work) / "started").exists)
    sandbox.stop()
    assert (Path(sandbox.paths.work) / "started").read_text() == "x\n"


def test_the_environment_reaches_the_agent_unchanged_and_nobody_else(
    sandbox: InsideSandbox,
) -> None:
    sandbox.start(
        "echo $MODEL_KEY/$dir/$size/$value/$line/$PATH/${ISSUESANDBOX_PATH-none}/${LC_ALL-none};"
        "umask; grep SigIgn /proc/$$/status; sleep 600"
    )
    eventually(lambda: sandbox.poll().pulse.chunk.count(b"\n") == 3)
    told = sandbox.poll().pulse.chunk.decode().splitlines()
    environment = sandbox.environment()
    assert told[0] == f"{SECRET}/mine/mine/mine/mine/{environment['PATH']}/none/none"
    assert told[1] == "0022"
    # Its tools are forks of the shell itself there, so they show the environment it began with.
    in_one = "busybox" in (sandbox.bin / "sh").readlink().name
    if not in_one:
        # Interrupt and quit would otherwise be ignored for ever.
        ignored = int(told[2].split()[1], 16)
        assert not ignored & (1 << (signal.SIGINT - 1))

    supervisor = sandbox.supervisor_pid()
    tree = {supervisor, *(each.pid for each in psutil.Process(supervisor).children(recursive=True))}
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            held = SECRET in str(process.environ())
            assert SECRET not in " ".join(process.cmdline())
        except (psutil.Error, OSError):
            continue
        # Its own tools do not get it either.
        is_tool = process.name() in ("dd", "awk", "cat") and not in_one
        assert not held or (process.pid in tree and not is_tool)
    kept = [
        path for path in sandbox.home.rglob("*") if path.is_file() and path.parent.name != "bin"
    ]
    assert kept
    for path in kept:
        if not path.name.startswith("out."):
            assert SECRET.encode() not in path.read_bytes()
    sandbox.stop()


def test_a_stop_ends_an_agent_that_obeys_and_its_children_at_once(sandbox: InsideSandbox) -> None:
    sandbox.start("setsid sleep 600 & echo $! >child; echo up; while :; do sleep 0.1; done")
    child = sandbox.number("child")

    stopped = sandbox.stop()

    assert stopped.seconds < 3
    assert stopped.pulse.state is RunState.ENDED
    assert (stopped.pulse.exit_code, stopped.pulse.ended_by) == (143, EndedBy.STOP)
    assert stopped.pulse.survivors == 0
    assert not alive(child)


def test_a_stop_ends_an_agent_that_does_not_listen_within_5_s(sandbox: InsideSandbox) -> None:
    # R54: the children are deaf as well, in sessions of their own, orphaned and still chatty.
    deaf = "trap '' TERM INT HUP; while :; do echo noise; sleep 0.2; done"
    sandbox.start(
        f'trap "" TERM; for i in 1 2 3; do (setsid bash -c "{deaf}" & echo $! >child$i) & done;'
        "while :; do sleep 1; done"
    )
    children = [sandbox.number(f"child{index}") for index in (1, 2, 3)]
    began = time.monotonic()
    line = sandbox.spawn(kill_command(sandbox.paths))
    eventually(lambda: not any(alive(child) for child in children), within=6)
    took = time.monotonic() - began
    pulse = parse_pulse(line.communicate()[0])
    assert took < 5
    assert (pulse.exit_code, pulse.survivors) == (137, 0)


def test_a_start_after_a_stop_starts_nothing(sandbox: InsideSandbox) -> None:
    stopped = sandbox.stop()
    assert stopped.pulse.state is RunState.ENDED

    late = sandbox.start("touch started")

    assert not late.pulse.fresh
    assert late.pulse.ended_by is EndedBy.STOP
    assert not (Path(sandbox.paths.work) / "started").exists()


def test_a_silent_agent_is_ended_although_nobody_asks(sandbox: InsideSandbox) -> None:
    # R68, R75
    sandbox.start("echo begun; sleep 600", Limits(inactivity=1))
    began = time.monotonic()
    over = sandbox.folder / "over"
    eventually(lambda: over.read_text().strip())
    assert time.monotonic() - began < 4
    pulse = sandbox.poll().pulse
    assert (pulse.state, pulse.ended_by) == (RunState.ENDED, EndedBy.INACTIVITY)


def test_a_chatty_agent_is_ended_by_its_other_limits(dash_sandbox: InsideSandbox) -> None:
    # R70, R71
    chatty = "while :; do echo; sleep 0.3; done"
    dash_sandbox.start(chatty, Limits(inactivity=1, agent=2, run=60))
    assert dash_sandbox.until(RunState.ENDED).ended_by is EndedBy.AGENT
    dash_sandbox.next_run()
    dash_sandbox.start(chatty, Limits(inactivity=30, agent=30, run=1))
    assert dash_sandbox.until(RunState.ENDED).ended_by is EndedBy.RUN


def test_new_limits_count_at_once_from_the_old_start(dash_sandbox: InsideSandbox) -> None:
    dash_sandbox.start("while :; do echo; sleep 0.2; done", Limits(agent=1.5))
    dash_sandbox.poll(limits=Limits(agent=60))
    eventually(lambda: dash_sandbox.poll().pulse.started_ago > 2)
    assert dash_sandbox.poll().pulse.state is RunState.RUNNING
    dash_sandbox.poll(limits=Limits(agent=1))
    assert dash_sandbox.until(RunState.ENDED, within=4).ended_by is EndedBy.AGENT


def test_only_a_child_that_works_is_a_sign_of_life(sandbox: InsideSandbox) -> None:
    limits = Limits(inactivity=1, or_child=True)
    sandbox.start("timeout 2 bash -c 'while :; do :; done'; echo built; sleep 600", limits)
    pulse = sandbox.until(RunState.ENDED)
    assert pulse.ended_by is EndedBy.INACTIVITY
    assert pulse.chunk.endswith(b"built\n")


def test_the_agent_reads_its_standard_input_from_a_file(dash_sandbox: InsideSandbox) -> None:
    given = dash_sandbox.home / "prompt"
    given.write_text("the sentence\n")
    dash_sandbox.start("cat", stdin=str(given))
    assert dash_sandbox.until(RunState.ENDED).chunk == b"the sentence\n"


def test_a_program_that_does_not_exist_ends_with_127(sandbox: InsideSandbox) -> None:
    line = start_command(sandbox.paths, AMPLE, ["no-such-agent", "a b"], "/dev/null")
    sandbox.call(line)
    pulse = sandbox.until(RunState.ENDED)
    assert pulse.exit_code == 127
    assert b"no-such-agent" in pulse.chunk


def test_an_input_or_work_tree_that_does_not_exist_ends_the_run(
    dash_sandbox: InsideSandbox,
) -> None:
    dash_sandbox.start("echo never", stdin="/no/such/file")
    pulse = dash_sandbox.until(RunState.ENDED)
    assert pulse.exit_code not in (0, None)
    dash_sandbox.next_run()
    os.rmdir(dash_sandbox.paths.work)
    dash_sandbox.start("echo never")
    assert dash_sandbox.until(RunState.ENDED).exit_code == 126
