"""`make test`: every check and every level of tests, then how many ran and how long it took."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
# Each level, and in how many processes its tests run on two cores: most wait more than they work.
LEVELS = {"unit": 4, "property": 2, "contract": 4, "e2e": 3}
_COUNTS = re.compile(r"(\d+) (passed|failed|error|errors|skipped)")


@dataclass
class Result:
    """What one check said."""

    name: str
    passed: bool
    seconds: float
    detail: str
    left_out: tuple[str, ...] = ()


def main() -> int:
    """Run everything, also after a failure, so that one run shows all that is wrong."""
    results = [
        run("format", "ruff", "format", "--check", "--quiet", "."),
        run("lint", "ruff", "check", "."),
        run("types", "mypy"),
        run("layers", "lint-imports"),
    ]
    results += [run_level(level, workers) for level, workers in LEVELS.items()]
    report(results)
    return 0 if all(each.passed for each in results) else 1


def run(name: str, *command: str) -> Result:
    """Run one tool of the environment."""
    print(f"== {name}", flush=True)
    started = time.monotonic()
    code = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, check=False).returncode
    return Result(name, code == 0, time.monotonic() - started, "")


def run_level(level: str, workers: int) -> Result:
    """Run the tests of one level; a level without a single test is a failure."""
    print(f"== {level} tests", flush=True)
    started = time.monotonic()
    # A worker that is done takes over what another has not begun: one long test delays few.
    parallel = ("-n", str(workers), "--dist", "worksteal")
    # What a test could not do on this machine is said at the end.
    command = [BIN / "python", "-P", "-m", "pytest", "-q", "-rs", *parallel, f"tests/{level}"]
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    last = lines[-1] if lines else ""
    counts = {word.rstrip("s"): int(count) for count, word in _COUNTS.findall(last)}
    detail = ", ".join(f"{count} {word}" for word, count in counts.items()) or "no test ran"
    passed = process.returncode == 0 and counts.get("passed", 0) > 0
    left_out = tuple(line.strip() for line in lines if line.startswith("SKIPPED"))
    return Result(f"{level} tests", passed, time.monotonic() - started, detail, left_out)


def report(results: list[Result]) -> None:
    """Print one line per check and the total in one closing line."""
    print()
    for each in results:
        verdict = "ok" if each.passed else "FAILED"
        print(f"{each.name:<16} {verdict:<7} {each.seconds:7.1f} s  {each.detail}")
    for line in (line for each in results for line in each.left_out):
        print(f"NOT CHECKED: {line}")
    passed = failed = 0
    for each in results:
        counts = {word: int(count) for count, word in _COUNTS.findall(each.detail)}
        passed += counts.get("passed", 0)
        # What failed without a single failed test, such as lint, is one failure.
        failed += counts.get("failed", 0) + counts.get("error", 0) or not each.passed
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    sys.exit(main())
