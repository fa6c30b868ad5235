"""The envtest archive, served by a small server on this machine."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from made_up_machine import BOTH, Machine, write_program

from issuesandbox.local.control_plane.archive import INDEX_VARIABLE
from issuesandbox.local.control_plane.binaries import this_platform
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.preflight import preflight


def packed(version: str, *names: str) -> bytes:
    """Return an archive as the project publishes it, its programs being shell scripts."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in names or ("kube-apiserver", "etcd", "kubectl"):
            content = f"#!/bin/sh\n{BOTH.replace('v1.36.3', version)}\n".encode()
            entry = tarfile.TarInfo(f"controller-tools/envtest/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@dataclass
class Mirror:
    """An index and its archives."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    index: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    cut: int | None = None

    def add(self, version: str, content: bytes, platform: str | None = None) -> None:
        name = f"envtest-{version}-{platform or this_platform()}.tar.gz"
        self.files[name] = content
        entry = {
            "hash": hashlib.sha512(content).hexdigest(),
            "selfLink": f"{self.address}/{name}",
        }
        self.index.setdefault(version, {})[name] = entry

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/index.yaml":
            return web.Response(text=yaml.safe_dump({"releases": self.index}))
        content = self.files[request.path[1:]]
        if self.cut is None:
            return web.Response(body=content)
        response = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await response.prepare(request)
        await response.write(content[: self.cut])
        assert request.transport is not None
        request.transport.close()
        return response


@pytest.fixture
async def mirror() -> AsyncIterator[Mirror]:
    mirror, app = Mirror(), web.Application()
    app.router.add_get("/{path:.*}", mirror.answer)
    async with TestServer(app) as server:
        mirror.address = str(server.make_url("")).rstrip("/")
        yield mirror


def index_of(mirror: Mirror) -> dict[str, str]:
    return {INDEX_VARIABLE: f"{mirror.address}/index.yaml"}


async def test_the_newest_archive_of_the_pinned_minor_is_taken_before_go(
    machine: Machine, mirror: Mirror
) -> None:
    for version in ("v1.36.2", "v1.36.10", "v1.36.11-rc.0", "v1.37.0", "v1.35.1"):
        mirror.add(version, packed(version))
    mirror.add("v1.36.12", packed("v1.36.12"), platform="plan9-mips")
    machine.go()
    found = await machine.resolver(**index_of(mirror)).binaries()
    assert found.source == "the envtest archive v1.36.10"
    assert found.kubectl.parent == found.apiserver.parent
    assert machine.builds == []
    assert (await machine.resolver(**index_of(mirror)).binaries()).source == "the cache"


async def test_where_the_archive_is_at_hand_a_build_needs_no_room(
    machine: Machine, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(machine.path / "git", "true")
    machine.go()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    environment = {**machine.environment, **index_of(mirror)}
    assert "5 GB" in (await preflight(environment))[0], "the index has nothing yet"
    mirror.add("v1.36.3", packed("v1.36.3"))
    assert await preflight(environment) == []
    assert "archive" in (await machine.resolver(**index_of(mirror)).binaries()).source


async def test_an_index_without_our_version_leads_to_the_next_way(
    machine: Machine, mirror: Mirror
) -> None:
    mirror.add("v1.35.0", packed("v1.35.0"))
    machine.go()
    assert "a build" in (await machine.resolver(**index_of(mirror)).binaries()).source


@pytest.mark.parametrize("damage", ["checksum", "cut", "content"])
async def test_a_broken_archive_is_refused_and_not_kept(
    machine: Machine, mirror: Mirror, damage: str
) -> None:
    content = packed("v1.36.2", "etcd") if damage == "content" else packed("v1.36.2")
    mirror.add("v1.36.2", content)
    if damage == "checksum":  # a sound archive, but not the one in the index
        mirror.files = dict.fromkeys(mirror.files, packed("v1.36.1"))
    mirror.cut = 100 if damage == "cut" else None
    machine.go()
    resolver = machine.resolver(**index_of(mirror))
    with pytest.raises(ControlPlaneError, match="incomplete or altered") as caught:
        await resolver.binaries()
    assert "\n" not in str(caught.value)
    assert [path.name for path in resolver.cache.root.iterdir()] == ["lock"]
