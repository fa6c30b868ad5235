"""Looks for texts in a pack before it is sent: what is searched is what would be published.

Every object is read as it lies there. Of a difference to another object only what it adds is
searched, as one text. A pack comes from a sandbox, so everything about it is checked and bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_BY_OFFSET, _BY_ID = 6, 7
_ID_LENGTH: Final = 20
# Few bytes at a time: they can become a thousand times as many.
_WINDOW: Final = 16 * 1024
# More than any pack of this size holds that is not made to be a burden.
_MOST: Final = 2 << 30
_LARGEST_DIFFERENCE: Final = 64 << 20


class PackError(ValueError):
    """The bytes are no pack that can be read."""


def holds_any(pack: bytes, texts: Sequence[bytes]) -> bool:
    """Tell whether any object of the pack has one of the texts in it."""
    if not texts:
        return False
    if pack[:4] != b"PACK" or len(pack) < 12:
        raise PackError("it does not begin as a pack does")
    overlap, reader = max(map(len, texts)) - 1, _Reader(pack)
    for _ in range(int.from_bytes(pack[8:12], "big")):
        before = b""
        for piece in reader.next_object():
            seen = before + piece
            if any(text in seen for text in texts):
                return True
            before = seen[-overlap:] if overlap else b""
    return False


class _Reader:
    """Reads one object after the other."""

    def __init__(self, pack: bytes) -> None:
        self._pack = pack
        self._at = 12
        self._left = _MOST

    def next_object(self) -> Iterable[bytes]:
        """Return the content of the next object in pieces; all of them must be taken."""
        kind = (self._byte() >> 4) & 7
        if self._pack[self._at - 1] & 0x80:
            self._skip_number()
        if kind == _BY_OFFSET:
            self._skip_number()
        elif kind == _BY_ID:
            self._at += _ID_LENGTH
        return self._difference() if kind in (_BY_OFFSET, _BY_ID) else self._inflated()

    def _difference(self) -> Iterator[bytes]:
        whole = bytearray()
        for piece in self._inflated():
            whole += piece
            if len(whole) > _LARGEST_DIFFERENCE:
                raise PackError("a difference in it is too large")
        yield added(bytes(whole))

    def _inflated(self) -> Iterator[bytes]:
        engine = zlib.decompressobj()
        while not engine.eof:
            window = self._pack[self._at : self._at + _WINDOW]
            self._at += len(window)
            try:
                piece = engine.decompress(window)
            except zlib.error as error:
                raise PackError(str(error)) from error
            self._left -= len(piece)
            if not window or self._left < 0:
                raise PackError("it ends too early, or does not end")
            yield piece
        self._at -= len(engine.unused_data)

    def _byte(self) -> int:
        if self._at >= len(self._pack):
            raise PackError("it ends too early")
        self._at += 1
        return self._pack[self._at - 1]

    def _skip_number(self) -> None:
        while self._byte() & 0x80:
            pass


def added(difference: bytes) -> bytes:
    """Return what a difference adds; longer texts are added in several steps."""
    at, found = 0, bytearray()
    try:
        for _ in ("old size", "new size"):
            while difference[at] & 0x80:
                at += 1
            at += 1
        while at < len(difference):
            step, at = difference[at], at + 1
            if step & 0x80:
                # What is copied from elsewhere is there already.
                at += (step & 0x7F).bit_count()
            else:
                found += difference[at : at + step]
                at += step
    except IndexError:
        raise PackError("a difference in it ends too early") from None
    return bytes(found)
