"""Takes secrets out of texts before anybody keeps or sees them.

Knows the secrets it was given, in the forms in which they travel, and the look of common keys.
What an agent disguises on purpose is beyond it: real secrets must not reach an agent at all,
short-lived ones at most.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

MASK: Final = "***"
# A shorter one would be found in ordinary words.
_SHORTEST: Final = 6
# From this length on nobody writes it by chance.
_TELLING: Final = 16

# A variable that ends so holds what any file may name rightly, such as a model.
_SETTINGS: Final = ("_MODEL", "_URL", "_HOST", "_REGION", "_LOCATION", "_PROJECT", "_PROJECT_ID")

# Each begins with fixed letters, which are searched for fast; what stands before them is looked at
# afterwards, so that no word that ends in these letters is taken for a key.
_KEYS: Final = tuple(
    (begin, re.compile(rf"{begin}(?<![A-Za-z0-9]{begin}){rest}"))
    for begin, rest in (
        ("gh", "[opusr]_[A-Za-z0-9]{16,}"),
        ("github_pat_", "[A-Za-z0-9_]{20,}"),
        ("sk-", "[A-Za-z0-9_-]{16,}"),
        ("dtn_", "[A-Za-z0-9]{16,}"),
        ("glpat-", "[A-Za-z0-9_-]{16,}"),
        ("npm_", "[A-Za-z0-9]{30,}"),
        ("xox", "[abposr]-[A-Za-z0-9-]{10,}"),
        ("AIza", "[A-Za-z0-9_-]{30,}"),
        ("AKIA", r"[A-Z0-9]{16}\b"),
        ("ASIA", r"[A-Z0-9]{16}\b"),
        ("eyJ", r"[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),
    )
)
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
# The part before the secret is kept: it says what was hidden.
_LABELLED: Final = re.compile(
    r"((?<![a-z0-9])authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?:bearer|basic|token)\s+)?"
    r"|\b(?:bearer|x-access-token)[ :]\s{0,3})[A-Za-z0-9._~+/=-]{8,}",
    re.IGNORECASE,
)
_LABELS: Final = ("authorization", "bearer", "x-access-token")
_IN_ADDRESS: Final = re.compile(r"://[^\s/@\"'<>]{1,512}@")


class Hidden(NamedTuple):
    """What no text may show."""

    secrets: tuple[str, ...]
    settings: tuple[str, ...] = ()
    """Nobody's business either, but a file may hold them rightly."""


def hidden(variables: Iterable[tuple[str, str]]) -> Hidden:
    """Tell secrets from settings by the names of their variables."""
    named = [(f"_{name.upper()}".endswith(_SETTINGS), value) for name, value in variables]
    secrets, settings = (
        [value for is_it, value in named if is_it is kind] for kind in (False, True)
    )
    return Hidden(tuple(secrets), tuple(settings))


class Redactor:
    """Replaces secrets by a mask; harmless to apply twice."""

    def __init__(self, secrets: Iterable[str] = (), settings: Iterable[str] = ()) -> None:
        self._secrets, self._settings = _worth_hiding(secrets), _worth_hiding(settings)
        forms = {form for each in self._secrets | self._settings for form in _forms(each)}
        # The longest first: one secret may contain another.
        self._forms = sorted(forms, key=len, reverse=True)

    def with_secrets(self, secrets: Iterable[str], settings: Iterable[str] = ()) -> Redactor:
        """Return a redactor that knows these secrets as well."""
        return Redactor((*self._secrets, *secrets), (*self._settings, *settings))

    def traces(self) -> tuple[bytes, ...]:
        """Return the bytes that give a known secret away wherever they are.

        Settings, short values and addresses are left out: other texts may hold them rightly.
        """
        telling = (each for each in self._secrets if len(each) >= _TELLING and "://" not in each)
        return tuple({form.encode("utf-8", "replace") for each in telling for form in _forms(each)})

    def keeps(self, text: str) -> bool:
        """Tell whether there is no secret in the text."""
        return self.redact(text) == text

    def redact(self, text: str) -> str:
        """Return the text without any secret."""
        for form in self._forms:
            text = text.replace(form, MASK)
        # Most texts hold none of these; looking for fixed letters first costs a tenth.
        for letters, pattern in (("-----BEGIN ", _PRIVATE_KEY), *_KEYS):
            if letters in text:
                text = pattern.sub(MASK, text)
        lowered = text.lower()
        if any(label in lowered for label in _LABELS):
            text = _LABELLED.sub(rf"\g<1>{MASK}", text)
        return _IN_ADDRESS.sub(f"://{MASK}@", text) if "://" in text else text


def ending(text: str, most: int) -> str:
    """Return the last words of a text; a part of a word could be a part of a secret."""
    return text if len(text) <= most else text[-most:].partition(" ")[2]


def _worth_hiding(values: Iterable[str]) -> frozenset[str]:
    return frozenset(line for each in values for line in _parts(each) if len(line) >= _SHORTEST)


def _parts(secret: str) -> Iterator[str]:
    """Yield a secret and, of one with several lines, each line: it may be printed by the line."""
    whole = secret.strip()
    yield whole
    if "\n" in whole:
        yield from (line.strip() for line in whole.splitlines() if len(line.strip()) >= 16)


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)
    raw = secret.encode("utf-8", "replace")
    yield raw.hex()
    for shift in range(3):
        # Base64 of a longer text in which the secret begins at any of three places.
        encoded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        inner = encoded[(0, 2, 3)[shift] : len(encoded) - 1]
        if len(inner) >= 8:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
