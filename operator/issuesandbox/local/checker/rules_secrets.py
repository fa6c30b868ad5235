"""The rule of the secret: it stands nowhere, in no disguise that a program gives it by habit."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

from issuesandbox.local.checker.evidence import Evidence, Violation

_SHORTEST = 8
# What the operator gets from GitHub for a repository; nobody knows the value beforehand.
_INSTALLATION_TOKEN = re.compile(r"\bghs_[A-Za-z0-9]{36,}")


def no_secret(evidence: Evidence) -> Iterator[Violation]:
    """No secret stands in any text: plain, base64, url-encoded or escaped."""
    for place, text in evidence.texts.items():
        token = _INSTALLATION_TOKEN.search(text)
        if token is not None:
            yield _found(place, text, token.start(), "a token of an installation")
    for name, secret in evidence.secrets.items():
        if len(secret) < _SHORTEST:
            raise ValueError(f"secret {name} is too short to be searched for: {_SHORTEST} at least")
        for form, needle in disguises(secret):
            for place, text in evidence.texts.items():
                found = text.find(needle)
                if found >= 0:
                    yield _found(place, text, found, f"{name} ({form})")


def _found(place: str, text: str, where: int, what: str) -> Violation:
    line = text.count("\n", 0, where) + 1
    return Violation("no-secret", 0.0, place, f"line {line} holds {what}")


def disguises(secret: str) -> Iterator[tuple[str, str]]:
    """Yield the forms in which a secret may appear, without repeating the plain one."""
    yield "plain", secret
    yield from ((form, text) for form, text in _other_forms(secret) if text != secret)


def _other_forms(secret: str) -> Iterator[tuple[str, str]]:
    yield "url-encoded", quote(secret, safe="")
    yield "escaped", json.dumps(secret)[1:-1]
    for before in range(3):
        # Inside a longer text the same bytes give three different encodings, by their place.
        encoded = base64.b64encode(b"\0" * before + secret.encode())
        middle = encoded[(before * 8 + 5) // 6 :].decode().rstrip("=")[:-1]
        yield "base64", middle
        if "+" in middle or "/" in middle:
            yield "base64", middle.replace("+", "-").replace("/", "_")
