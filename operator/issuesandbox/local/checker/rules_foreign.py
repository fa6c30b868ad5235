"""Rules about whose things these are: what is not the installation's own is never touched."""

from __future__ import annotations

from collections.abc import Iterator

from issuesandbox.api.names import (
    LABEL_ATTEMPT,
    LABEL_INSTALLATION,
    LABEL_NAME,
    LABEL_NAMESPACE,
    LABEL_NUMBER,
    LABEL_REPOSITORY,
    LABEL_RESOURCE,
    LABEL_UID,
)
from issuesandbox.local.checker.evidence import Evidence, Violation
from issuesandbox.local.checker.sandboxes import is_own, lives

_READS = frozenset({"sandbox.get", "sandbox.list", "sandbox.toolbox_url"})
_LABELS = (
    LABEL_INSTALLATION,
    LABEL_NAMESPACE,
    LABEL_RESOURCE,
    LABEL_UID,
    LABEL_REPOSITORY,
    LABEL_NUMBER,
    LABEL_NAME,
    LABEL_ATTEMPT,
)
_REWRITTEN = frozenset({"issue_comment.edited", "issue_comment.deleted"})


def foreign_untouched(evidence: Evidence) -> Iterator[Violation]:
    """Nothing is done to a sandbox that does not carry the installation's label."""
    births = {life.id: life.birth for life in lives(evidence)}
    for call in evidence.daytona.calls:
        birth = births.get(call.sandbox or "")
        if call.kind in _READS or birth is None or is_own(evidence, birth.labels):
            continue
        # The call that made it is the business of another rule.
        if call.kind != "sandbox.create":
            subject = f"sandbox {birth.sandbox} ({birth.name})"
            yield Violation("foreign-untouched", call.at, subject, f"{call.kind} was called on it")


def all_labelled(evidence: Evidence) -> Iterator[Violation]:
    """Every sandbox the operator makes carries all labels, or nobody could tell whose it is."""
    made = {call.sandbox for call in evidence.daytona.calls if call.kind == "sandbox.create"}
    for life in lives(evidence):
        missing = [label for label in _LABELS if not life.birth.labels.get(label)]
        if life.id in made and missing:
            subject = f"sandbox {life.id} ({life.birth.name})"
            text = f"was created without {', '.join(missing)}"
            yield Violation("all-labelled", life.birth.at, subject, text)


def foreign_comments_untouched(evidence: Evidence) -> Iterator[Violation]:
    """No comment is edited or deleted but the operator's own."""
    own: set[int | None] = set()
    for act in evidence.github.acts if evidence.github else ():
        if act.what == "issue_comment.created":
            own.add(act.id)
        elif act.what in _REWRITTEN and act.id not in own:
            subject = f"{act.repository}#{act.number}"
            text = f"{act.what} of comment {act.id}, which somebody else wrote"
            yield Violation("foreign-comments-untouched", act.at, subject, text)
