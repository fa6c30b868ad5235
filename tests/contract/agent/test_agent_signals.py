"""What a signal does to the agent and to what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agent_process import Claude, Outcome, alive, eventually

SLOW = "speed 20\n"


def pids(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "pids").read_text().split()]


def started(
    claude: Claude, script: str, children: int
) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a script whose command writes the ids of its children, and wait for them all."""
    process = claude.start(scenario=SLOW + script)
    file = claude.work / "pids"
    eventually(lambda: file.exists() and len(file.read_text().split()) == children)
    return process, pids(claude.work)


def ended(process: subprocess.Popen[bytes]) -> Outcome:
    stdout, stderr = process.communicate(timeout=20)
    return Outcome(process.returncode, stdout, stderr.decode())


def sweep(children: list[int]) -> None:
    for pid in children:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


STUBBORN = (
    "bash trap '' TERM HUP INT; echo $$ >> pids; "
    "(sh -c 'echo $$ >> pids; exec sleep 600') & "
    "setsid sh -c 'echo $$ >> pids; exec sleep 600' & wait"
)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)]
)
def test_a_signal_ends_the_running_tool_call_with_all_its_children(
    claude: Claude, number: signal.Signals, code: int
) -> None:
    process, children = started(claude, STUBBORN, 3)
    process.send_signal(number)
    outcome = ended(process)
    assert outcome.code == code
    eventually(lambda: not any(map(alive, children)))
    if number == signal.SIGINT:
        assert outcome.result["subtype"] == "error_during_execution"
        assert outcome.result["is_error"] is True
        assert outcome.result["terminal_reason"] == "aborted_tools"
    else:
        assert outcome.of("result") == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_while_the_model_thinks_ends_the_run_without_result(
    claude: Claude, number: signal.Signals, code: int
) -> None:
    process = claude.start(scenario="say hello\nforever")
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(number)
    outcome = ended(process)
    assert outcome.code == code
    assert outcome.of("result") == []


def test_an_interrupt_while_the_model_thinks_gives_a_result_and_exit_zero(claude: Claude) -> None:
    process = claude.start(scenario="forever")
    assert process.stdout is not None
    while b'"init"' not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    outcome = ended(process)
    assert outcome.code == 0
    assert outcome.result["terminal_reason"] == "aborted_streaming"


def test_an_interrupted_line_does_not_spoil_the_result(claude: Claude) -> None:
    process = claude.start(scenario="flood 50")
    assert process.stdout is not None
    process.stdout.read(100_000)  # the pipe is full again before the next line is through
    process.send_signal(signal.SIGINT)
    outcome = ended(process)
    assert outcome.result["terminal_reason"] == "aborted_streaming"


def test_a_kill_leaves_the_commands_children_running(claude: Claude) -> None:
    process, children = started(claude, STUBBORN, 3)
    try:
        process.kill()
        assert ended(process).code == -9
        assert all(map(alive, children))
    finally:
        sweep(children)


def test_each_command_has_a_session_of_its_own(claude: Claude) -> None:
    process, children = started(claude, "bash echo $$ > pids; sleep 600", 1)
    assert os.getsid(children[0]) == children[0] != os.getsid(process.pid)
    process.terminate()
    ended(process)


def test_children_carry_the_marks_of_their_run(claude: Claude) -> None:
    process, children = started(claude, "bash echo $$ > pids; sleep 600", 1)
    marks = Path(f"/proc/{children[0]}/environ").read_bytes().split(b"\0")
    assert f"CLAUDE_PID={process.pid}".encode() in marks
    assert any(mark.startswith(b"CLAUDE_CODE_SESSION_ID=") for mark in marks)
    process.terminate()
    ended(process)


@pytest.mark.parametrize("end", ["", "forever"])
def test_a_nohup_child_survives_a_normal_end_and_a_sigterm(claude: Claude, end: str) -> None:
    script = f"bash nohup sleep 600 >/dev/null 2>&1 & echo $! > pids\n{end}"
    process, children = started(claude, script, 1)
    try:
        if end:
            assert process.stdout is not None
            while b"tool_result" not in process.stdout.readline():
                pass
            process.terminate()
        assert ended(process).code == (143 if end else 0)
        assert alive(children[0])
    finally:
        sweep(children)


def test_stubborn_children_ignore_sigterm_until_the_agent_is_asked_to_end(claude: Claude) -> None:
    process = claude.start(scenario=SLOW + "stubborn 3")
    [shell] = eventually(lambda: children_of(process.pid))
    eventually(lambda: len(children_of(shell)) == 3)
    children = children_of(shell)
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    process.terminate()
    assert ended(process).code == 143
    eventually(lambda: not any(map(alive, [shell, *children])))


def test_a_deaf_agent_only_yields_to_sigkill(claude: Claude) -> None:
    process = claude.start(scenario="deaf\nraw ready\nforever")
    assert process.stdout is not None
    while process.stdout.readline() != b"ready\n":
        pass
    process.terminate()
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.kill()
    assert ended(process).code == -9


def test_a_reader_that_goes_away_does_not_end_the_run(claude: Claude) -> None:
    process = claude.start(scenario="bash sleep 0.2\nflood 1\nwrite late yes")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(20) == 0
    assert (claude.work / "late").read_text() == "yes\n"


KILL_MINE = """
import subprocess, sys
from issuesandbox.local.agent.scripted import tree
tree._OWN = sys.argv[1]
child = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE)
grandchild = int(child.stdout.readline())
tree.kill_descendants()
print(child.wait(10), grandchild)
"""


@pytest.mark.parametrize("table", ["/proc/self/stat", "/no/such/table"])
def test_children_are_found_with_and_without_the_kernels_table(table: str) -> None:
    # In a process of its own: it ends everything below it.
    command = [sys.executable, "-P", "-c", KILL_MINE, table]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    status, grandchild = map(int, done.stdout.split())
    assert status == -signal.SIGKILL
    eventually(lambda: not alive(grandchild))
