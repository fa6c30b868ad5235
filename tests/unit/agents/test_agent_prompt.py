"""The fixed sentence and the issue's text."""

from __future__ import annotations

import pytest

from issuesandbox.domain.prompt import MAX_CHARACTERS, IssueFacts, issue_text, sentence
from issuesandbox.domain.supervision import RunPaths

PATHS = RunPaths("/home/daytona", "run-1")
ISSUE = IssueFacts(number=7, title="It breaks", body="Steps:\n1. start", author="octocat")


def test_the_sentence_names_the_files_and_holds_nothing_of_the_issue() -> None:
    told = sentence(PATHS)
    assert told[0].isalpha()
    assert PATHS.issue in told
    assert PATHS.summary in told
    assert "`Tests:`" in told
    assert not PATHS.issue.startswith(PATHS.work)


def test_the_built_in_text_holds_everything_and_ends_with_the_body() -> None:
    # R39
    text = issue_text(
        IssueFacts(
            number=7, title="It breaks", body="The end.", author="octocat", labels=("a", "b")
        ),
        prompt="Use tabs.",
    )
    for part in ("#7", "It breaks", "octocat", "a, b", "Use tabs."):
        assert part in text
    assert text.rstrip().endswith("The end.")


def test_an_issue_without_a_text_says_so() -> None:
    text = issue_text(IssueFacts(number=7))
    assert "(The issue has no text.)" in text
    assert "(no title)" in text


def test_a_template_is_filled_in_one_pass() -> None:
    issue = IssueFacts(number=7, title="{body} {prompt}", body="{title} {unknown} {{number}}")
    text = issue_text(issue, prompt="do", template="T:{title} B:{body} P:{prompt} X:{other} {")
    assert text == "T:{body} {prompt} B:{title} {unknown} {{number}} P:do X:{other} {"


def test_what_nobody_sees_is_taken_out_and_emoji_stay() -> None:
    body = "a\0b\x1b[31mc\r\nd\u202ee\U000e0041f👩‍👩‍👧\ud800"
    text = issue_text(IssueFacts(number=7, body=body, title="two\nlines"))
    assert text.rstrip().endswith("ab[31mc\ndef👩‍👩‍👧")
    assert "Title: two lines" in text
    text.encode()


@pytest.mark.parametrize(
    "body", ["word " * 20_000, "x" * 100_000, "é́" * 60_000, "x" + "\n" * 99_999 + "x"]
)
def test_a_long_body_is_cut_and_says_so(body: str) -> None:
    text = issue_text(IssueFacts(number=7, title="t", body=body), prompt="Keep this.")
    assert len(text) <= MAX_CHARACTERS
    assert "Keep this." in text
    assert "cut off here" in text


def test_a_cut_inside_a_code_block_closes_it() -> None:
    body = "```python\n" + "print(1)\n" * 10_000
    text = issue_text(IssueFacts(number=7, body=body), template="{body}\nAfter.")
    assert len(text) <= MAX_CHARACTERS
    assert text.count("```") == 2
    assert text.endswith("After.")


def test_a_joined_character_is_not_torn_apart() -> None:
    family = "👩‍👩‍👧"
    text = issue_text(IssueFacts(number=7, body=family * 30_000), template="{body}")
    kept = text.partition("\n\n[The rest")[0]
    assert kept.replace(family, "") == ""


def test_a_template_that_alone_is_too_long_is_cut_as_well() -> None:
    text = issue_text(ISSUE, prompt="p" * 60_000, template="{prompt}{body}")
    assert len(text) <= MAX_CHARACTERS
