"""Which of the seven failures an answer of GitHub's is, and how long a limit lasts.

GitHub answers both of its rate limits with 403 as well as with 429; only headers and text tell
them from a missing right.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec
from gidgethub.sansio import RateLimit

from issuesandbox.ports.errors import CallError, Denied, Invalid, NotFound, Throttled, kind_of

# What GitHub asks to wait at least when a secondary limit names no time.
_SECONDARY_WAIT: Final = 60.0
_LONGEST_WAIT: Final = 3600.0

# Part of the text, the failure it is, and the one word that people and scripts get to see.
_BY_TEXT: tuple[tuple[str, type[CallError], str], ...] = (
    ("issue is locked", Denied, "IssueLocked"),
    ("suspended", Denied, "InstallationSuspended"),
    ("a pull request already exists", Invalid, "PullRequestExists"),
    ("no commits between", Invalid, "NothingToPull"),
    ("draft pull requests are not supported", Invalid, "DraftNotSupported"),
    ("permissions requested are not granted", Denied, "PermissionNotGranted"),
    ("not accessible to the parent installation", NotFound, "NotInstalled"),
    ("resource not accessible by", Denied, "PermissionNotGranted"),
)


class _Answer(msgspec.Struct):
    message: str = ""
    errors: list[Any] = []


def failure(
    call: str, status: int, body: bytes, headers: Mapping[str, str], now: datetime
) -> CallError:
    """Return the error for an answer that is not a success."""
    text = _message(body)
    shown = f"GitHub answered {status} to {call}: {text or 'no message'}"
    wait = _limited(status, text.lower(), headers, now)
    if wait is not None:
        return Throttled(shown, code="RateLimited", retry_after=wait)
    if status in (301, 302, 307, 308):
        return NotFound(f"{shown}; it was moved or renamed", code="Moved")
    if status == 401:
        return Denied(shown, code="Unauthorized")
    if status in (403, 422):
        for part, kind, code in _BY_TEXT:
            if part in text.lower():
                return kind(shown, code=code)
    return kind_of(status)(shown)


def _limited(status: int, text: str, headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait if a rate limit stands in the way."""
    if status not in (403, 429):
        return None
    asked = headers.get("Retry-After", "")
    if asked.isdigit():
        return min(float(asked), _LONGEST_WAIT)
    budget = _budget(headers)
    if budget is not None and budget.remaining == 0:
        # Both times come from GitHub's clock, so that a wrong one of ours does not matter.
        left = (budget.reset_datetime - _date(headers, now)).total_seconds()
        return min(max(left, 1.0), _LONGEST_WAIT)
    if status == 429 or "secondary rate limit" in text or "abuse detection" in text:
        return _SECONDARY_WAIT
    return None


def _budget(headers: Mapping[str, str]) -> RateLimit | None:
    try:
        return RateLimit.from_http(headers)
    except ValueError:
        return None


def _date(headers: Mapping[str, str], now: datetime) -> datetime:
    try:
        return parsedate_to_datetime(headers["Date"])
    except (KeyError, ValueError):
        return now


def _message(body: bytes) -> str:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    details = (each.get("message") for each in answer.errors if isinstance(each, dict))
    return "; ".join([answer.message, *(each for each in details if isinstance(each, str))])[:500]
