"""Sessions: where they are kept, how they are resumed, what is refused."""

from __future__ import annotations

import json
import os
import stat

import pytest
from agent_process import HEADLESS, SESSION, Claude

CHOSEN = [*HEADLESS, "--session-id", SESSION]
RESUME = [*HEADLESS, "--resume", SESSION]


def test_the_transcript_is_private_and_named_after_directory_and_id(claude: Claude) -> None:
    outcome = claude.run(*CHOSEN, "Remember this.", scenario="bash echo output")
    folder = "".join(c if c.isalnum() else "-" for c in str(claude.work))
    path = claude.config / "projects" / folder / f"{SESSION}.jsonl"
    assert claude.transcripts() == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {line["session_id"] for line in outcome.lines} == {SESSION}
    kept = path.read_text()
    assert "Remember this." in kept
    assert "output" in kept


def test_an_id_in_use_is_refused(claude: Claude) -> None:
    claude.run(*CHOSEN, "x")
    again = claude.run(*CHOSEN, "x", cwd=claude.config)
    assert (again.code, again.stdout) == (1, b"")
    assert "already in use" in again.stderr


def test_a_resumed_session_keeps_its_id_file_and_cost(claude: Claude) -> None:
    first = claude.run(*CHOSEN, "x", scenario="cost 1\nsay one")
    length = len(claude.transcripts()[0].read_text().splitlines())
    second = claude.run(*RESUME, "y", scenario="cost 1\nsay one", cwd=claude.config)
    assert second.code == 0
    assert second.result["session_id"] == SESSION
    assert second.result["total_cost_usd"] == pytest.approx(2 * first.result["total_cost_usd"])
    assert second.result["num_turns"] == 1
    assert len(claude.transcripts()) == 1
    assert len(claude.transcripts()[0].read_text().splitlines()) > length
    uuids = [line["uuid"] for outcome in (first, second) for line in outcome.lines]
    assert len(set(uuids)) == len(uuids)


def test_a_session_is_resumed_by_its_path_and_after_a_move(claude: Claude) -> None:
    claude.run(*CHOSEN, "x")
    moved = claude.config.rename(claude.config.with_name("moved"))
    found = claude.run(*RESUME, "y", env={"CLAUDE_CONFIG_DIR": str(moved)})
    assert found.code == 0
    path = next(moved.glob("projects/*/*.jsonl"))
    by_path = claude.run(*HEADLESS, "--resume", str(path), "y")
    assert (by_path.code, by_path.result["session_id"]) == (0, SESSION)


@pytest.mark.parametrize("script", ["say a\ncrash", "bash kill -9 $CLAUDE_PID; sleep 1"])
def test_a_killed_session_is_resumed_without_the_cost_of_its_end(
    claude: Claude, script: str
) -> None:
    assert claude.run(*CHOSEN, "x", scenario="cost 5\n" + script).code == -9
    outcome = claude.run(*RESUME, "y", scenario="say b")
    assert outcome.code == 0
    assert outcome.result["total_cost_usd"] < 1


def test_a_terminated_session_keeps_its_cost(claude: Claude) -> None:
    process = claude.start(*CHOSEN, "x", scenario="cost 5\nsay a\nforever")
    assert process.stdout is not None
    while b'"assistant"' not in process.stdout.readline():
        pass
    process.terminate()
    process.communicate()
    outcome = claude.run(*RESUME, "y", scenario="say b")
    assert outcome.result["total_cost_usd"] > 5


@pytest.mark.parametrize("asked", ["11111111-2222-4333-8444-555555555555", "no id at all"])
def test_an_unknown_session_is_echoed_in_a_result(claude: Claude, asked: str) -> None:
    outcome = claude.run(*HEADLESS, "--resume", asked, "x")
    assert outcome.code == 1
    assert f"No conversation found with session ID: {asked}" in outcome.stderr
    assert len(outcome.lines) == 1
    assert outcome.result["subtype"] == "error_during_execution"
    assert outcome.result["num_turns"] == 0
    assert outcome.result["session_id"] == asked


def test_a_resume_needs_a_prompt(claude: Claude) -> None:
    claude.run(*CHOSEN, "x")
    assert claude.run(*RESUME).code == 1


def test_a_fork_begins_with_the_history_under_a_new_id(claude: Claude) -> None:
    first = claude.run(*CHOSEN, "x", scenario="cost 1\nsay one")
    forked = claude.run(*RESUME, "--fork-session", "y", scenario="say two")
    assert forked.result["session_id"] != SESSION
    assert forked.result["total_cost_usd"] > first.result["total_cost_usd"]
    assert len(claude.transcripts()) == 2
    new = next(path for path in claude.transcripts() if path.stem != SESSION)
    assert "one" in new.read_text()


def test_two_processes_may_resume_one_session_at_once(claude: Claude) -> None:
    claude.run(*CHOSEN, "x")
    both = [claude.start(*RESUME, "y", scenario="bash sleep 0.3") for _ in range(2)]
    assert [process.communicate() and process.returncode for process in both] == [0, 0]


def test_without_an_id_each_run_gets_its_own(claude: Claude) -> None:
    ids = {claude.run(scenario="say a").result["session_id"] for _ in range(3)}
    assert len(ids) == len(claude.transcripts()) == 3


def test_a_relative_config_folder_lands_in_the_working_directory(claude: Claude) -> None:
    claude.run(env={"CLAUDE_CONFIG_DIR": "here"}, scenario="say a")
    assert list((claude.work / "here" / "projects").iterdir())


def test_a_config_folder_that_cannot_be_written_costs_only_the_transcript(claude: Claude) -> None:
    claude.config.write_text("not a folder")
    outcome = claude.run(*CHOSEN, "x", scenario="say a")
    assert (outcome.code, outcome.result["result"]) == (0, "a")


def test_a_half_written_transcript_is_resumed(claude: Claude) -> None:
    claude.run(*CHOSEN, "x")
    with claude.transcripts()[0].open("ab") as file:
        file.write(b'{"type": "assis')
        file.write(os.urandom(8).replace(b"\n", b"") + b"\n")
    assert claude.run(*RESUME, "y").code == 0
    assert json.loads(claude.transcripts()[0].read_bytes().splitlines()[-1])["type"] == "account"
