"""What a git server says, taken apart; nonsense is named as such and never believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.adapters.git.packets import (
    FLUSH,
    Garbled,
    advertised_refs,
    packet,
    push_report,
)

SERVICE = "git-upload-pack"
ID = b"1" * 40


def _advertisement(*lines: bytes) -> bytes:
    return packet(b"# service=git-upload-pack\n") + FLUSH + b"".join(map(packet, lines)) + FLUSH


def _report(*lines: bytes, notes: bytes = b"") -> bytes:
    inner = b"".join(map(packet, lines)) + FLUSH
    half = len(inner) // 2
    bands = [b"\2" + notes, b"\1" + inner[:half], b"\1" + inner[half:]]
    return b"".join(map(packet, bands)) + FLUSH


def test_refs_are_read_without_peeled_tags_and_head() -> None:
    made = advertised_refs(
        _advertisement(
            ID + b" HEAD\0multi_ack agent=x\n",
            ID + b" refs/heads/main\n",
            ID + b" refs/tags/v1\n",
            b"2" * 40 + b" refs/tags/v1^{}\n",
        ),
        SERVICE,
    )
    assert made == {"refs/heads/main": "1" * 40, "refs/tags/v1": "1" * 40}


def test_no_refs_at_all_is_an_answer_too() -> None:
    assert advertised_refs(_advertisement(b"0" * 40 + b" capabilities^{}\0x\n"), SERVICE) == {}


def test_a_report_is_read_across_side_bands() -> None:
    made = push_report(_report(b"unpack ok\n", b"ok a\n", b"ng b no way\n", notes=b"hello\n"))
    assert made.unpacked == "ok"
    assert made.accepted == {"a"}
    assert made.refused == {"b": "no way"}
    assert made.notes == "hello"


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_half_an_answer_is_garbled(cut: int) -> None:
    with pytest.raises(Garbled):
        push_report(_report(b"unpack ok\n", b"ok a\n", notes=b"x")[:-cut])
    with pytest.raises(Garbled):
        advertised_refs(_advertisement(ID + b" refs/heads/main\n")[:-cut], SERVICE)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_garbled(data: bytes) -> None:
    for framed in (data, packet(data) + FLUSH, packet(b"\1" + packet(data) + FLUSH) + FLUSH):
        for read in (push_report, lambda raw: advertised_refs(raw, SERVICE)):
            try:
                read(framed)
            except Garbled:
                continue
