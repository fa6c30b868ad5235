"""The folder in which one control plane keeps all it has, and the lock that makes it the only one.

Knows the names and checks of the files, not the programs that use them.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Self

import psutil
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from issuesandbox.local.control_plane.access import write_private
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.folder_lock import LockedError, lock_folder

_STAMP = {"kind": "issuesandbox-control-plane", "version": 1}
_STAMP_NAME = "state.json"
# All that a start can have left that was killed before it wrote the stamp.
_MADE = ("service-account.key", "tokens.csv", _STAMP_NAME)
_BEFORE_STAMP = {"lock", *_MADE, *(f".{name}.new" for name in _MADE)}
_SWEEP_SECONDS = 20.0


class StateFolder:
    """An opened and locked state folder."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.lock = lock

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Make or reopen a state folder; refuse one that is in use, foreign or damaged."""
        try:
            path = _make(path)
            folder = cls(path, await _lock(path))
            try:
                folder._prepare()
            except BaseException:
                folder.close()
                raise
        except OSError as error:
            raise ControlPlaneError(
                f"cannot use the state folder {path}: {error.strerror}; choose another with --dir"
            ) from error
        return folder

    @property
    def etcd_data(self) -> Path:
        """Where etcd keeps the cluster."""
        return self.path / "etcd"

    @property
    def certificates(self) -> Path:
        """Where the API server puts the certificate it makes for itself."""
        return self.path / "certificates"

    @property
    def signing_key(self) -> Path:
        """The private key that signs ServiceAccount tokens."""
        return self.path / "service-account.key"

    @property
    def tokens(self) -> Path:
        """The API server's file of static tokens."""
        return self.path / "tokens.csv"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.path / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One log file per program."""
        return self.path / "logs"

    @property
    def admin_token(self) -> str:
        """The administrator's token."""
        return self.tokens.read_text().partition(",")[0]

    def close(self) -> None:
        """Give up the lock."""
        os.close(self.lock)

    def _prepare(self) -> None:
        """Check what an earlier run left and make what is missing."""
        stamp = self.path / _STAMP_NAME
        if stamp.exists():
            self._refuse_damaged(stamp)
        else:
            write_private(self.signing_key, _new_signing_key())
            admin = f'{secrets.token_hex(32)},admin,admin,"system:masters"\n'
            write_private(self.tokens, admin.encode())
            write_private(stamp, json.dumps(_STAMP).encode())
        self.logs.mkdir(exist_ok=True)
        # The API server makes a new certificate at each start, so that it never expires here.
        shutil.rmtree(self.certificates, ignore_errors=True)

    def _refuse_damaged(self, stamp: Path) -> None:
        try:
            sound = json.loads(stamp.read_bytes()) == _STAMP and len(self.admin_token) == 64
            serialization.load_pem_private_key(self.signing_key.read_bytes(), password=None)
        except (OSError, ValueError, UnsupportedAlgorithm):
            sound = False
        if not sound:
            raise ControlPlaneError(
                f"the state folder {self.path} is damaged or from another version; "
                "delete it or choose another with --dir"
            )


def _new_signing_key() -> bytes:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _make(path: Path) -> Path:
    """Make the folder if it is missing and return its full path; refuse one of somebody else."""
    path = path.absolute()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = {entry.name for entry in path.iterdir()}
    if _STAMP_NAME not in names and names - _BEFORE_STAMP:
        raise ControlPlaneError(
            f"{path} has files but is not a control plane's state folder; "
            "choose an empty folder with --dir"
        )
    return path


async def _lock(path: Path) -> int:
    deadline = asyncio.get_running_loop().time() + _SWEEP_SECONDS
    while True:
        try:
            return lock_folder(path)
        except LockedError as error:
            # The watcher of a killed control plane holds the lock until its sweep is over.
            being_swept = error.owner is not None and not psutil.pid_exists(error.owner)
            if not being_swept or asyncio.get_running_loop().time() > deadline:
                raise ControlPlaneError(
                    f"another control plane (process {error.owner or 'unknown'}) runs in {path}; "
                    "stop it or choose another folder with --dir"
                ) from None
        await asyncio.sleep(0.1)
