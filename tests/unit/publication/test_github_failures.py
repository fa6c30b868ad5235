"""Which failure an answer of GitHub's is, and for how long a limit holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from issuesandbox.adapters.github.failures import failure
from issuesandbox.ports.errors import (
    CallError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def _made(status: int, message: str = "", **headers: str) -> CallError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    lower = {**named, **{name.lower(): value for name, value in named.items()}}
    return failure("GET /x", status, json.dumps({"message": message}).encode(), lower, NOW)


@pytest.mark.parametrize(
    ("status", "message", "kind", "code"),
    [
        (401, "Bad credentials", Denied, "Unauthorized"),
        (403, "Resource not accessible by integration", Denied, "PermissionNotGranted"),
        (403, "This installation has been suspended", Denied, "InstallationSuspended"),
        (403, "Something else", Denied, "Denied"),
        (404, "Not Found", NotFound, "NotFound"),
        (410, "This issue was deleted", NotFound, "NotFound"),
        (301, "Moved Permanently", NotFound, "Moved"),
        (409, "Git Repository is empty.", Conflict, "Conflict"),
        (422, "Validation Failed", Invalid, "Invalid"),
        (500, "", Unavailable, "Unavailable"),
        (504, "", Unavailable, "Unavailable"),
    ],
)
def test_every_status_is_one_of_seven(
    status: int, message: str, kind: type[CallError], code: str
) -> None:
    made = _made(status, message)
    assert type(made) is kind
    assert made.code == code


def test_the_reason_of_a_refused_field_is_found() -> None:
    body = {
        "message": "Validation Failed",
        "errors": [{"code": "custom", "message": "A pull request already exists for acme:x."}, 3],
    }
    made = failure("POST /x", 422, json.dumps(body).encode(), {}, NOW)
    assert made.code == "PullRequestExists"
    assert "already exists for acme:x" in str(made)


@pytest.mark.parametrize("status", [403, 429])
def test_limits_are_told_from_missing_rights(status: int) -> None:
    asked = _made(status, "You have exceeded a secondary rate limit.", Retry_After="17")
    assert (type(asked), asked.retry_after) == (Throttled, 17)
    silent = _made(status, "You have exceeded a secondary rate limit.")
    assert (type(silent), silent.retry_after) == (Throttled, 60)
    # Ours is two minutes fast: the wait is counted on GitHub's own clock.
    reset = int((NOW + timedelta(seconds=300)).timestamp())
    hourly = _made(
        status,
        "API rate limit exceeded",
        X_RateLimit_Limit="5000",
        X_RateLimit_Remaining="0",
        X_RateLimit_Reset=str(reset),
        Date="Sun, 01 Mar 2026 11:58:00 GMT",
    )
    assert (type(hourly), hourly.retry_after) == (Throttled, 420)


def test_nonsense_is_survived() -> None:
    made = failure("GET /x", 403, b"\xff<html>", {"X-RateLimit-Remaining": "many"}, NOW)
    assert type(made) is Denied
    assert "no message" in str(made)
