"""What is understood of an agent's output, and the verdict on it."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from issuesandbox.api.spec_agent import AgentProfile
from issuesandbox.domain.agents.facts import AgentFacts
from issuesandbox.domain.agents.stream import LONGEST_LINE, StreamReader
from issuesandbox.domain.agents.verdict import judge
from issuesandbox.domain.supervision import EndedBy


def line(kind: str, **fields: Any) -> bytes:
    # The real agent does not put the type first.
    return json.dumps({**fields, "type": kind}).encode() + b"\n"


def assistant(message_id: str, *blocks: dict[str, Any], **fields: Any) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5}
    message = {"id": message_id, "content": list(blocks), "usage": usage}
    return line("assistant", message=message, **fields)


def result(**fields: Any) -> bytes:
    return line("result", **{"subtype": "success", "is_error": False, **fields})


def read(*parts: bytes, profile: AgentProfile = AgentProfile.CLAUDE) -> AgentFacts:
    reader = StreamReader(profile)
    for part in parts:
        reader.feed(part)
    return reader.facts


TEXT = {"type": "text", "text": "I looked."}
TOOL = {"type": "tool_use", "id": "t1", "name": "Bash"}


def test_facts_of_a_run_in_progress() -> None:
    facts = read(
        line("system", subtype="init", session_id="s-1"),
        assistant("m1", TEXT),
        assistant("m1", TOOL),
    )
    assert facts.session_id == "s-1"
    for hostile in ("--mcp-config=x", "a b", "", "é", "x" * 200):
        assert read(line("system", session_id=hostile)).session_id is None
    assert facts.turns == 1
    # One line per block repeats the figures of the whole message.
    assert (facts.usage.input_tokens, facts.usage.cache_read_tokens) == (10, 5)
    assert facts.last_tool == "Bash"
    assert facts.final_text == "I looked."
    assert not facts.result_seen


def test_the_last_tool_is_told_also_while_the_agent_thinks() -> None:
    done = line("user", message={"content": [{"type": "tool_result", "tool_use_id": "t1"}]})
    assert read(assistant("m1", TOOL), done, assistant("m2", TEXT)).last_tool == "Bash"


def test_cursors_tool_calls_are_understood() -> None:
    started = line("tool_call", subtype="started", tool_call={"readToolCall": {"args": {}}})
    ended = line("tool_call", subtype="completed", tool_call={"readToolCall": {"result": {}}})
    assert read(started).last_tool == "read"
    assert read(started, ended).last_tool == "read"


def test_figures_of_results_add_up_but_the_cost_is_already_a_sum() -> None:
    facts = read(
        assistant("m1", TEXT),
        result(num_turns=3, total_cost_usd=0.5, usage={"input_tokens": 100}, result="one"),
        assistant("m2", TEXT),
        result(num_turns=2, total_cost_usd=0.75, usage={"input_tokens": 50}, result="two"),
    )
    assert facts.turns == 5
    assert facts.usage.input_tokens == 150
    assert (facts.cost, facts.usage.cost_usd) == ("0.75", "0.75")
    assert facts.final_text == "two"


def test_a_refused_key_is_known_from_the_first_retry_and_forgotten_when_it_is_taken() -> None:
    retry = line("system", subtype="api_retry", error_status=401)
    facts = read(retry, retry)
    assert (facts.unauthorized, facts.retries, facts.last_retry_status) == (True, 2, 401)
    assert not read(retry, assistant("m1", TEXT)).unauthorized
    busy = line("system", subtype="api_retry", error_status=529)
    assert not read(busy).unauthorized
    network = line("system", subtype="api_retry", error_status=None)
    assert read(network).last_retry_status is None


def test_no_key_at_all_is_a_refused_key() -> None:
    facts = read(result(is_error=True, result="Not logged in · Please run /login"))
    assert judge(facts, 1, None).reason == "AgentUnauthorized"


def test_lines_may_be_cut_anywhere() -> None:
    whole = line("system", session_id="é-1") + result(result="grüße")
    for size in (1, 2, 3, 7):
        parts = [whole[start : start + size] for start in range(0, len(whole), size)]
        assert read(*parts) == read(whole)


@pytest.mark.parametrize(
    "noise",
    [
        b"plain words\n",
        b"\xff\xfe\x00\x01\n",
        b"{not json}\n",
        b"[1, 2]\n",
        b"null\n",
        b"\n\n   \n",
        b'{"type": 7}\n',
        b'{"type": ["result"]}\n',
        b'{"type": "never heard of"}\n',
        b'{"type": "assistant", "message": "text"}\n',
        b'{"type": "assistant", "message": {"content": {"a": 1}, "usage": [1]}}\n',
        b'{"type": "user", "message": {"content": [1, null]}}\n',
        b'{"type": "tool_call", "tool_call": []}\n',
        b'{"type": "system", "subtype": "api_retry", "error_status": {"a": 1}}\n',
        b'{"type": "system", "subtype": "api_retry", "error_status": [401]}\n',
        b"{" * 100_000 + b"\n",
        b'{"a":' * 5000 + b"\n",
    ],
)
def test_noise_changes_nothing_that_counts(noise: bytes) -> None:
    facts = read(noise, result(result="fine"), noise)
    assert facts.result_seen
    assert judge(facts, 0, None).ok


def test_odd_figures_do_not_count() -> None:
    facts = read(
        result(
            num_turns=-5,
            total_cost_usd=float("1e300"),
            usage={"input_tokens": "many", "output_tokens": True},
        )
    )
    assert (facts.turns, facts.cost) == (0, None)
    assert facts.usage.input_tokens in (0, None)


def test_a_text_with_bytes_that_are_no_text_is_still_read() -> None:
    facts = read(b'{"type": "result", "is_error": false, "result": "a\xffb"}\n')
    assert facts.final_text == "a\ufffdb"


def test_a_line_of_20_megabytes_needs_little_memory() -> None:
    reader = StreamReader()
    chunk = b"x" * 500_000
    tracemalloc.start()
    reader.feed(b'{"type": "assistant", "text": "')
    for _ in range(40):
        reader.feed(chunk)
    reader.feed(b'"}\n')
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * LONGEST_LINE
    reader.feed(result(result="after"))
    assert reader.facts.final_text == "after"


def test_a_gap_loses_the_lines_it_cuts_and_nothing_else() -> None:
    reader = StreamReader()
    reader.feed(b'{"type": "resu', 0)
    reader.feed(b'lt", "is_error": true}\n' + result(result="later"), 5000)
    assert reader.facts.final_text == "later"
    assert not reader.facts.is_error
    # What was read already is not read again.
    before = reader.offset
    reader.feed(result(is_error=True), 5000)
    assert reader.offset == before
    assert not reader.facts.is_error


@pytest.mark.parametrize(
    ("facts", "exit_code", "ended_by", "reason"),
    [
        (AgentFacts(result_seen=True), 0, None, "AgentCompleted"),
        (AgentFacts(result_seen=True, is_error=True), 0, None, "AgentFailed"),
        (AgentFacts(result_seen=True), 1, None, "AgentFailed"),
        (AgentFacts(result_seen=True), 143, None, "AgentKilled"),
        (AgentFacts(), 0, None, "AgentNoResult"),
        (AgentFacts(), None, None, "AgentLost"),
        (AgentFacts(), 127, None, "CliMissing"),
        (AgentFacts(needs_result=False), 0, None, "AgentCompleted"),
        (AgentFacts(needs_result=False), 5, None, "AgentFailed"),
        (AgentFacts(result_seen=True), 0, EndedBy.AGENT, "AgentTimeout"),
        (AgentFacts(), 143, EndedBy.INACTIVITY, "InactivityTimeout"),
        (AgentFacts(), 143, EndedBy.RUN, "RunTimeout"),
        (AgentFacts(), 143, EndedBy.STOP, "StopRequested"),
        (AgentFacts(unauthorized=True), 143, EndedBy.STOP, "AgentUnauthorized"),
        (AgentFacts(unauthorized=True, result_seen=True), 0, None, "AgentCompleted"),
        (AgentFacts(last_words="Session ID x is already in use."), 1, None, "SessionInUse"),
    ],
)
def test_the_verdict_takes_the_agents_word_and_its_exit_code_together(
    facts: AgentFacts, exit_code: int | None, ended_by: EndedBy | None, reason: str
) -> None:
    verdict = judge(facts, exit_code, ended_by)
    assert verdict.reason == reason
    assert verdict.ok is (reason == "AgentCompleted")


def test_a_session_that_is_gone_has_its_word() -> None:
    facts = read(
        result(
            subtype="error_during_execution",
            is_error=True,
            errors=["No conversation found with session ID: x"],
        )
    )
    assert judge(facts, 1, None).reason == "SessionNotFound"


def test_a_refusal_to_start_is_quoted() -> None:
    facts = read(b"--dangerously-skip-permissions cannot be used with root/sudo privileges\n")
    verdict = judge(facts, 1, None)
    assert "root/sudo" in verdict.message
