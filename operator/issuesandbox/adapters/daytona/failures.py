"""Which of the seven failures an answer of Daytona's control plane is.

Daytona answers quotas, missing snapshots and wrong states alike with 400; only the text tells
them apart. Texts are those of the last public server; unknown ones fall back to the status.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from issuesandbox.ports.errors import (
    Busy,
    CallError,
    Denied,
    Invalid,
    Throttled,
    Unavailable,
    kind_of,
)
from issuesandbox.ports.toolbox import TOO_SLOW

# Part of the text, the failure it is, and the one word that people and scripts get to see.
_BY_TEXT: tuple[tuple[str, type[CallError], str], ...] = (
    ("state change in progress", Busy, "Busy"),
    ("modified by another operation", Busy, "Busy"),
    ("limit exceeded", Throttled, "QuotaExceeded"),
    ("no available runners", Throttled, "NoCapacity"),
    ("organization is suspended", Denied, "OrganizationSuspended"),
    ("exceeds maximum allowed per sandbox", Invalid, "SizeRefused"),
    ("snapshot", Invalid, "SnapshotNotUsable"),
    ("failed to start", Invalid, "StartFailed"),
)

# Said by the proxy in front of the sandboxes, with any status: they tell nothing of the request.
_PROXY_TEXTS: tuple[tuple[str, str], ...] = (
    ("is the sandbox started", "NotRunning"),
    ("failed to get runner info", "NotRunning"),
    ("sandbox container not found", "NotRunning"),
    # A sandbox that does not exist looks like a bad key here.
    ("bearer token is invalid", "NotReachable"),
)


class _Envelope(msgspec.Struct):
    message: str | list[str] = ""
    errors: list[str] = []


def failure(call: str, status: int, body: bytes, headers: Mapping[str, str]) -> CallError:
    """Return the error for an answer that is not a success."""
    text = _message(body)
    kind, code = _kind(status, text.lower())
    shown = f"Daytona answered {status} to {call}: {text or 'no message'}"
    return kind(shown, code=code, retry_after=_retry_after(headers))


def toolbox_failure(call: str, status: int, body: bytes) -> CallError:
    """Return the error for an answer from inside a sandbox, or from the proxy before it."""
    text = _message(body)
    shown = f"The toolbox answered {status} to {call}: {text or 'no message'}"
    for part, code in _PROXY_TEXTS:
        if part in text.lower():
            return Unavailable(shown, code=code)
    return kind_of(status)(shown, code=TOO_SLOW if status == 408 else None)


def _kind(status: int, text: str) -> tuple[type[CallError], str | None]:
    if status in (400, 403, 409, 422):
        for part, kind, code in _BY_TEXT:
            if part in text:
                return kind, code
    return kind_of(status), "Unauthorized" if status == 401 else None


def _message(body: bytes) -> str:
    try:
        told = msgspec.json.decode(body, type=_Envelope)
    except msgspec.MsgspecError:
        return ""
    # An upload that failed in part lists its errors instead.
    message = told.message or told.errors
    return (", ".join(message) if isinstance(message, list) else message)[:500]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    # Daytona suffixes the header with the name of the exhausted bucket.
    for name, value in headers.items():
        if name.lower().startswith("retry-after") and value.isdigit():
            return float(value)
    return None
