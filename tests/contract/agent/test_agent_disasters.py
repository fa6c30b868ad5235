"""Output that a careless reader chokes on."""

from __future__ import annotations

from agent_process import Claude

MEGABYTE = 1_000_000


def test_a_flood_is_well_formed(claude: Claude) -> None:
    outcome = claude.run(scenario="flood 50\nsay after")
    assert 50 * MEGABYTE < len(outcome.stdout) < 55 * MEGABYTE
    assert outcome.result["result"] == "after"


def test_one_line_may_be_very_long(claude: Claude) -> None:
    outcome = claude.run(scenario="longline 20\nsay after")
    assert max(map(len, outcome.stdout.splitlines())) > 20 * MEGABYTE
    assert outcome.result["result"] == "after"


def test_binary_garbage_and_unknown_types_stand_between_the_lines(claude: Claude) -> None:
    outcome = claude.run(
        scenario='binary 5000\nraw {"type": "result", "is_err\nraw [1]\nunknown novelty\n'
        "stderr something is odd\nsay after"
    )
    assert b"\0\1\2" in outcome.stdout
    assert b"\xff" in outcome.stdout
    assert b'{"type": "result", "is_err\n' in outcome.stdout
    assert b'"novelty"' in outcome.stdout
    assert outcome.stderr == "something is odd\n"
    assert outcome.code == 0
    assert b"after" in outcome.stdout.splitlines()[-1]
