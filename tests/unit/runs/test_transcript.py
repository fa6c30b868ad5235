"""What is kept of an agent's output: no secret, not even half of one, and never too much."""

from __future__ import annotations

import pytest

from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.transcript import HEAD, MAX_TRANSCRIPT, TAIL, excerpt, transcript

SECRET = "planted-secret-0123456789"
REDACTOR = Redactor([SECRET])


def halves(cut: int) -> tuple[bytes, bytes]:
    return SECRET[:cut].encode(), SECRET[cut:].encode()


@pytest.mark.parametrize("cut", range(1, len(SECRET), 6))
@pytest.mark.parametrize("around", [b"\n", b"x"])
def test_half_a_secret_at_a_cut_is_left_out(cut: int, around: bytes) -> None:
    first, last = halves(cut)
    head = (b"first" + around).ljust(20_000, b"x") + first
    tail = last + around.rjust(20_000, b"x") + b"last"
    text = transcript(head, tail, REDACTOR, gap=True)
    assert text.startswith("first")
    assert text.endswith("last")
    assert "[...]" in text
    assert first.decode()[:4] not in text
    assert last.decode()[-4:] not in text


def test_without_a_gap_nothing_is_left_out_and_a_secret_across_both_is_hidden() -> None:
    first, last = halves(9)
    assert transcript(b"a " + first, last + b" b", REDACTOR, gap=False) == "a *** b"


def test_controls_between_the_letters_do_not_save_a_secret() -> None:
    hidden = "\0".join(SECRET).encode() + b"\x1b[2J"
    assert transcript(hidden, b"", REDACTOR, gap=False) == "***[2J"


@pytest.mark.parametrize("filling", [b"\xff", b"\0", b"\n", "é".encode(), b"a://b@"])
def test_it_fits_into_a_config_map_whatever_was_printed(filling: bytes) -> None:
    head, tail = (filling * size for size in (HEAD // len(filling), TAIL // len(filling)))
    text = transcript(head, tail, REDACTOR, gap=False)
    assert len(text.encode()) <= MAX_TRANSCRIPT


@pytest.mark.parametrize("cut", range(1, len(SECRET), 6))
def test_a_line_that_is_still_being_written_waits_for_its_end(cut: int) -> None:
    first, last = halves(cut)
    assert excerpt(b"said\n" + first, REDACTOR, cut=False) == "said\n"
    assert excerpt(last + b"\nsaid\n", REDACTOR, cut=True) == "said\n"
    assert excerpt(b"said " + first + last + b"\n", REDACTOR, cut=False) == "said ***\n"
