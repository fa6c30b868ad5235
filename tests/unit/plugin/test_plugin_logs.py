"""How the output of an agent is followed and shown."""

from __future__ import annotations

import json

import pytest

from issuesandbox.domain.agents.shown import shown
from issuesandbox.entry.plugin.logs import added, print_output


def test_only_what_is_new_is_shown_also_when_the_beginning_was_cut_off() -> None:
    assert added("", "one\n") == "one\n"
    assert added("one\n", "one\ntwo\n") == "two\n"
    before = "x" * 1000 + "one\ntwo\n"
    assert added(before, before[600:] + "three\n") == "three\n"
    assert added("all of it is gone", "another run\n") == "another run\n"


def test_lines_are_told_as_json_where_a_program_reads_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_output('{"result":"All \\"done\\".","type":"result"}\nplain', raw=False, output="json")
    lines = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert lines == [{"line": '[done] All "done".'}, {"line": "plain"}]


def test_messages_are_shown_in_words_and_garbage_as_it_stands() -> None:
    lines = [
        '{"type":"system","subtype":"init"}',
        '{"type":"assistant","message":{"content":[{"type":"text","text":"Let me look."},'
        '{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}',
        "Traceback: something broke",
        '{"type":"assistant","message":"no list"}',
        '{"type":"system","subtype":"api_retry","error_status":529}',
        '{"result":"All done.","is_error":false,"type":"result"}',
    ]
    assert list(shown("\n".join(lines))) == [
        "Let me look.",
        '[Bash] {"command":"ls"}',
        "Traceback: something broke",
        "[retry] the model's service: 529",
        "[done] All done.",
    ]
