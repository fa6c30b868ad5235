"""The shell files that run inside a sandbox, as data: nothing here runs in the operator."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files


@cache
def script(name: str) -> bytes:
    """Return the bytes of a shell file of this folder, such as `supervisor.sh`."""
    return files(__package__).joinpath(name).read_bytes()


@cache
def digest(name: str) -> str:
    """Return the SHA-256 of a shell file in hexadecimal."""
    return sha256(script(name)).hexdigest()
