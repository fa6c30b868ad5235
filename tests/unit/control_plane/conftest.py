"""What the tests of the control plane's parts share."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from made_up_machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "path").mkdir()
    return Machine(tmp_path, io.StringIO())
