"""What is missing is told at once, before anything starts."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from made_up_machine import Machine, write_kubectl, write_program

from issuesandbox.local.control_plane.preflight import preflight


async def test_all_that_is_missing_is_told_at_once(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.root / "cache").touch()
    problems = await preflight(machine.environment)
    for problem, about in zip(problems, ("git", "cache", "install Go"), strict=True):
        assert about in problem
        assert "\n" not in problem
    machine.go()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    *_, no_room = await preflight(machine.environment)
    assert "5 GB" in no_room


async def test_with_git_and_go_nothing_is_missing(machine: Machine) -> None:
    write_program(machine.path / "git", "true")
    machine.go()
    assert await preflight(machine.environment) == []


async def test_with_binaries_neither_go_nor_disk_is_needed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(machine.path / "git", "true")
    machine.servers(machine.path)
    write_kubectl(machine.path / "kubectl", "v1.36.0")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    assert await preflight(machine.environment) == []


async def test_binaries_without_a_kubectl_that_fits_are_not_enough(machine: Machine) -> None:
    write_program(machine.path / "git", "true")
    machine.servers(machine.path)
    write_kubectl(machine.path / "kubectl", "v1.30.0")
    [problem] = await preflight(machine.environment)
    assert "install Go" in problem


async def test_a_wrong_folder_of_binaries_is_told(machine: Machine) -> None:
    write_program(machine.path / "git", "true")
    problems = await preflight({**machine.environment, "KUBEBUILDER_ASSETS": "/nowhere"})
    assert [problem.split(" ")[0] for problem in problems] == ["KUBEBUILDER_ASSETS=/nowhere"]
