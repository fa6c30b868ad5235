"""GraphQL's way to refuse: it answers 200 and says in the body what went wrong."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from issuesandbox.ports.errors import CallError, Denied, NotFound, Throttled, Unavailable

_WAIT: Final = 60.0
_KINDS: Final[dict[str, type[CallError]]] = {
    "NOT_FOUND": NotFound,
    "FORBIDDEN": Denied,
    "INSUFFICIENT_SCOPES": Denied,
}


class Problem(msgspec.Struct):
    """One thing that could not be answered."""

    message: str = ""
    type: str = ""


class Told(msgspec.Struct):
    """An answer: data, problems, or both."""

    data: Any = None
    errors: list[Problem] = []


def refusal(problem: Problem) -> CallError:
    """Return the failure that a problem is."""
    text = f"GitHub answered to a query: {problem.message or 'no message'}"
    if problem.type == "RATE_LIMITED":
        return Throttled(text, code="RateLimited", retry_after=_WAIT)
    return _KINDS.get(problem.type, Unavailable)(text)
