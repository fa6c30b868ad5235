"""No secret is left in a text."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest

from issuesandbox.api.spec_agent import AgentProfile
from issuesandbox.domain.agents.stream import StreamReader
from issuesandbox.domain.agents.verdict import judge
from issuesandbox.domain.redaction import MASK, Redactor, hidden

SECRET = 'p@ss/wörd+"quoted"&more'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps({"key": SECRET}),
        json.dumps({"key": SECRET}, ensure_ascii=False),
        quote(SECRET, safe=""),
        SECRET.encode().hex(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"x-access-token:{SECRET}".encode()).decode(),
        base64.b64encode(f"ab{SECRET}tail".encode()).decode(),
        base64.urlsafe_b64encode(f"a{SECRET}".encode()).decode(),
    ],
)
def test_a_known_secret_is_found_in_every_form(form: str) -> None:
    redacted = Redactor([SECRET]).redact(f"before {form} after")
    assert MASK in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert form not in redacted


@pytest.mark.parametrize(
    "text",
    [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "ghs_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0123456789_abcdefghij",
        "sk-ant-api03-abcdefghijklmnop",
        "dtn_0123456789abcdef0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA that was cut",
        "xoxb-123456789012-abcdefghij",
    ],
)
def test_the_look_of_a_key_is_enough(text: str) -> None:
    assert Redactor().redact(f"<{text}") == f"<{MASK}"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("https://user:pass@host/path", f"https://{MASK}@host/path"),
        ("https://x-access-token:abc@github.com/a.git", f"https://{MASK}@github.com/a.git"),
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {MASK}"),
        ('"authorization": "Basic dXNlcjpwYXNz"', f'"authorization": "Basic {MASK}"'),
        ("see https://host/@name and a@b.c", "see https://host/@name and a@b.c"),
        ("the authorization of users is described below", None),
        ("a bearer of news", None),
        ("task-force sk-1 ghp_short", None),
    ],
)
def test_labelled_secrets_go_and_ordinary_words_stay(text: str, redacted: str | None) -> None:
    assert Redactor().redact(text) == (text if redacted is None else redacted)


def test_short_and_empty_secrets_are_not_searched_for() -> None:
    assert Redactor(["", "a", "12345", "   "]).redact("a 12345 b") == "a 12345 b"


def test_each_line_of_a_secret_with_several_counts() -> None:
    secret = "first-line-of-the-key\nsecond-line-of-the-key\n"
    assert Redactor([secret]).redact("x second-line-of-the-key y") == f"x {MASK} y"


def test_a_secret_inside_another_does_not_save_the_rest() -> None:
    redactor = Redactor(["abcdef"]).with_secrets(["abcdefghijkl"])
    assert redactor.redact("abcdefghijkl abcdef") == f"{MASK} {MASK}"


def test_redaction_is_linear_and_can_be_repeated() -> None:
    redactor = Redactor([SECRET])
    text = ("authorization: " * 20 + "-----BEGIN PRIVATE " * 20 + "a://" * 20 + "x" * 200) * 600
    began = time.monotonic()
    once = redactor.redact(text)
    assert time.monotonic() - began < 2
    assert redactor.redact(once) == once


@pytest.mark.parametrize("before", range(250, 310, 7))
def test_no_part_of_a_secret_is_left_where_last_words_are_cut(before: int) -> None:
    key = "plain-" + "k" * 40
    words = ("word " * 100)[:before].rstrip() + f" {key} and more " + "word " * 100
    reader = StreamReader(AgentProfile.CUSTOM)
    reader.feed(words.encode() + b"\n", 0)
    told = Redactor([key]).redact(judge(reader.facts, 1, None).message)
    assert MASK in told
    assert "plain-" not in told
    assert "kkk" not in told


@pytest.mark.parametrize(
    ("name", "is_searched_for"),
    [
        ("ANTHROPIC_API_KEY", True),
        ("URL_SIGNING_KEY", True),
        ("DATABASE", True),
        ("ANTHROPIC_MODEL", False),
        ("anthropic_small_fast_model", False),
        ("MODEL", False),
        ("CLOUD_ML_REGION", False),
        ("ANTHROPIC_VERTEX_PROJECT_ID", False),
        ("PROXY_URL", False),
    ],
)
def test_what_a_variables_name_calls_no_secret_may_stand_in_the_work(
    name: str, is_searched_for: bool
) -> None:
    value = "claude-model-2030-01-01"
    redactor = Redactor(["another-secret-value"]).with_secrets(*hidden([(name, value)]))
    found = any(trace in f"model: {value}".encode() for trace in redactor.traces())
    assert found is is_searched_for
    # What is told in texts is nobody's business all the same.
    assert redactor.redact(value) == MASK
    assert any(trace in b"another-secret-value" for trace in redactor.traces())


def test_a_secret_that_also_stands_in_a_setting_is_searched_for() -> None:
    value = "one-value-for-both-of-them"
    redactor = Redactor(*hidden([("PROXY_HOST", value), ("PROXY_PASSWORD", value)]))
    assert value.encode() in redactor.traces()
