"""The adapter's own answer to a delivery, which is written in one piece.

aiohttp puts an answer together header by header, for all that an answer may be; here each of them
is a status and a few words of JSON. Knows nothing of deliveries.
"""

from __future__ import annotations

from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import monotonic

import msgspec
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

_REASONS = {each.value: each.phrase for each in HTTPStatus}
# In so many seconds those come again that were told to.
_AGAIN = 10
_COME_AGAIN = (429, 503)
# The rest of the body is not waited for.
_HANG_UP = (408, 413, 429)


class Reply(web.StreamResponse):
    """A status and a few words."""

    def __init__(self, status: int, **words: str) -> None:
        super().__init__(status=status)
        self._words = words
        self._stays = status not in _HANG_UP

    @property
    def keep_alive(self) -> bool:
        """Tell whether the connection may be used once more."""
        return self._stays

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Write all of it, as fast as it is read: who asks much and reads nothing must wait."""
        stays = self._stays = self._stays and request.keep_alive
        body, writer = msgspec.json.encode(self._words), request.writer
        head = _head(self.status, stays, int(monotonic()))
        await writer.write_eof(b"%b%d\r\n\r\n%b" % (head, len(body), body))
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Add nothing: all of it was written."""


@lru_cache(maxsize=32)
def _head(status: int, stays: bool, _second: int) -> bytes:
    """Return all but the length; it is the same for a second, as long as the date is."""
    again = f"Retry-After: {_AGAIN}\r\n" if status in _COME_AGAIN else ""
    return (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        "Content-Type: application/json\r\n"
        f"Date: {formatdate(usegmt=True)}\r\n{again}"
        f"Connection: {'keep-alive' if stays else 'close'}\r\n"
        "Content-Length: "
    ).encode()
