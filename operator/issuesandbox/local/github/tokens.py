"""Tokens and the App's signed assertions: making them, and telling whose they are.

A token's value exists only in the answer that hands it out; the store keeps its digest. Knows
nothing of what a token is then allowed to do.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from issuesandbox.clock import Clock
from issuesandbox.local.github.answers import GitHubError
from issuesandbox.local.github.model import Account, App, GlobalId, Installation, Token
from issuesandbox.local.github.store import Store

INSTALLATION_TOKEN_LIFE = timedelta(hours=1)
_LONGEST_ASSERTION = timedelta(minutes=10)
# GitHub lets the caller's clock be a little ahead.
_CLOCK_DRIFT = timedelta(seconds=60)
_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Scope:
    """What a new token is limited to."""

    permissions: Mapping[str, str] | None = None
    repository_ids: tuple[GlobalId, ...] | None = None
    expires_at: datetime | None = None


def new_private_key() -> str:
    """Make an RSA private key in PEM, as GitHub hands it out."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return private.decode()


def public_key_of(private_pem: str) -> str:
    """Return the public half of an RSA private key."""
    # Proving the primes takes longer than all the rest of a start; this key guards nothing.
    key = serialization.load_pem_private_key(
        private_pem.encode(), None, unsafe_skip_rsa_key_validation=True
    )
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ValueError("the App's key must be an RSA private key")
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return public.decode()


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def bad_credentials(message: str = "Bad credentials") -> GitHubError:
    """Refuse who the caller claims to be."""
    return GitHubError(401, message)


class Tokens:
    """Hands out tokens and recognises them until they expire."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def for_installation(self, installation: Installation, scope: Scope) -> tuple[str, Token]:
        """Mint an installation token that dies after an hour."""
        scope = replace(scope, expires_at=self._clock.now() + INSTALLATION_TOKEN_LIFE)
        value = "ghs_" + "".join(secrets.choice(_LETTERS) for _ in range(36))
        return value, self._keep(value, scope, installation_id=installation.id)

    def for_user(self, account: Account, scope: Scope, value: str = "") -> tuple[str, Token]:
        """Mint a personal token, or register a given value as one."""
        value = value or "ghp_" + "".join(secrets.choice(_LETTERS) for _ in range(36))
        return value, self._keep(value, scope, account_id=account.id)

    def find(self, value: str) -> Token:
        """Return the live token with this value."""
        token = self._store.tokens.first(_digest(value))
        if token is None or (token.expires_at and token.expires_at <= self._clock.now()):
            raise bad_credentials()
        return token

    def expire(self, *, value: str = "", installation_id: int = 0, account_id: int = 0) -> int:
        """End one token, those of one owner, or all, and return how many."""
        digest = _digest(value) if value else ""
        doomed = [
            token
            for token in self._store.tokens
            if (not digest or token.digest == digest)
            and (not installation_id or token.installation_id == installation_id)
            and (not account_id or token.account_id == account_id)
        ]
        for token in doomed:
            self._store.tokens.put(replace(token, expires_at=self._clock.now()))
        return len(doomed)

    def check_assertion(self, app: App, assertion: str) -> None:
        """Refuse a JWT that the App's key did not sign for this moment."""
        claims = _verified_claims(app, assertion)
        now = self._clock.now().timestamp()
        expires, issued = _number(claims.get("exp")), _number(claims.get("iat"))
        if expires is None or expires <= now:
            raise bad_credentials(
                "'Expiration time' claim ('exp') must be a numeric value representing "
                "the future time at which the assertion expires"
            )
        if expires > now + (_LONGEST_ASSERTION + _CLOCK_DRIFT).total_seconds():
            raise bad_credentials("'Expiration time' claim ('exp') is too far in the future")
        if issued is None or issued > now + _CLOCK_DRIFT.total_seconds():
            raise bad_credentials(
                "'Issued at' claim ('iat') must be an Integer representing "
                "the time that the assertion was issued"
            )
        if str(claims.get("iss")) != str(app.id):
            raise GitHubError(404, "Integration not found")

    def _keep(self, value: str, scope: Scope, **owner: GlobalId) -> Token:
        digest = _digest(value)
        known = self._store.tokens.first(digest)
        return self._store.tokens.put(
            Token(
                id=known.id if known else self._store.new_id(),
                digest=digest,
                created_at=self._clock.now(),
                permissions=scope.permissions,
                repository_ids=scope.repository_ids,
                expires_at=scope.expires_at,
                **owner,
            )
        )


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _verified_claims(app: App, assertion: str) -> dict[str, Any]:
    try:
        head, payload, signature = assertion.split(".")
        key = serialization.load_pem_public_key(app.public_key.encode())
        if not isinstance(key, rsa.RSAPublicKey) or json.loads(_decoded(head))["alg"] != "RS256":
            raise bad_credentials("A JSON web token could not be decoded")
        signed = f"{head}.{payload}".encode()
        key.verify(_decoded(signature), signed, padding.PKCS1v15(), hashes.SHA256())
        claims = json.loads(_decoded(payload))
    except (ValueError, KeyError, TypeError, RecursionError, InvalidSignature) as error:
        raise bad_credentials("A JSON web token could not be decoded") from error
    return claims if isinstance(claims, dict) else {}
