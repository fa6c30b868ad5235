"""Start, stop, kill and start again, as a user of the command sees it."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from pathlib import Path

import psutil
import pytest
from control_plane_command import Command, processes_about, until

from issuesandbox.local.control_plane import plane
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.control_plane.binaries import Binaries


def kubectl(control_plane: Access, kubeconfig: Path, *args: str) -> str:
    command = [control_plane.kubectl_binary, "--kubeconfig", kubeconfig, *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_it_starts_stops_and_keeps_what_it_had(control_plane: Access, tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = Command.start("--dir", state)
    kubeconfig = first.kubeconfig()
    kubectl(control_plane, kubeconfig, "create", "configmap", "kept")
    assert processes_about(state / "etcd") != []

    code, errors = Command.start("--dir", state).end()
    assert (code, errors.count("\n")) == (1, 2)
    assert f"another control plane (process {first.process.pid}) runs in" in errors

    code, errors = first.end(signal.SIGTERM)
    assert code == 0, errors
    assert "kube-apiserver v1." in errors
    assert processes_about(state) == []

    second = Command.start("--dir", state)
    try:
        found = kubectl(control_plane, second.kubeconfig(), "get", "configmap", "-o", "name")
        assert "configmap/kept" in found
    finally:
        assert second.end(signal.SIGINT)[0] == 0


def test_a_killed_parent_leaves_no_process_and_a_folder_that_works(
    control_plane: Access, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    killed = Command.start("--dir", state)
    killed.kubeconfig()
    killed.end(signal.SIGKILL)
    next_one = Command.start("--dir", state)  # at once, while the watcher still sweeps
    try:
        next_one.kubeconfig()
    finally:
        next_one.end(signal.SIGKILL)
    until(lambda: processes_about(state) == [])


def test_a_server_that_dies_ends_the_command(control_plane: Access, tmp_path: Path) -> None:
    command = Command.start("--dir", tmp_path / "state")
    command.kubeconfig()
    [etcd] = [
        child for child in psutil.Process(command.process.pid).children() if child.name() == "etcd"
    ]
    etcd.kill()
    code, errors = command.end()
    assert code == 1
    assert "Error: etcd ended with -9" in errors
    assert processes_about(tmp_path) == []


def test_a_port_lost_to_somebody_else_is_replaced_by_another(
    programs: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries: Binaries = programs.binaries  # type: ignore[attr-defined]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        asked = []

        def lose_the_first(count: int) -> list[int]:
            asked.append(count)
            port = taken.getsockname()[1]
            return [port] * count if len(asked) == 1 else free_ports(count)

        free_ports = plane.free_ports
        monkeypatch.setattr(plane, "free_ports", lose_the_first)

        async def start_and_stop() -> str:
            async with plane.running_control_plane(tmp_path / "state", binaries) as running:
                return running.access.server

        assert asyncio.run(start_and_stop()).startswith("https://127.0.0.1:")
    assert len(asked) == 2
