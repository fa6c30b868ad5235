"""How large a resource can become, and how long texts are cut."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.api.schema_objects import maximal_object, refused

from issuesandbox.api.constraints import clip
from issuesandbox.api.crd import build_schema
from issuesandbox.api.status import Comment, ErrorStatus, Status, Summary
from issuesandbox.api.status_run import Change, ChangeKind, Outcome, PullRequest, RunPhase
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.chapters import Ending, Harvest

KIB = 1024
NOW = datetime(2030, 1, 1, tzinfo=UTC)
STATUS = build_schema()["properties"]["status"]


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def test_the_largest_object_is_under_300_kib() -> None:
    assert size(maximal_object()) < 300 * KIB


def test_the_largest_spec_fits_the_annotation_of_kubectl_apply() -> None:
    # kubectl apply keeps a second copy of the spec in an annotation of at most 256 KiB.
    assert size(maximal_object()["spec"]) < 256 * KIB


def test_the_largest_summary_is_under_8_kib() -> None:
    assert size(maximal_object()["status"]["summary"]) < 8 * KIB


@given(text=st.text(), limit=st.integers(3, 40))
def test_a_cut_text_fits_and_is_whole_characters(text: str, limit: int) -> None:
    cut = clip(text, limit)
    assert len(cut.encode()) <= limit
    assert cut == text or text.startswith(cut.removesuffix("…"))


def test_a_text_that_fits_is_left_alone() -> None:
    assert clip("äöü", 6) == "äöü"


def test_a_lone_surrogate_cannot_break_a_status() -> None:
    assert ErrorStatus(message="a\ud800b", code="X").message == "a?b"


# R87
def test_a_long_error_is_cut_and_not_refused() -> None:
    error = ErrorStatus(message="m" * 5000, code="c" * 500, details="d" * 5000)
    assert [len(text.encode()) for text in (error.message, error.code, error.details or "")] == [
        1000,
        50,
        2000,
    ]


@pytest.mark.parametrize("letter", ["x", "ü", "😀"])
def test_a_long_summary_is_cut_by_bytes(letter: str) -> None:
    text = Summary(text=letter * 9000).text
    assert text is not None
    assert 6144 - 4 < len(text.encode()) <= 6144


def told_in(words: str) -> Status:
    """Return the status of a run that failed, with these words wherever outsiders have a say."""
    started = {"id": "r1", "phase": "Publishing", "startedAt": NOW.isoformat()}
    status = Status.model_validate({"run": started})
    status = chapters.agent_ended(status, 1, words, NOW)
    status = chapters.doubted(status, "AgentSurvives", words, NOW)
    # As it is after redaction: a copy.
    change = Change(path="a", kind=ChangeKind.ADDED).model_copy(update={"path": words})
    status = chapters.harvested(status, Harvest(None, (change,), None, words, words), NOW)
    status = chapters.proposed(status, PullRequest(number=1, url=words), NOW)
    status = chapters.ended(status, Ending(Outcome.FAILED, "Some", words), RunPhase.FINALIZING, NOW)
    return chapters.finished(status, Comment(id=1, url=words), NOW)


@given(text=st.text(st.characters(), min_size=1, max_size=20))
def test_no_words_from_outside_make_a_status_unwritable(text: str) -> None:
    status = told_in(text * 8000).fitted()
    assert refused(STATUS, status.to_json()) == []
    assert status.fitted() == status


def test_a_status_that_fits_is_left_alone() -> None:
    largest = Status.model_validate(maximal_object()["status"])
    assert largest.fitted() == largest
    assert refused(STATUS, largest.to_json()) == []
