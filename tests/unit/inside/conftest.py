"""The supervisor under every shell that is installed; dash and bash must be."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from inside_sandbox import InsideSandbox

SHELLS = [
    "dash",
    "bash",
    pytest.param(
        "busybox",
        marks=pytest.mark.skipif(
            shutil.which("busybox") is None,
            reason="NOT TESTED under busybox: it is not installed on this machine",
        ),
    ),
]


@pytest.fixture(params=SHELLS)
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InsideSandbox]:
    """A sandbox whose `sh` is each of the shells."""
    made = InsideSandbox(tmp_path / "home", request.param)
    yield made
    made.clear()


@pytest.fixture
def dash_sandbox(tmp_path: Path) -> Iterator[InsideSandbox]:
    """A sandbox for what does not depend on the shell."""
    made = InsideSandbox(tmp_path / "home", "dash")
    yield made
    made.clear()
