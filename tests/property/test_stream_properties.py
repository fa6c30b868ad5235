"""Whatever an agent prints and however it is cut, the reader comes through with the same facts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.domain.agents.stream import StreamReader
from issuesandbox.domain.agents.verdict import LONGEST_SAID, judge
from issuesandbox.domain.prompt import MAX_CHARACTERS, IssueFacts, issue_text
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.supervision import EndedBy, PulseError, parse_pulse

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
names = st.sampled_from(
    [
        *("subtype", "session_id", "message", "is_error", "error_status", "errors", "result"),
        *("usage", "num_turns", "total_cost_usd", "api_error_status", "tool_call", "error"),
    ]
)
kinds = st.sampled_from(["system", "assistant", "user", "tool_call", "result", "odd"])
messages = st.fixed_dictionaries(
    {},
    optional={
        "id": values,
        "usage": values | st.dictionaries(st.sampled_from(["input_tokens"]), values),
        "content": values
        | st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["text", "tool_use", "tool_result"])},
                optional={"text": values, "name": values},
            )
        ),
    },
)
lines = st.builds(
    lambda kind, fields, message: json.dumps({**fields, **message, "type": kind}).encode(),
    kinds,
    st.dictionaries(names, values, max_size=4),
    st.one_of(st.just({}), messages.map(lambda made: {"message": made})),
)
outputs = st.lists(lines | st.binary(max_size=30), max_size=12).map(b"\n".join)


@given(output=outputs, cuts=st.lists(st.integers(0, 400), max_size=8))
def test_the_same_facts_however_the_output_is_cut(output: bytes, cuts: list[int]) -> None:
    whole = StreamReader()
    whole.feed(output + b"\n")
    pieces = StreamReader()
    places = sorted({0, *(cut for cut in cuts if cut < len(output)), len(output)})
    for begin, end in pairwise(places):
        pieces.feed(output[begin:end], begin)
    pieces.feed(b"\n")
    assert pieces.facts == whole.facts
    for ended_by in (None, *EndedBy):
        verdict = judge(whole.facts, 0, ended_by)
        assert verdict.reason.isalnum()
        # What it said is bounded; whoever shows it hides secrets and then cuts it further.
        assert len(verdict.message) < LONGEST_SAID + 200


@given(output=outputs, again=st.integers(0, 200))
def test_reading_again_changes_nothing(output: bytes, again: int) -> None:
    reader = StreamReader()
    reader.feed(output, 0)
    before = reader.facts
    reader.feed(output[again:], min(again, len(output)))
    assert reader.facts == before


@given(
    title=st.text(max_size=60),
    body=st.text(max_size=500),
    times=st.integers(1, 400),
    template=st.none() | st.text(max_size=60).map(lambda text: f"{text}{{body}}{{title}}{text}"),
)
def test_an_issue_of_any_text_fits_and_can_be_written(
    title: str, body: str, times: int, template: str | None
) -> None:
    issue = IssueFacts(number=1, title=title, body=body * times)
    text = issue_text(issue, template=template)
    assert 0 < len(text) <= MAX_CHARACTERS
    assert "\0" not in text
    text.encode()


@given(
    secret=st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=6),
    before=st.text(max_size=30),
    after=st.text(max_size=30),
)
def test_a_known_secret_never_survives(secret: str, before: str, after: str) -> None:
    assert secret not in Redactor([secret]).redact(f"{before}{secret}{after}").replace("***", "")


@given(st.text() | st.text().map(lambda text: f"issuesandbox-pulse\nstate RUNNING\n{text}\nend\n"))
def test_any_answer_is_a_pulse_or_refused(text: str) -> None:
    try:
        parse_pulse(text)
    except PulseError:
        return
