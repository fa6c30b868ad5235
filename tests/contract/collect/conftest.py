"""A home directory like a sandbox's, with the uploaded script and a real clone in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from collect_sandbox import Sandbox


@pytest.fixture(params=["dash", "bash", "busybox sh"])
def shell(request: pytest.FixtureRequest) -> str:
    program, *more = str(request.param).split()
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program} here")
    return " ".join([found, *more])


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    made = Sandbox(tmp_path / "home")
    made.run_folder.mkdir(parents=True)
    made.git("init", "-q", "-b", "main", str(made.work), cwd=tmp_path)
    made.write("README.md", "hello\n")
    made.write("src/app.py", "print(1)\n")
    made.commit_all("first")
    made.parent = made.git("rev-parse", "HEAD").strip()
    return made
