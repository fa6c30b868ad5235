"""git's pkt-line framing, and the answers of a remote that come in it.

Pure: bytes in, values out. Anything that breaks off or makes no sense is `Garbled`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FLUSH: Final = b"0000"
_LARGEST: Final = 65520
_LENGTH: Final = re.compile(rb"[0-9a-fA-F]{4}")


class Garbled(Exception):
    """The bytes are not what a git server says, or only the beginning of it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What receive-pack said: of the pack, of each ref, and to people."""

    unpacked: str
    refused: dict[str, str]
    accepted: frozenset[str]
    notes: str = ""


def packet(text: bytes) -> bytes:
    """Frame one packet."""
    size = len(text) + 4
    if size > _LARGEST:
        raise ValueError("a packet holds at most 65516 bytes")
    return b"%04x%s" % (size, text)


def packets(data: bytes) -> Iterator[bytes | None]:
    """Take packets apart; None is a flush."""
    at = 0
    while at < len(data):
        length = data[at : at + 4]
        if not _LENGTH.fullmatch(length):
            raise Garbled("a packet has no length")
        size = int(length, 16)
        if size == 0:
            yield None
            at += 4
            continue
        if size < 4 or at + size > len(data):
            raise Garbled("a packet breaks off")
        yield data[at + 4 : at + size]
        at += size


def advertised_refs(data: bytes, service: str) -> dict[str, str]:
    """Return the refs of an advertisement with their object ids."""
    parts = packets(data)
    if next(parts, None) != f"# service={service}\n".encode() or next(parts, b"") is not None:
        raise Garbled("this is no git server that speaks the smart protocol")
    refs: dict[str, str] = {}
    for part in parts:
        if part is None:
            return refs
        if part.startswith(b"ERR "):
            raise Garbled(_text(part[4:]))
        line = part.partition(b"\0")[0].rstrip(b"\n")
        object_id, _, name = line.partition(b" ")
        # `capabilities^{}` stands for no refs at all, `tag^{}` for what a tag points to.
        if name.startswith(b"refs/") and not name.endswith(b"^{}"):
            refs[name.decode(errors="replace")] = object_id.decode("ascii", "replace")
    raise Garbled("the list of refs breaks off")


def push_report(data: bytes) -> Report:
    """Return what a push was answered, from behind its side bands."""
    report, notes = bytearray(), bytearray()
    for part in packets(data):
        if part is None:
            return _report(bytes(report), _text(bytes(notes)))
        if part[:1] == b"\1":
            report += part[1:]
        elif part[:1] in (b"\2", b"\3"):
            notes += part[1:]
        elif part.startswith(b"ERR "):
            return Report(_text(part[4:]), {}, frozenset(), _text(bytes(notes)))
        else:
            raise Garbled("the answer has no side band")
    raise Garbled("the answer to the push breaks off")


def _report(data: bytes, notes: str) -> Report:
    lines = [_text(part) for part in packets(data) if part is not None]
    if not lines or not lines[0].startswith("unpack "):
        raise Garbled("the remote did not say what became of the push")
    refused: dict[str, str] = {}
    accepted: set[str] = set()
    for line in lines[1:]:
        verdict, _, rest = line.partition(" ")
        if verdict == "ok":
            accepted.add(rest)
        elif verdict == "ng":
            ref, _, reason = rest.partition(" ")
            refused[ref] = reason
    return Report(lines[0].removeprefix("unpack "), refused, frozenset(accepted), notes)


def _text(data: bytes) -> str:
    return data.decode(errors="replace").strip()
