"""What `make test` says at its end: how many ran at each level, how long it took, what failed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / ".ci" / "checks.py"


@pytest.fixture(scope="module")
def checks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("checks", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["checks"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_level_has_its_line_and_all_failures_are_counted(
    checks: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    checks.report(
        [
            checks.Result("lint", False, 1.0, ""),
            checks.Result("unit tests", True, 61.5, "900 passed, 2 skipped"),
            checks.Result("e2e tests", False, 500.0, "2 failed, 98 passed, 1 error"),
        ]
    )
    *lines, total = capsys.readouterr().out.split("\n")[1:-1]
    assert [" ".join(line.split()) for line in lines] == [
        "lint FAILED 1.0 s",
        "unit tests ok 61.5 s 900 passed, 2 skipped",
        "e2e tests FAILED 500.0 s 2 failed, 98 passed, 1 error",
    ]
    assert total == "998 passed, 4 failed"
