"""Command lines and pulses: what goes in and what comes back."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from inside_sandbox import AMPLE, InsideSandbox

from issuesandbox import inside
from issuesandbox.domain.collection import COLLECTOR
from issuesandbox.domain.supervision import (
    SUPERVISOR,
    EndedBy,
    Limits,
    PulseError,
    RunPaths,
    RunState,
    limits_text,
    parse_pulse,
    start_command,
)

WHOLE = """noise before
issuesandbox-pulse
state ENDED
exit 143
ended Agent
size 1000
age 12345
silent 50
survivors 0
base64 990
aGVs
bG8=
end
noise after
"""


def test_a_pulse_is_read_among_noise() -> None:
    pulse = parse_pulse(WHOLE)
    assert (pulse.state, pulse.exit_code, pulse.ended_by) == (RunState.ENDED, 143, EndedBy.AGENT)
    assert (pulse.started_ago, pulse.silent_for, pulse.survivors) == (123.45, 0.5, 0)
    assert (pulse.size, pulse.chunk_offset, pulse.chunk) == (1000, 990, b"hello")
    assert pulse.next_offset(0) == 995
    assert parse_pulse("issuesandbox-pulse\nstate RUNNING\nend\n").next_offset(7) == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sh: not found",
        "issuesandbox-pulse\nstate RUNNING\n",
        "issuesandbox-pulse\nstate DANCING\nend\n",
        "issuesandbox-pulse\nsize 7\nend\n",
        "issuesandbox-pulse\nstate RUNNING\nsize many\nend\n",
        "issuesandbox-pulse\nstate RUNNING\nexit \nend\n",
        "issuesandbox-pulse\nstate RUNNING\nbase64 0\n!!!!\nend\n",
        "issuesandbox-pulse\nstate RUNNING\nhex 0\nxyz\nend\n",
    ],
)
def test_what_is_no_whole_pulse_is_refused(text: str) -> None:
    with pytest.raises(PulseError):
        parse_pulse(text)


def test_limits_are_written_in_hundredths_and_none_is_not_now() -> None:
    assert limits_text(Limits()) == "0 0 0 Output ."
    assert limits_text(Limits(1.5, 0, -3, or_child=True)) == "150 1 1 OutputOrChild ."


@pytest.mark.parametrize("run_id", ["", "../x", "a b", "a/b", "-a", "x" * 200, "a\n", "a*"])
def test_only_plain_ids_name_a_folder(run_id: str) -> None:
    with pytest.raises(ValueError, match="not the id"):
        RunPaths("/home/x", run_id)


@pytest.mark.parametrize("home", ["", "home", "/a\nb"])
def test_only_an_absolute_path_is_a_home(home: str) -> None:
    with pytest.raises(ValueError, match="home directory"):
        RunPaths(home, "run-1")


def test_no_argument_is_read_by_a_shell(sandbox: InsideSandbox) -> None:
    hostile = [
        "$(touch x)",
        "`touch x`",
        "a'b\"c",
        "; touch x",
        "=ls",
        "~",
        "*",
        "a\nb",
        "",
        "--",
        "\\",
    ]
    argv = ["/usr/bin/printf", "<%s>", *hostile]
    sandbox.call(start_command(sandbox.paths, AMPLE, argv, "/dev/null"))
    assert sandbox.until(RunState.ENDED).chunk.decode() == "".join(f"<{word}>" for word in hostile)
    assert not (Path(sandbox.paths.work) / "x").exists()


def test_a_zero_byte_in_an_argument_is_refused() -> None:
    with pytest.raises(ValueError, match="zero byte"):
        start_command(RunPaths("/h", "r"), AMPLE, ["a\0b"], "/dev/null")


def test_the_scripts_are_part_of_the_package() -> None:
    for name in (SUPERVISOR, COLLECTOR):
        assert inside.script(name).startswith(b"#!/bin/sh\n")
        assert len(inside.digest(name)) == 64


def test_the_scripts_are_part_of_the_wheel(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    root = Path(__file__).resolve().parents[3]
    (made,) = WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(made) as wheel:
        assert wheel.read(f"issuesandbox/inside/{SUPERVISOR}") == inside.script(SUPERVISOR)
