"""The tree keeps its shape: `operator/` shadows nothing, and the wheel installs and imports."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from tests.runtime_closure import link_runtime

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "operator"
STDLIB = Path(sysconfig.get_path("stdlib"))
ALLOWED_AT_ROOT = {
    "pyproject.toml",
    "README.md",
    "operator",
    "crds",
    "manifests",
    "tests",
    "kind-config.yaml",
    "Makefile",
    "LICENSE",
    "CHANGELOG.md",
    "docs",
    "benchmarks",
    "requirements.lock",
}

# Every module but those of the extras, which a plain installation does not bring along.
IMPORT_ALL = """
import importlib, pkgutil, issuesandbox
extras = ("issuesandbox.local", "issuesandbox.entry.mcp", "issuesandbox.__main__")
modules = [each.name for each in pkgutil.walk_packages(issuesandbox.__path__, "issuesandbox.",
           onerror=lambda name: None) if not each.name.startswith(extras)]
for module in modules:
    importlib.import_module(module)
print(issuesandbox.__file__, len(modules))
"""


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [Path(line) for line in listed.stdout.splitlines()]


def test_the_standard_library_keeps_its_operator_module() -> None:
    assert operator.__file__ is not None
    assert Path(operator.__file__).parent == STDLIB
    code = "import operator, json; print(operator.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()).parent == STDLIB


def test_the_source_root_holds_one_package_and_a_dockerfile() -> None:
    entries = {each.name for each in SOURCES.iterdir() if not each.name.endswith(".egg-info")}
    assert entries - {"__pycache__"} == {"issuesandbox", "Dockerfile"}


def test_no_two_test_modules_share_a_name() -> None:
    # pytest imports them by their bare names and refuses the second one of a kind.
    names = [each.name for each in tracked() if each.parts[0] == "tests" and each.suffix == ".py"]
    twins = {name for name in names if names.count(name) > 1}
    assert twins <= {"conftest.py", "__init__.py"}


def test_no_module_is_called_like_one_of_the_standard_library() -> None:
    names = {path.stem for path in (SOURCES / "issuesandbox").rglob("*.py")}
    assert names & {"operator", "types", "queue", "logging", "select", "signal", "json"} == set()


def test_the_root_holds_only_what_belongs_there() -> None:
    entries = {path.parts[0] for path in tracked() if not path.parts[0].startswith(".")}
    assert entries <= ALLOWED_AT_ROOT


def test_the_lock_pins_and_hashes_everything_and_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    pinned = [block for block in text.split("\n") if "==" in block]
    assert len(pinned) > 50
    for block in text.split("\n\n"):
        for requirement in (line for line in block.split("\n") if "==" in line):
            assert requirement.endswith("\\"), f"no hash: {requirement}"


@pytest.mark.timeout(300)
def test_the_wheel_installs_in_a_clean_environment_and_imports(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*build, "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("issuesandbox-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    package = "issuesandbox/local/control_plane/gomod"
    for needed in (
        f"{package}/go.mod",
        f"{package}/go.sum",
        "issuesandbox/manifests/base/rbac.yaml",
    ):
        assert needed in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"issuesandbox"}

    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True)
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    link_runtime(wheel, packages)
    found = subprocess.run(
        [python, "-I", "-c", IMPORT_ALL],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
    )
    assert found.returncode == 0, found.stderr
    path, count = found.stdout.split()
    assert Path(path).is_relative_to(tmp_path / "env")
    assert int(count) > 200
