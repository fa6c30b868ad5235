"""The official envtest archive: kube-apiserver, etcd and kubectl as one download.

Knows the form of setup-envtest's index and that its hashes are SHA-512; what to do when the
archive cannot be had is the resolver's business.
"""

from __future__ import annotations

import asyncio
import hashlib
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import yaml

from issuesandbox.local.control_plane.binaries import APISERVER, ETCD, KUBECTL, Version
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.progress import Reporter

ARCHIVED = (APISERVER, ETCD, KUBECTL)
INDEX = (
    "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
)
# For a mirror; what setup-envtest takes as --index.
INDEX_VARIABLE = "ISSUESANDBOX_ENVTEST_INDEX"

_LIMITS = aiohttp.ClientTimeout(total=None, connect=5, sock_connect=5, sock_read=30)
_MEGABYTE = 1 << 20


class UnavailableError(Exception):
    """The archive cannot be had from here; another way may do."""


@dataclass(frozen=True)
class Archive:
    """One archive as the index lists it."""

    version: Version
    url: str
    sha512: str


def index_address(environment: Mapping[str, str]) -> str:
    """Return where the index is read from."""
    return environment.get(INDEX_VARIABLE) or INDEX


def shown(address: str) -> str:
    """Return an address for messages: a mirror's may have a password or a signature in it."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


async def find_archive(environment: Mapping[str, str], version: Version, platform: str) -> Archive:
    """Return the newest archive of the same minor version for this platform."""
    url = index_address(environment)
    try:
        async with _session() as session, session.get(url) as answer:
            answer.raise_for_status()
            index = yaml.safe_load(await answer.text())
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise UnavailableError(_short(error)) from error
    except yaml.YAMLError as error:
        raise UnavailableError(f"{shown(url)} is not YAML") from error
    found = _of_platform(index, platform)
    fitting = [each for each in found if each.version[:2] == version[:2]]
    if not fitting:
        raise UnavailableError(f"none for Kubernetes {version.major}.{version.minor} on {platform}")
    return max(fitting, key=lambda each: each.version)


async def download(archive: Archive, work: Path, reporter: Reporter) -> list[Path]:
    """Fetch, check and unpack an archive inside `work`; return the binaries."""
    file = work / "envtest.tar.gz"
    digest = await _fetch(archive, file, reporter)
    if digest != archive.sha512:
        raise _broken(archive, "its checksum is wrong")
    try:
        return await asyncio.to_thread(_unpack, file, work / "bin")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise _broken(archive, _short(error)) from error


async def _fetch(archive: Archive, file: Path, reporter: Reporter) -> str:
    digest, done = hashlib.sha512(), 0
    try:
        async with _session() as session, session.get(archive.url) as answer:
            answer.raise_for_status()
            total = (answer.content_length or 0) // _MEGABYTE
            title = "downloading the envtest archive"
            with reporter.bar(title, total, "MB") as bar, file.open("wb") as target:
                async for chunk in answer.content.iter_chunked(_MEGABYTE):
                    target.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    bar.update(done // _MEGABYTE)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        if done:
            raise _broken(archive, f"the download broke off after {done} bytes") from error
        raise UnavailableError(_short(error)) from error
    return digest.hexdigest()


def _unpack(file: Path, folder: Path) -> list[Path]:
    folder.mkdir()
    with tarfile.open(file) as archive:
        for member in archive:
            name = Path(member.name).name
            if member.isfile() and name in ARCHIVED:
                member.name, member.mode = name, 0o755
                archive.extract(member, folder, filter="data")
    missing = [name for name in ARCHIVED if not (folder / name).exists()]
    if missing:
        raise tarfile.TarError(f"it has no {' and no '.join(missing)}")
    return [folder / name for name in ARCHIVED]


def _of_platform(index: object, platform: str) -> list[Archive]:
    """Read the index: release -> file name -> hash and link; skip what has another form."""
    releases = index.get("releases") if isinstance(index, dict) else None
    found = []
    for name, files in releases.items() if isinstance(releases, dict) else ():
        entry = files.get(f"envtest-{name}-{platform}.tar.gz") if isinstance(files, dict) else None
        version = Version.parse(str(name))
        # A pre-release has a suffix after the three numbers.
        if isinstance(entry, dict) and version and str(version) == name:
            found.append(Archive(version, str(entry.get("selfLink")), str(entry.get("hash"))))
    return found


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=_LIMITS, trust_env=True)


def _broken(archive: Archive, why: str) -> ControlPlaneError:
    return ControlPlaneError(
        f"the envtest archive {shown(archive.url)} is incomplete or altered ({why}); "
        "nothing of it was kept; try again, "
        "or set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd"
    )


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
