"""An issue and the people around it, as GitHub's events tell of them.

Knows nothing of payloads, policies or resources. Values that are made for each delivery are
structs: to make one costs a fraction of what a frozen dataclass does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from msgspec import Struct

from issuesandbox.api.constraints import clip

_MAX_TITLE = 256
_MAX_BODY = 65536
_MAX_LABELS = 100
_MAX_LABEL = 50
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?", re.ASCII)
_ADDRESS = re.compile(r"https?://[^/?#@\x00-\x20\x7f]+(/[^\x00-\x20\x7f]*)?", re.ASCII)


class Standing(StrEnum):
    """GitHub's word for what a person is to a repository."""

    OWNER = "OWNER"
    MEMBER = "MEMBER"
    COLLABORATOR = "COLLABORATOR"
    CONTRIBUTOR = "CONTRIBUTOR"
    FIRST_TIMER = "FIRST_TIMER"
    FIRST_TIME_CONTRIBUTOR = "FIRST_TIME_CONTRIBUTOR"
    MANNEQUIN = "MANNEQUIN"
    NONE = "NONE"


class Person(Struct, frozen=True):
    """Somebody who did something; where GitHub does not say what they are, `standing` is empty."""

    login: str
    is_bot: bool = False
    standing: str = ""
    may_start: bool | None = None
    """What GitHub said when it was asked whether they may start runs."""


class IssueFacts(Struct, frozen=True, dict=True):
    """An issue at one moment; it has a dict, so that what is derived is kept."""

    repository: str
    number: int
    id: int
    title: str
    body: str
    author: Person
    updated_at: datetime
    is_open: bool = True
    is_locked: bool = False
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    url: str = ""
    created_at: datetime | None = None

    @cached_property
    def trigger(self) -> str:
        """Return the trigger that this text stands for: the same text never runs twice."""
        return text_trigger(self._title, self._body)

    @property
    def kept_labels(self) -> tuple[str, ...]:
        """Return the labels that a resource has room for."""
        if not self.labels:
            return ()
        return tuple(each for each in self.labels if 0 < len(each) <= _MAX_LABEL)[:_MAX_LABELS]

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return the parts of `spec.issue` that follow the issue, within the resource's limits."""
        found: dict[str, Any] = {
            "title": self._title,
            "body": self._body,
            "labels": list(self.kept_labels),
        }
        if _LOGIN.fullmatch(self.author.login) and len(self.author.login) <= 64:
            found["author"] = self.author.login
        if _ADDRESS.fullmatch(self.url) and len(self.url) <= 512:
            found["url"] = self.url
        return found

    @property
    def _title(self) -> str:
        return clip(self.title[:_MAX_TITLE], 4 * _MAX_TITLE)

    @property
    def _body(self) -> str:
        return clip(self.body, _MAX_BODY)


def text_trigger(title: str, body: str) -> str:
    """Return the trigger that a title and a body stand for."""
    return hashlib.sha256(f"{title}\0{body}".encode("utf-8", "replace")).hexdigest()[:12]
