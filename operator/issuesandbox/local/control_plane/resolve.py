"""Decides where the programs of the control plane come from, and says which way it took.

First what is there (a folder the user names, PATH, the cache), then what can be had (the official
archive, a Go build). Starts nothing but builds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from issuesandbox.local.control_plane.archive import (
    ARCHIVED,
    UnavailableError,
    download,
    find_archive,
    index_address,
    shown,
)
from issuesandbox.local.control_plane.binaries import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KUBECTL,
    Binaries,
    Version,
    client_version,
    pinned_version,
    server_version,
    this_platform,
)
from issuesandbox.local.control_plane.cache import Cache, Workshop, cache_key, cache_root
from issuesandbox.local.control_plane.disk import refuse_too_little
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.gobuild import GO_NEEDED, GoBuild, find_go
from issuesandbox.local.control_plane.progress import Reporter

ASSETS = "KUBEBUILDER_ASSETS"
SERVERS = (APISERVER, ETCD)


class Resolver:
    """Finds or makes binaries on this machine."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        reporter: Reporter | None = None,
        *,
        instead: str | None = None,
    ) -> None:
        """Take an environment, and what the caller offers `instead` of binaries, for the advice."""
        self._instead = instead
        self.environment = os.environ if environment is None else environment
        self.platform = this_platform()
        self.go = find_go(self.environment)
        version = self.go.version if self.go else "no Go"
        self.cache = Cache(cache_root(self.environment), cache_key(version, self.platform))
        self._reporter = reporter or Reporter()

    def present(self) -> tuple[Path, Path, str] | None:
        """Return a kube-apiserver, its etcd and where both were found, if they are there."""
        assets = self.environment.get(ASSETS)
        if assets:
            folder = Path(assets).absolute()
            if not all(os.access(folder / name, os.X_OK) for name in SERVERS):
                raise ControlPlaneError(
                    f"{ASSETS}={assets} has no kube-apiserver and etcd; correct or unset it"
                )
            return folder / APISERVER, folder / ETCD, ASSETS
        apiserver, etcd = self._on_path(APISERVER), self._on_path(ETCD)
        if apiserver and etcd:
            return apiserver, etcd, "PATH"
        apiserver, etcd = self.cache.binary(APISERVER), self.cache.binary(ETCD)
        if apiserver and etcd:
            return apiserver, etcd, "the cache"
        return None

    async def binaries(self) -> Binaries:
        """Return the first complete set, downloading or building what is not there."""
        found = self.present()
        if found is None:
            names = list(SERVERS)
            if self._fitting_kubectl(pinned_version()) is None:
                names.append(KUBECTL)
            source = await self._obtain(names)
            found = self.cache.folder / APISERVER, self.cache.folder / ETCD, source
        apiserver, etcd, source = found
        version = server_version(apiserver)
        kubectl = self._fitting_kubectl(version, apiserver) or await self._own(KUBECTL)
        where = f"{source} ({apiserver.parent})"
        self._reporter.say(f"kube-apiserver {version} and etcd from {where}, kubectl {kubectl}")
        return Binaries(apiserver, etcd, kubectl, source)

    async def controller_manager(self, binaries: Binaries) -> Path:
        """Return the kube-controller-manager beside the API server, or one of our own."""
        beside = binaries.apiserver.parent / CONTROLLER_MANAGER
        if os.access(beside, os.X_OK):
            return beside
        return await self._own(CONTROLLER_MANAGER)

    def is_complete(self) -> bool:
        """Say whether a control plane could start without a download or a build."""
        found = self.present()
        if found is None:
            return False
        kubectl = self._fitting_kubectl(server_version(found[0]), found[0])
        return kubectl is not None or self.cache.binary(KUBECTL) is not None

    def _fitting_kubectl(self, server: Version, beside: Path | None = None) -> Path | None:
        """Return the kubectl beside the API server, or that on PATH, if it fits the server."""
        for kubectl in (beside and beside.with_name(KUBECTL), self._on_path(KUBECTL)):
            version = client_version(kubectl) if kubectl else None
            if version and version.fits(server):
                return kubectl
        return None

    def _on_path(self, name: str) -> Path | None:
        found = shutil.which(name, path=self.environment.get("PATH", ""))
        return Path(found).absolute() if found else None

    async def _own(self, name: str) -> Path:
        await self._obtain([name])
        return self.cache.folder / name

    async def _obtain(self, names: Sequence[str]) -> str:
        """Bring the named binaries into the cache and return how."""
        if not self.cache.missing(names):
            return "the cache"
        async with self.cache.workshop(self._reporter) as workshop:
            missing = self.cache.missing(names)
            if not missing:  # another process made them while this one waited
                return "the cache"
            try:
                return await self._download(missing, workshop)
            except UnavailableError as error:
                return await self._build(missing, workshop, str(error))

    async def _download(self, names: Sequence[str], workshop: Workshop) -> str:
        if not set(names) <= set(ARCHIVED):
            raise UnavailableError(f"it has no {names[0]}")
        archive = await find_archive(self.environment, pinned_version(), self.platform)
        files = await download(archive, workshop.path, self._reporter)
        self.cache.keep(file for file in files if file.name in names)
        return f"the envtest archive {archive.version}"

    async def _build(self, names: Sequence[str], workshop: Workshop, no_archive: str) -> str:
        if self.go is None:
            raise self._nothing_found(names, no_archive, "there is no Go on PATH")
        refuse_too_little(self.cache.root, *self.go.caches)
        build = GoBuild(self.go, self.environment, workshop, self._reporter)
        try:
            self.cache.keep(await build.run(names))
        except ControlPlaneError as error:
            raise self._nothing_found(names, no_archive, str(error)) from error
        return f"a build with {self.go.version}"

    def _nothing_found(
        self, names: Sequence[str], no_archive: str, no_build: str
    ) -> ControlPlaneError:
        ways = [
            f"set {ASSETS} to a folder with the binaries, or put them on PATH",
            f"make {shown(index_address(self.environment))} reachable ({no_archive})",
            f"make a Go build possible, with {GO_NEEDED} ({no_build})",
        ]
        if self._instead is not None:
            ways.insert(0, self._instead)
        listed = "; ".join(f"({number}) {way}" for number, way in enumerate(ways, 1))
        return ControlPlaneError(
            f"no {' and '.join(names)} for a local control plane; do one of these: {listed}"
        )
