"""Bad input gets one line, an exit code, no traceback, and nothing stays behind."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import yaml
from control_plane_command import Command, processes_about

from issuesandbox.local.control_plane.access import Access, write_kubeconfig


def refused(*args: str | Path, **environment: str) -> str:
    """Run the command to its end and return the one line it refused with."""
    code, errors = Command.start(*args, **environment).end()
    lines = [line for line in errors.splitlines() if not line.startswith("kube-apiserver v")]
    assert code == 1, errors
    assert len(lines) == 1, errors
    return lines[0]


def test_a_taken_port(control_plane: Access, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--dir", tmp_path / "state", "--port", str(port))
    assert line.startswith(f"Error: port {port} cannot be used (Address already in use)")
    assert not (tmp_path / "state").exists()


def test_neither_binaries_nor_go(tmp_path: Path) -> None:
    environment = {
        "PATH": str(tmp_path),
        "KUBEBUILDER_ASSETS": "",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "ISSUESANDBOX_ENVTEST_INDEX": "http://127.0.0.1:1/index.yaml",
    }
    line = refused("--dir", tmp_path / "state", **environment)
    assert "KUBEBUILDER_ASSETS" in line
    assert "there is no Go on PATH" in line


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {
        "PATH": str(tmp_path),
        "KUBEBUILDER_ASSETS": "",
        "XDG_CACHE_HOME": str(tmp_path / "file"),
    }
    line = refused("--dir", tmp_path / "state", **environment)
    assert line.startswith(f"Error: cannot write to the cache {tmp_path}/file/")


def test_a_folder_of_somebody_else(control_plane: Access, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert "is not a control plane's state folder" in refused("--dir", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_the_folder(control_plane: Access, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot use the state folder" in refused("--dir", tmp_path / "file")


def test_a_damaged_database(control_plane: Access, tmp_path: Path) -> None:
    state = shutil.copytree(control_plane.kubeconfig.parent, tmp_path / "state")
    for file in (state / "etcd").rglob("*"):
        if file.is_file():
            file.write_bytes(b"\0garbage" * 1000)
    line = refused("--dir", state)
    assert line.startswith("Error: etcd ended with ")
    assert f"delete {state} to start afresh" in line
    assert processes_about(tmp_path) == []


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    assert "leads to no usable cluster" in refused("--kubeconfig", tmp_path / "none")


def test_a_kubeconfig_with_a_wrong_token(control_plane: Access, tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "config", control_plane.server, control_plane.ca, "wrong")
    assert "answered 401 Unauthorized" in refused("--kubeconfig", tmp_path / "config")


def test_a_kubeconfig_of_a_server_that_is_gone(control_plane: Access, tmp_path: Path) -> None:
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    line = refused("--kubeconfig", tmp_path / "config")
    assert "https://127.0.0.1:1 does not answer" in line
    assert control_plane.token not in line


def test_a_right_kubeconfig_is_taken_and_nothing_started(control_plane: Access) -> None:
    command = Command.start("--kubeconfig", control_plane.kubeconfig)
    assert command.kubeconfig() == control_plane.kubeconfig
    code, errors = command.end()
    assert (code, errors) == (
        0,
        f"your own cluster at {control_plane.server}; nothing is started\n",
    )


def test_a_folder_and_a_kubeconfig_at_once(tmp_path: Path) -> None:
    code, errors = Command.start("--dir", tmp_path, "--kubeconfig", tmp_path / "config").end()
    assert code == 2
    assert "Give either --dir or --kubeconfig." in errors
