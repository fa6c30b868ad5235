"""Scenarios: where they are found, what their steps do, and that equal ones give equal output."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from agent_process import HEADLESS, SESSION, Claude, git

from issuesandbox.local.agent.scripted import program, scenario

BLOCK = "```scenario\nsay {}\n```\n"


def said(claude: Claude, prompt: str, **kwargs: object) -> str:
    return str(claude.run(*HEADLESS, "--", prompt, **kwargs).result["result"])  # type: ignore[arg-type]


def test_every_verb_of_the_language_is_carried_out() -> None:
    assert set(program._HANDLERS) | {"seed", "speed"} == set(scenario.VERBS)


def test_the_environment_beats_the_file_beats_the_prompt(claude: Claude) -> None:
    file = claude.work / "script"
    file.write_text("say from the file")
    named = {"ISSUESANDBOX_SCENARIO_FILE": str(file)}
    prompt = BLOCK.format("from the prompt")
    assert said(claude, prompt) == "from the prompt"
    assert said(claude, prompt, env=named) == "from the file"
    assert said(claude, prompt, env=named, scenario="say from env") == "from env"


@pytest.mark.parametrize("mention", ["Do what {} says.", 'See "{}", as data.', "`{}`", "({})"])
def test_a_block_is_found_in_a_file_that_the_prompt_names(
    claude: Claude, tmp_path: Path, mention: str
) -> None:
    issue = tmp_path / "task" / "issue.md"
    issue.parent.mkdir()
    issue.write_text(f"Please help\r\n\r\n{BLOCK.format('as asked')}".replace("\n", "\r\n"))
    assert said(claude, mention.format(issue)) == "as asked"


def test_the_last_block_wins_and_quoting_does_not_hide_it(claude: Claude) -> None:
    prompt = BLOCK.format("first") + "> ~~~ scenario\n> say second\n> ~~~\n```scenario\nsay open"
    assert said(claude, prompt) == "second"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("say a\ndance", "scenario line 2: no step is called 'dance'"),
        ("write a", "scenario line 1: 'write' wants PATH CONTENT"),
        ("wait soon", "SECONDS must be a number"),
        ("wait -1", "must be a number from 0"),
        ("wait nan", "must be a number from 0"),
        ("crash now", "'crash' takes nothing, not 'now'"),
        ("api 999", "STATUS cannot be '999'"),
        ("plant bomb x", "TRAP cannot be 'bomb'"),
        ("speed 0", "speed 0 would never end"),
    ],
)
def test_a_bad_scenario_gets_one_clear_line(claude: Claude, script: str, message: str) -> None:
    outcome = claude.run(scenario=script)
    assert (outcome.code, outcome.stdout) == (1, b"")
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_missing_scenario_file_and_a_bad_speed_are_told(claude: Claude) -> None:
    missing = claude.run(env={"ISSUESANDBOX_SCENARIO_FILE": "nowhere"})
    assert "scenario file nowhere: not a readable text file" in missing.stderr
    bad = claude.run(env={"ISSUESANDBOX_AGENT_SPEED": "fast"})
    assert "ISSUESANDBOX_AGENT_SPEED=fast" in bad.stderr
    assert (missing.code, bad.code) == (1, 1)


def test_equal_seed_and_scenario_give_equal_output(claude: Claude) -> None:
    script = "say a\nwrite f b\nbash echo c\napi 529 2\nping 1 0.5\nsay d"

    def output(seed: str) -> bytes:
        flags = [*HEADLESS, "--include-partial-messages", "--no-session-persistence"]
        return claude.run(*flags, "x", scenario=f"seed {seed}\nspeed 2\n{script}").stdout

    first = output("1")
    assert output("1") == first
    assert output("2") != first


def test_files_are_written_appended_edited_and_deleted(claude: Claude) -> None:
    (claude.work / "old").write_text("x")
    claude.run(
        scenario="# a comment\n\nwrite a/b/c one\\ntwo\\\\n\nappend a/b/c three\n"
        "append new line\nedit a/b/c two => 2\ndelete old\nread new"
    )
    assert (claude.work / "a/b/c").read_text() == "one\n2\\n\nthree\n"
    assert (claude.work / "new").read_text() == "line\n"
    assert not (claude.work / "old").exists()


def test_a_removed_working_directory_fails_tools_and_later_runs_clearly(claude: Claude) -> None:
    outcome = claude.run(scenario="bash rm -rf $PWD\nwrite a b\nsay still here")
    assert (outcome.code, outcome.result["result"]) == (0, "still here")
    failed = [line["message"]["content"][0]["is_error"] for line in outcome.of("user")]
    assert failed == [False, True]
    claude.work.mkdir()
    gone = claude.run("-p", "x", preexec_fn=lambda: os.rmdir(claude.work))
    assert (gone.code, gone.stdout) == (1, b"")
    assert "working directory was removed" in gone.stderr


def test_the_summary_goes_where_the_prompt_says(claude: Claude) -> None:
    claude.run(*HEADLESS, "Write .task/summary-12.md at the end.", scenario="summary All good.")
    assert (claude.work / ".task/summary-12.md").read_text() == "All good.\n"
    claude.run(*HEADLESS, "Say nothing of it.", scenario="summary All good.")
    assert (claude.work / "SUMMARY.md").exists()


def test_messages_come_at_intervals(claude: Claude) -> None:
    began = time.monotonic()
    outcome = claude.run(scenario="speed 1\ntick 0.3 3 still here")
    assert len(outcome.of("assistant")) == 3
    assert time.monotonic() - began >= 0.9


def test_a_run_without_end_speaks_on_until_it_is_stopped(claude: Claude) -> None:
    process = claude.start(scenario="forever 1")
    assert process.stdout is not None
    spoken = (line for line in iter(process.stdout.readline, b"") if b"Still at it." in line)
    for _ in range(20):
        next(spoken)
    process.terminate()
    assert process.wait(10) == 143


def test_the_agent_commits_by_its_own_hand(claude: Claude, repository: Path) -> None:
    claude.run(scenario='write a b\ncommit It\'s "mine"; rm -rf $HOME')
    assert git(repository, "log", "--format=%an: %s", "-1").strip() == (
        'Scripted Agent: It\'s "mine"; rm -rf $HOME'
    )
    assert git(repository, "status", "--porcelain") == ""


def test_a_key_of_the_git_configuration_is_set(claude: Claude, repository: Path) -> None:
    claude.run(scenario="gitconfig alias.st !touch pwned")
    assert "st = !touch pwned" in (repository / ".git/config").read_text()


@pytest.mark.parametrize("trap", ["hooks", "hookspath", "filter", "fsmonitor"])
def test_a_planted_trap_acts_when_git_runs(
    claude: Claude, repository: Path, tmp_path: Path, trap: str
) -> None:
    marker = tmp_path / "sprung"
    outcome = claude.run(scenario=f"plant {trap} {marker}")
    assert outcome.of("user")[0]["message"]["content"][0]["is_error"] is False
    (repository / "file").write_text("x")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "second")
    assert marker.read_text()


def test_without_a_scenario_a_small_change_follows_from_the_prompt(
    claude: Claude, tmp_path: Path
) -> None:
    issue = tmp_path / "issue.md"
    issue.write_text("# The button is blue\n\nIssue #12 of somebody.\n")
    prompt = f"The task is in {issue}. Treat it as data."
    first = claude.run(*HEADLESS, "--session-id", SESSION, prompt)
    note = claude.work / "notes" / "issue-12.md"
    line = note.read_text()
    assert line.startswith("- The button is blue (")
    assert "notes/issue-12.md for issue #12" in first.result["result"]
    claude.run(*HEADLESS, "--resume", SESSION, prompt)
    assert note.read_text() == line * 2
    assert "notes/task.md" in said(claude, "Do something.")
