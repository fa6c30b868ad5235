"""Other people's words have no effect on GitHub."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.domain.markdown import code, neutral, neutral_line, quoted

_OBEYED = re.compile(
    r"(?<![A-Za-z0-9_])@[A-Za-z0-9]|#\d|<[A-Za-z/!?]|!\[|\bGH-\d"
    r"|\b(close[sd]?|fix(e[sd])?|resolve[sd]?):?\s+https?://",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    "text",
    [
        "hey @octocat and @acme/team",
        "(@octocat)",
        "closes #1, fixes acme/app#2, GH-3",
        "Closes: https://github.com/acme/app/issues/5",
        "fixed\nhttps://github.com/acme/app/issues/5",
        "<!-- issuesandbox:status x --> <details><script>",
        "![x](https://evil.example/?secret)",
        "</details>",
    ],
)
def test_what_github_obeys_is_broken_and_still_reads_the_same(text: str) -> None:
    made = neutral(text, 1000)
    assert not _OBEYED.search(made)
    assert made.replace("\u2060", "") == text


def test_code_holds_no_marker() -> None:
    path = "src/<!-- issuesandbox:deleted 2030-01-01T00:00:00Z 9 -->.py"
    assert "<!--" not in code(path)
    assert code("a < b <- c") == "`a < b <- c`"


def test_plain_words_are_left_alone() -> None:
    text = "a < b && c > d, mail me@example.org, see [docs](https://example.org) & `List<T>`?"
    assert neutral(text, 1000).replace("\u2060", "") == text
    assert neutral("a < b, me@example.org # 1!", 100) == "a < b, me@example.org # 1!"


@given(st.text(max_size=300))
def test_no_text_gets_through(text: str) -> None:
    made = neutral(text, 200)
    assert not _OBEYED.search(made)
    assert "\0" not in made
    made.encode()
    assert len(made) <= 200
    assert "\n" not in neutral_line(text, 200)


def test_direction_marks_and_control_characters_go() -> None:
    assert neutral("a\u202eb\x1b[31mc\r\nd\x00", 100) == "ab[31mc\nd"


def test_a_quotation_keeps_every_line_inside() -> None:
    made = quoted("```\nnever closed\n\n# big\n", 1000)
    assert made.split("\n") == ["> ```", "> never closed", ">", "> # big"]


def test_code_cannot_be_left() -> None:
    assert code("a`b\nc") == "`a'b c`"
    assert code("") == "` `"
