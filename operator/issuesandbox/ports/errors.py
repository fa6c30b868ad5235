"""The seven ways a call to the outside can fail, as the engine sees them.

Adapters translate every transport and service error into one of these; nobody above them
looks at status codes. Messages are made for people and must hold no secret.
"""

from __future__ import annotations


class IssueSandboxError(Exception):
    """Base of every error this project raises on purpose."""


class CallError(IssueSandboxError):
    """A call to Kubernetes or Daytona did not do what was asked."""

    def __init__(
        self, message: str, *, code: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).__name__
        self.retry_after = retry_after


class NotFound(CallError):
    """The service answered that the thing does not exist."""


class Conflict(CallError):
    """The name is taken, or the object changed since it was read."""


class Busy(CallError):
    """The service refuses while a state change is under way."""


class Invalid(CallError):
    """The request itself is wrong; repeating it cannot help."""


class Denied(CallError):
    """The credentials are missing, wrong or lack a right."""


class Throttled(CallError):
    """A rate limit or a quota stands in the way; it costs no attempt."""


class Unavailable(CallError):
    """No answer, or one that proves nothing: the outcome is unknown."""


_BY_STATUS: dict[int, type[CallError]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    429: Throttled,
}


def kind_of(status: int) -> type[CallError]:
    """Return which failure an HTTP status is, where the answer says nothing more."""
    default = Invalid if 400 <= status < 500 and status != 408 else Unavailable
    return _BY_STATUS.get(status, default)
