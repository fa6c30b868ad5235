"""GitHub's proof that a delivery comes from it: an HMAC over the raw body.

Knows nothing of HTTP; the local world signs with the same function.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

# What is shorter can be found by trying.
SHORTEST_SECRET = 16
_PREFIX = "sha256="
_LENGTH = len(_PREFIX) + 64


def sign(secret: bytes, body: bytes) -> str:
    """Return the value of `X-Hub-Signature-256` for a body."""
    return _PREFIX + hmac.digest(secret, body, "sha256").hex()


def is_signed(secrets: Iterable[bytes], body: bytes, signature: str) -> bool:
    """Tell whether one of the secrets made the signature.

    Every secret is tried and compared in constant time, so that the time taken tells nothing.
    """
    if len(signature) != _LENGTH or not signature.isascii():
        return False
    found = False
    for secret in secrets:
        found |= hmac.compare_digest(sign(secret, body), signature)
    return found
