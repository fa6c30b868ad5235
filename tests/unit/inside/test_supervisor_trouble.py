"""The supervisor against agents that flood, hide, kill and delete."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from inside_sandbox import AMPLE, InsideSandbox, alive, eventually

from issuesandbox.domain.supervision import (
    EndedBy,
    Limits,
    RunState,
    parse_pulse,
    poll_command,
    start_command,
)

# What the supervisor needs, without setsid.
_TOOLS = ("awk", "base64", "cat", "dd", "env", "head", "ls", "mkdir", "mkfifo", "rm", "sed")
_MORE_TOOLS = ("sha256sum", "sleep", "tail", "tr")


def test_a_flood_keeps_its_first_and_last_segments_and_little_room(sandbox: InsideSandbox) -> None:
    megabytes = 25
    sandbox.start(f"head -c 100 /etc/passwd; yes 0123456789 | head -c {megabytes}000000; echo last")
    most = 0

    def ended() -> bool:
        nonlocal most
        with suppress(FileNotFoundError):
            sizes = [file.stat().st_size for file in sandbox.folder.glob("out.*")]
            most = max(most, sum(sizes))
        return bool((sandbox.folder / "over").read_text().strip())

    eventually(ended, within=40)
    pulse = sandbox.poll(most=2 << 20).pulse
    assert pulse.size == 100 + megabytes * 1_000_000 + len(b"last\n")
    assert most < 12 << 20
    assert pulse.chunk.startswith(Path("/etc/passwd").read_bytes()[:100])
    # What lies between is skipped, and said so.
    after_first = sandbox.poll(pulse.next_offset(0)).pulse
    assert after_first.chunk_offset > pulse.next_offset(0)
    kept = sandbox.output()
    assert kept.endswith(b"last\n")
    assert len(kept) > 8 << 20


def test_output_that_was_replaced_by_something_vast_is_cut(
    dash_sandbox: InsideSandbox,
) -> None:
    sandbox = dash_sandbox
    sandbox.start("echo hello")
    sandbox.until(RunState.ENDED)
    (segment,) = sandbox.folder.glob("out.*")
    with segment.open("wb") as file:
        file.truncate(1 << 40)
    assert len(sandbox.poll(most=1000).pulse.chunk) == 1000
    # A link looks small, whatever it leads to.
    vast = segment.rename(sandbox.home / "vast")
    segment.symlink_to(vast)
    assert sandbox.poll(most=1000).pulse.chunk == b""


# What a hostile agent puts beside its output, each alone.
_BESIDE_THE_OUTPUT = (
    "touch out.x",
    "touch 'out.size[$(cd;touch pwned)]'",
    "touch out.08 out.-1 'out. ' out.",
    "touch out.9999999999999999 out.99999999999999999999999999999999",
    "mkdir out.999999999999999",
    "ln -s /dev/zero out.999999999999999",
    "mkfifo out.000000000000001 out.999999999999998; ln -s out.x out.999999999999999",
)


@pytest.mark.parametrize("plant", _BESIDE_THE_OUTPUT)
def test_what_an_agent_puts_beside_its_output_is_passed_over(
    sandbox: InsideSandbox, plant: str
) -> None:
    folder = sandbox.paths.run
    begin = f'echo hello; sleep 0.3; (cd {folder} && {plant}); echo "done" >planted'
    sandbox.start(f"{begin}; while :; do sleep 0.2; done", Limits(agent=2))
    eventually((Path(sandbox.paths.work) / "planted").is_file)
    told = sandbox.poll().pulse
    assert (told.state, told.size, told.chunk) == (RunState.RUNNING, 6, b"hello\n")
    ended = sandbox.until(RunState.ENDED)
    assert (ended.ended_by, ended.survivors, ended.chunk) == (EndedBy.AGENT, 0, b"hello\n")
    assert not list(sandbox.home.rglob("pwned"))


def test_segments_between_which_something_else_lies_are_all_read(sandbox: InsideSandbox) -> None:
    sandbox.start("yes 0123456789 | head -c 2500000")
    sandbox.until(RunState.ENDED)
    os.mkfifo(sandbox.folder / "out.000000000000001")
    (sandbox.folder / "out.000000000000002").symlink_to("/dev/zero")
    (sandbox.folder / "out.x").mkdir()
    assert len(sandbox.output()) == 2_500_000


@pytest.mark.parametrize("value", ["9" * 30, "9" * 5000, "08", "x", "-1", "a[$(touch pwned)]"])
def test_a_figure_that_an_agent_forged_is_not_reckoned_with(
    sandbox: InsideSandbox, value: str
) -> None:
    sandbox.start("sleep 600")
    eventually(lambda: (sandbox.folder / "beat").read_text().strip())
    sandbox.stop()
    for name in ("exit", "over", "ended", "agent", "lost", "made", "wake", "limits"):
        (sandbox.folder / name).write_text(f"{value}\n")
    for fields in (1, 2, 4):
        (sandbox.folder / "beat").write_text(" ".join([value] * fields) + "\n")
        told = sandbox.poll(limits=AMPLE).pulse
        assert (told.state, told.exit_code, told.ended_by) == (RunState.ENDED, None, None)
        assert (told.survivors, told.started_ago) == (None, 0)
    assert sandbox.sweep().pulse.survivors == 0
    assert not list(sandbox.home.rglob("pwned"))


@pytest.mark.parametrize("make", ["mkfifo", "mkdir", "ln -s /dev/full"])
def test_an_end_that_cannot_be_written_down_comes_all_the_same(
    sandbox: InsideSandbox, make: str
) -> None:
    plant = f"cd {sandbox.paths.run}; for f in ended lost wake; do rm -f $f; {make} $f; done"
    sandbox.start(f"echo $$ >child; ({plant}); while :; do echo; sleep 0.1; done", Limits(agent=2))
    child = sandbox.number("child")
    assert sandbox.poll().pulse.state is RunState.LOST
    eventually(lambda: not alive(child))


def test_an_agent_that_takes_the_place_of_its_killer_is_killed(sandbox: InsideSandbox) -> None:
    # To kill process 0 is to kill oneself.
    forge = f"for _ in 1 2 3 4 5; do printf '%-63s\\n' '0 0' 1<>{sandbox.paths.run}/agent; done"
    sandbox.start(f"echo $$ >child; trap '' TERM; {forge}; while :; do sleep 0.1; done")
    child = sandbox.number("child")
    os.kill(sandbox.supervisor_pid(), signal.SIGKILL)
    assert sandbox.stop().pulse.survivors == 0
    assert not alive(child)


def test_a_pipe_in_the_place_of_the_supervisor_holds_nobody_up(dash_sandbox: InsideSandbox) -> None:
    dash_sandbox.start("sleep 600")
    script = Path(dash_sandbox.paths.supervisor)
    script.unlink()
    os.mkfifo(script)
    answer = dash_sandbox.poll()
    assert answer.pulse.state is RunState.LOST
    assert answer.seconds < 5


def test_output_of_any_bytes_comes_back_as_it_was(dash_sandbox: InsideSandbox) -> None:
    given = bytes(range(256)) * 700 + b"\0" * 5 + b"no line break at the end"
    (dash_sandbox.home / "given").write_bytes(given)
    dash_sandbox.start(f"cat {dash_sandbox.home}/given")
    dash_sandbox.until(RunState.ENDED)
    read, offset = b"", 0
    while chunk := dash_sandbox.poll(offset, most=60_000).pulse.chunk:
        assert len(chunk) <= 60_000
        read += chunk
        offset += len(chunk)
    assert read == given


def test_small_pieces_are_not_spread_over_many_segments(dash_sandbox: InsideSandbox) -> None:
    dash_sandbox.start("for i in {1..300}; do echo line $i; done; sleep 0.3; seq 2000")
    dash_sandbox.until(RunState.ENDED)
    assert len(list(dash_sandbox.folder.glob("out.*"))) == 1


def test_a_backlog_is_told_without_waiting(dash_sandbox: InsideSandbox) -> None:
    dash_sandbox.start("head -c 200000 /dev/zero; sleep 600")
    eventually(lambda: dash_sandbox.poll(most=1).pulse.silent_for > 0.1)
    assert dash_sandbox.poll(wait=20, most=100_000).seconds < 5
    dash_sandbox.stop()


def test_a_full_disk_loses_output_but_neither_the_end_nor_the_agent(sandbox: InsideSandbox) -> None:
    before = "ln -s /dev/full $RUN/out.000000000000000; "
    run = f"RUN={sandbox.paths.run}; "
    sandbox.start(f"{run}{before}for i in 1 2 3 4 5; do head -c 300000 /dev/zero; sleep 0.4; done")
    files = eventually(
        lambda: (
            (sandbox.folder / "beat").read_text().strip()
            and {name: (sandbox.folder / name).stat() for name in ("exit", "over", "ended", "beat")}
        )
    )
    sandbox.poll(limits=Limits(inactivity=1.2))
    pulse = sandbox.until(RunState.ENDED)
    # Output that found no room was a sign of life all the same.
    assert (pulse.exit_code, pulse.ended_by, pulse.survivors) == (0, None, 0)
    # The end was written into room that was taken from the beginning.
    for name, was in files.items():
        now = (sandbox.folder / name).stat()
        assert (now.st_ino, now.st_size) == (was.st_ino, 64)


def test_a_killed_supervisor_is_seen_and_a_stop_still_ends_everything(
    sandbox: InsideSandbox,
) -> None:
    sandbox.start("setsid sleep 600 & echo $! >child; sleep 600")
    child = sandbox.number("child")
    os.kill(sandbox.supervisor_pid(), signal.SIGKILL)

    seen = sandbox.poll(wait=2)
    assert seen.pulse.state is RunState.LOST
    assert alive(child)

    stopped = sandbox.stop()
    assert (stopped.pulse.state, stopped.pulse.survivors) == (RunState.LOST, 0)
    assert not alive(child)


def test_a_supervisor_that_is_asked_to_end_while_it_starts_the_agent_ends_it(
    sandbox: InsideSandbox,
) -> None:
    for _ in range(3):
        sandbox.next_run()
        line = start_command(sandbox.paths, AMPLE, ["sleep", "600"], "/dev/null")
        starting = sandbox.spawn(line)
        supervisor = sandbox.supervisor_pid()
        os.kill(supervisor, signal.SIGTERM)
        starting.communicate()
        eventually(lambda pid=supervisor: not alive(pid))
        agent = (sandbox.folder / "agent").read_text().split()
        assert agent
        assert not alive(int(agent[0]))


def test_a_supervisor_that_is_asked_to_end_ends_the_agent_first(
    dash_sandbox: InsideSandbox,
) -> None:
    dash_sandbox.start("setsid sleep 600 & echo $! >child; sleep 600")
    child = dash_sandbox.number("child")
    os.kill(dash_sandbox.supervisor_pid(), signal.SIGTERM)
    eventually(lambda: not alive(child))
    eventually(lambda: dash_sandbox.poll().pulse.state is RunState.LOST)


@pytest.mark.parametrize("victim", ["drainer", "keeper"])
def test_a_supervisor_that_lost_a_part_of_itself_ends_the_agent(
    dash_sandbox: InsideSandbox, victim: str
) -> None:
    dash_sandbox.start("trap '' PIPE; sleep 600 & echo $! >child; wait")
    child = dash_sandbox.number("child")
    agent = psutil.Process(child).parent()
    assert agent is not None
    keeper = agent.parent()
    assert keeper is not None
    if victim == "keeper":
        keeper.kill()
    else:
        (drainer,) = [
            each
            for each in psutil.Process(dash_sandbox.supervisor_pid()).children()
            if each != keeper and each.name() == "sh"
        ]
        drainer.kill()
    eventually(lambda: not alive(child))
    eventually(lambda: dash_sandbox.poll().pulse.state is RunState.LOST)


@pytest.mark.parametrize("victim", ["", "/*", "/limits"])
def test_deleted_files_end_the_agent_and_the_run_is_not_called_running(
    dash_sandbox: InsideSandbox, victim: str
) -> None:
    remove = f"rm -rf {dash_sandbox.paths.run}{victim}"
    dash_sandbox.start(f"setsid nohup sleep 600 & echo $! >child; sleep 0.3; {remove}; sleep 600")
    child = dash_sandbox.number("child")
    eventually(lambda: not alive(child))
    state = dash_sandbox.poll().pulse.state
    assert state in ((RunState.ABSENT,) if victim == "" else (RunState.LOST,))


def test_a_stopped_supervisor_is_lost(dash_sandbox: InsideSandbox) -> None:
    dash_sandbox.start("sleep 600")
    pid = dash_sandbox.supervisor_pid()
    eventually(lambda: (dash_sandbox.folder / "beat").read_text().strip())
    os.kill(pid, signal.SIGSTOP)
    told = (dash_sandbox.folder / "beat").read_text().split()
    aged = [str(int(told[0]) - 4000), *told[1:]]
    (dash_sandbox.folder / "beat").write_text(f"{' '.join(aged):<63}\n")
    assert dash_sandbox.poll().pulse.state is RunState.LOST
    began = time.monotonic()
    assert dash_sandbox.stop().pulse.survivors == 0
    assert time.monotonic() - began < 10


def test_a_changed_supervisor_is_not_run(dash_sandbox: InsideSandbox) -> None:
    script = Path(dash_sandbox.paths.supervisor)
    script.write_bytes(script.read_bytes() + b"touch /tmp/never\n")
    told = dash_sandbox.poll().pulse
    assert told.state is RunState.LOST
    assert told.problem
    # A start and a sweep bring their own along.
    assert dash_sandbox.start("true").pulse.fresh
    assert dash_sandbox.sweep().pulse.survivors == 0
    assert not Path("/tmp/never").exists()
    script.unlink()
    assert dash_sandbox.poll().pulse.problem


def test_a_supervisor_that_is_just_being_written_is_waited_for(
    dash_sandbox: InsideSandbox,
) -> None:
    dash_sandbox.start("sleep 600")
    script = Path(dash_sandbox.paths.supervisor)
    whole = script.read_bytes()
    script.write_bytes(whole[:5000])
    asked = dash_sandbox.spawn(poll_command(dash_sandbox.paths, 0, 0, 100))
    eventually(lambda: [each for each in psutil.Process(asked.pid).children()])
    script.write_bytes(whole)
    assert parse_pulse(asked.communicate()[0]).state is RunState.RUNNING
    dash_sandbox.stop()


def test_a_stop_catches_an_agent_that_is_just_being_started(dash_sandbox: InsideSandbox) -> None:
    for _ in range(5):
        dash_sandbox.next_run()
        line = start_command(dash_sandbox.paths, AMPLE, ["sleep", "600"], "/dev/null")
        starting = dash_sandbox.spawn(line)
        stopped = dash_sandbox.stop().pulse
        starting.communicate()
        assert (stopped.state, stopped.survivors) == (RunState.ENDED, 0)
        assert dash_sandbox.sweep().pulse.state is RunState.ENDED


def test_who_hides_from_every_search_is_counted_by_the_output_it_holds(
    dash_sandbox: InsideSandbox,
) -> None:
    dash_sandbox.start("(env -i setsid sleep 600 & echo $! >child) & sleep 0.5")
    child = dash_sandbox.number("child")
    try:
        assert dash_sandbox.until(RunState.ENDED).survivors == 1
    finally:
        os.kill(child, signal.SIGKILL)


def test_an_agent_that_hides_from_its_supervisor_is_ended_all_the_same(
    sandbox: InsideSandbox,
) -> None:
    # It names another process in its place and takes the mark off itself.
    forge = f"printf '%-63s\\n' '999999 0' 1<>{sandbox.paths.run}/agent"
    live = "echo $$ >child; trap '' TERM; while :; do echo; sleep 0.2; done"
    sandbox.start(
        f'{forge}; exec env -i bash -c "{live}"'.replace("$$", "\\$\\$"), Limits(agent=1.5)
    )
    child = sandbox.number("child")
    eventually(lambda: not alive(child))
    assert sandbox.until(RunState.ENDED).ended_by is EndedBy.AGENT


def test_nobody_else_is_killed(dash_sandbox: InsideSandbox) -> None:
    first = dash_sandbox.paths
    dash_sandbox.start("sleep 600 & echo $! >child1; wait")
    other = dash_sandbox.number("child1")
    # Its id begins like the other's.
    dash_sandbox.runs = 9
    dash_sandbox.next_run()
    dash_sandbox.start("sleep 600 & echo $! >child10; wait")
    mine = dash_sandbox.number("child10")
    dash_sandbox.paths = first
    dash_sandbox.stop()
    assert not alive(other)
    assert alive(mine)
    dash_sandbox.runs = 9
    dash_sandbox.next_run()
    assert dash_sandbox.stop().pulse.survivors == 0


def test_without_setsid_and_base64_it_works_as_well(tmp_path: Path) -> None:
    tools = tuple(tool for tool in (*_TOOLS, *_MORE_TOOLS, "od") if tool != "base64")
    sandbox = InsideSandbox(tmp_path / "home", "dash", tools)
    try:
        sandbox.start("(sleep 600 & echo $! >child) & echo up; sleep 600")
        child = sandbox.number("child")
        eventually(lambda: sandbox.poll().pulse.chunk == b"up\n")
        assert sandbox.stop().pulse.survivors == 0
        assert not alive(child)
    finally:
        sandbox.clear()


def test_a_sandbox_without_the_tools_says_so(tmp_path: Path) -> None:
    tools = tuple(tool for tool in (*_TOOLS, *_MORE_TOOLS) if tool != "awk")
    sandbox = InsideSandbox(tmp_path / "home", "dash", tools)
    begun = sandbox.call(start_command(sandbox.paths, AMPLE, ["true"], "/dev/null")).pulse
    assert (begun.fresh, begun.state) == (False, RunState.ABSENT)
    assert begun.problem == "the sandbox has no awk"


def test_a_supervisor_of_a_quiet_agent_needs_less_than_a_hundredth_of_a_core(
    dash_sandbox: InsideSandbox,
) -> None:
    dash_sandbox.start("sleep 600")
    process = psutil.Process(dash_sandbox.supervisor_pid())
    eventually(lambda: (dash_sandbox.folder / "beat").read_text().strip())

    def used() -> float:
        times = process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system

    before, began = used(), time.monotonic()
    eventually(lambda: time.monotonic() - began > 4)
    share = (used() - before) / (time.monotonic() - began)
    print(f"the supervisor of a quiet agent used {share:.2%} of a core")
    assert share < 0.01
    dash_sandbox.stop()


def test_an_end_before_a_limit_wins(dash_sandbox: InsideSandbox) -> None:
    # R74
    dash_sandbox.start("sleep 0.6", Limits(agent=1))
    assert dash_sandbox.until(RunState.ENDED).ended_by is None
    assert dash_sandbox.stop().pulse.ended_by is None


def test_a_stop_after_a_timeout_keeps_the_timeout(dash_sandbox: InsideSandbox) -> None:
    dash_sandbox.start("sleep 600", Limits(agent=0.5))
    dash_sandbox.until(RunState.ENDED)
    assert dash_sandbox.stop().pulse.ended_by is EndedBy.AGENT
