"""The guards of the test suite bite: a planted leak or warning fails its test, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLEEP = "['sleep', '30']"
# name of the test: its code; those of `sound` alone may pass
PLANTED = {
    "coroutine": "async def test_coroutine() -> None:\n    asyncio.sleep(0)\n    gc.collect()",
    "task": "async def test_task() -> None:\n    KEPT.append(asyncio.create_task(forever()))",
    "warning": "def test_warning() -> None:\n    warnings.warn('old', DeprecationWarning)",
    "file": "def test_file() -> None:\n    open('/dev/null')\n    gc.collect()",
    "sound": "async def test_sound() -> None:\n    await asyncio.ensure_future(asyncio.sleep(0))",
}
IMPORTS = "import asyncio, gc, subprocess, warnings\nKEPT = []\nforever = asyncio.Event().wait\n"
CHILD = f"def test_child() -> None:\n    KEPT.append(subprocess.Popen({SLEEP}))"
ORPHAN = (
    "def test_orphan() -> None:\n"
    "    subprocess.run(['sh', '-c', 'setsid sleep 30 >/dev/null 2>&1 &'], check=True)"
)
UNKNOWN_MARKER = "import pytest\n@pytest.mark.sloww\ndef test_marked() -> None: ..."


def outcome_of(folder: Path, *tests: str) -> tuple[int, str]:
    """Run tests in a process of their own under the settings and guards of this suite."""
    (folder / "test_planted.py").write_text(IMPORTS + "\n\n".join(tests))
    command = [sys.executable, "-P", "-m", "pytest", "-c", str(ROOT / "pyproject.toml")]
    options = ["--rootdir", str(ROOT), "-p", "tests.conftest", "-p", "no:cacheprovider", "-rA"]
    run = subprocess.run(
        [*command, *options, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return run.returncode, run.stdout


def test_what_a_test_leaves_behind_or_warns_of_fails_it(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, *PLANTED.values())
    bad = set(re.findall(r"^(?:FAILED|ERROR) \S+::test_(\w+)", output, re.MULTILINE))
    assert code == 1, output
    assert bad == set(PLANTED) - {"sound"}, output


def test_a_child_and_an_orphan_that_stay_fail_their_module(tmp_path: Path) -> None:
    for test in (CHILD, ORPHAN):
        code, output = outcome_of(tmp_path, test)
        assert code == 1, output
        assert "processes left running: ['sleep 30']" in output


def test_a_marker_that_nobody_declared_is_refused(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, UNKNOWN_MARKER)
    assert code != 0
    assert "'sloww' not found in `markers`" in output
