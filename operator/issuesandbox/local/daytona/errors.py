"""The two error envelopes of the service: the API's and the sandbox daemon's.

Knows the wire format alone; which error fits which situation is decided where it happens.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

DAEMON = "DAYTONA_DAEMON"
PROXY = "DAYTONA_PROXY"

# The daemon writes the kind of error in front of the message.
_PREFIXES = {
    400: "bad request",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    408: "request timeout",
    409: "conflict",
    410: "gone",
    422: "unprocessable entity",
}
_CODES = {
    400: "BAD_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    408: "REQUEST_TIMEOUT",
    409: "CONFLICT",
    410: "GONE",
    422: "UNPROCESSABLE_ENTITY",
}


class StateError(Exception):
    """The state folder cannot be used; the message says why and what to do."""


class EmptyAnswer(Exception):
    """A status and nothing else, as a proxy answers that finds nobody behind it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class ApiError(Exception):
    """An answer of the control plane that is not a success."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}

    def envelope(self, path: str, method: str, timestamp: str) -> dict[str, Any]:
        """Return the body that the API sends with this error."""
        return {
            "path": path,
            "timestamp": timestamp,
            "statusCode": self.status,
            "error": HTTPStatus(self.status).phrase,
            "message": self.message,
        }


class ToolboxError(ApiError):
    """An answer of the toolbox proxy or of the daemon inside a sandbox."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, source: str = DAEMON
    ) -> None:
        prefix = _PREFIXES.get(status)
        super().__init__(status, f"{prefix}: {message}" if prefix else message)
        self.code = code or _CODES.get(status, "INTERNAL_SERVER_ERROR")
        self.source = source

    def envelope(self, path: str, method: str, timestamp: str) -> dict[str, Any]:
        """Return the body that the daemon sends with this error."""
        return {
            "statusCode": self.status,
            "message": self.message,
            "code": self.code,
            "source": self.source,
            "timestamp": timestamp,
            "path": path,
            "method": method,
        }


def not_found(reference: str) -> ApiError:
    """Return the one answer for missing, destroyed, hidden and foreign sandboxes."""
    return ApiError(404, f"Sandbox with ID or name {reference} not found")
