"""Where the binaries come from, in which order, and what is said when there are none."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_up_machine import Machine, write_kubectl, write_program

from issuesandbox.local.control_plane import binaries, cache, gobuild
from issuesandbox.local.control_plane.binaries import Version
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.resolve import Resolver


async def test_the_folder_the_user_names_comes_before_everything(machine: Machine) -> None:
    assets = machine.servers(machine.root / "assets")
    write_kubectl(assets / "kubectl", "v1.36.0")
    machine.servers(machine.path)
    machine.servers(machine.resolver().cache.folder)
    found = await machine.resolver(KUBEBUILDER_ASSETS=str(assets)).binaries()
    assert found.source == "KUBEBUILDER_ASSETS"
    assert {found.apiserver.parent, found.etcd.parent, found.kubectl.parent} == {assets}


async def test_path_comes_before_the_cache(machine: Machine) -> None:
    machine.servers(machine.path)
    write_kubectl(machine.path / "kubectl", "v1.36.0")
    machine.servers(machine.resolver().cache.folder)
    found = await machine.resolver().binaries()
    assert (found.source, found.apiserver.parent) == ("PATH", machine.path)


async def test_an_api_server_without_etcd_is_passed_over(machine: Machine) -> None:
    write_program(machine.path / "kube-apiserver", "true")
    folder = machine.servers(machine.resolver().cache.folder)
    write_kubectl(folder / "kubectl", "v1.36.0")
    found = await machine.resolver().binaries()
    assert (found.source, found.apiserver.parent) == ("the cache", folder)


async def test_go_builds_what_nobody_has_and_the_next_start_takes_it_from_the_cache(
    machine: Machine,
) -> None:
    machine.go()
    first = await machine.resolver().binaries()
    second = await machine.resolver().binaries()
    assert (first.source, second.source) == ("a build with go1.26.9", "the cache")
    assert machine.builds == ["kube-apiserver", "etcd", "kubectl"]
    assert "kube-apiserver v1.36.3 and etcd from a build with go1.26.9" in machine.output.getvalue()


async def test_the_controller_manager_is_built_only_when_it_is_wanted(machine: Machine) -> None:
    machine.go()
    resolver = machine.resolver()
    found = await resolver.binaries()
    assert "kube-controller-manager" not in machine.builds
    built = await resolver.controller_manager(found)
    assert built == await resolver.controller_manager(found)
    assert machine.builds[3:] == ["kube-controller-manager"]


@pytest.mark.parametrize(
    ("version", "taken"),
    [("v1.35.9", True), ("v1.36.3", True), ("v1.37.0-rc.1", True), ("v1.34.1", False)],
)
async def test_a_kubectl_on_path_is_taken_if_it_fits_the_server(
    machine: Machine, version: str, taken: bool
) -> None:
    machine.go()
    mine = write_kubectl(machine.path / "kubectl", version)
    found = await machine.resolver().binaries()
    assert (found.kubectl == mine) is taken
    assert ("kubectl" in machine.builds) is not taken


async def test_a_kubectl_that_tells_no_version_is_not_taken(machine: Machine) -> None:
    machine.go()
    mine = write_program(machine.path / "kubectl", "echo no json")
    assert (await machine.resolver().binaries()).kubectl != mine


async def test_a_named_folder_without_the_binaries_is_an_error(machine: Machine) -> None:
    machine.servers(machine.path)
    with pytest.raises(ControlPlaneError, match=r"KUBEBUILDER_ASSETS=\S+ has no kube-apiserver"):
        await machine.resolver(KUBEBUILDER_ASSETS=str(machine.root)).binaries()


async def test_without_any_way_one_line_lists_what_can_be_done(machine: Machine) -> None:
    with pytest.raises(ControlPlaneError) as caught:
        await machine.resolver().binaries()
    line = str(caught.value)
    assert "\n" not in line
    for way in ("(1) set KUBEBUILDER_ASSETS", "127.0.0.1:1/index.yaml", "(3) make a Go build"):
        assert way in line


async def test_what_the_caller_offers_instead_comes_first(machine: Machine) -> None:
    resolver = Resolver(machine.environment, instead="give your own cluster with --kubeconfig")
    with pytest.raises(ControlPlaneError, match=r"\(1\) give your own cluster .*\(4\) make a Go"):
        await resolver.binaries()


async def test_a_mirrors_password_is_not_in_the_error(machine: Machine) -> None:
    address = "http://user:secret@127.0.0.1:1/index.yaml?signature=secret"
    with pytest.raises(ControlPlaneError, match=r"http://127\.0\.0\.1:1/index\.yaml") as caught:
        await machine.resolver(ISSUESANDBOX_ENVTEST_INDEX=address).binaries()
    assert "secret" not in str(caught.value)


async def test_a_failed_build_says_what_go_said_and_keeps_nothing(machine: Machine) -> None:
    machine.go(before="echo 'dial tcp: no route to host' >&2; exit 1")
    resolver = machine.resolver()
    with pytest.raises(ControlPlaneError, match="no route to host") as caught:
        await resolver.binaries()
    assert "\n" not in str(caught.value)
    assert [path.name for path in resolver.cache.root.iterdir()] == ["lock"]


async def test_a_build_that_would_fill_the_disk_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.go()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    with pytest.raises(ControlPlaneError, match=r"1\.0 GB free, it needs 5 GB"):
        await machine.resolver().binaries()
    assert machine.builds == []


async def test_a_cache_that_cannot_be_written_is_an_error(machine: Machine) -> None:
    machine.go()
    (machine.root / "file").touch()
    with pytest.raises(ControlPlaneError, match="XDG_CACHE_HOME"):
        await machine.resolver(XDG_CACHE_HOME=str(machine.root / "file")).binaries()


async def test_a_server_that_does_not_run_is_named(machine: Machine) -> None:
    machine.servers(machine.path)
    write_program(machine.path / "kube-apiserver", "exit 1")
    with pytest.raises(ControlPlaneError, match=str(machine.path / "kube-apiserver")):
        await machine.resolver().binaries()


def test_the_key_changes_with_everything_a_build_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "gomod"
    shutil.copytree(binaries.MODULE, module)
    monkeypatch.setattr(cache, "MODULE", module)
    keys = [cache.cache_key("go1.26.0", "linux-amd64")]
    assert keys == [cache.cache_key("go1.26.0", "linux-amd64")]
    keys.append(cache.cache_key("go1.26.1", "linux-amd64"))
    keys.append(cache.cache_key("go1.26.0", "linux-arm64"))
    for name in ("go.mod", "go.sum"):
        (module / name).write_text((module / name).read_text() + "\n")
        keys.append(cache.cache_key("go1.26.0", "linux-amd64"))
    assert len(set(keys)) == 5


def test_a_version_is_read_from_what_the_programs_print() -> None:
    assert Version.parse("Kubernetes v1.36.3") == (1, 36, 3)
    assert Version.parse("v1.32.4-dispatcher") == (1, 32, 4)
    assert Version.parse("v0.0.0-master+$Format:%H$") == (0, 0, 0)
    assert Version.parse("unknown") is None
    assert not Version(2, 36, 0).fits(Version(1, 36, 0))


def test_the_go_we_ask_for_is_the_one_the_module_needs() -> None:
    [needed] = re.findall(r"^go (\d+\.\d+)", (binaries.MODULE / "go.mod").read_text(), re.MULTILINE)
    assert f"Go {needed} or newer" == gobuild.GO_NEEDED
