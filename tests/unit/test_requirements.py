"""docs/requirements.md: every requirement is there, every link leads somewhere, every test runs."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "requirements.md"
ROWS = re.findall(r"^\| R(\d+) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.M)
LINK = re.compile(r"\[`([^`]+)`\]\(([^)]+)\)")
LAST = 140


@cache
def named_in(path: Path) -> dict[str, bool]:
    """Return the tests of a module that pytest collects; True for those that may be left out."""
    module = ast.parse(path.read_text())
    skipped = "pytestmark" in path.read_text() and "mark.skip" in path.read_text()
    found = {}
    for each in ast.walk(module):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = " ".join(map(ast.unparse, each.decorator_list))
            found[each.name] = skipped or "mark.skip" in marks or "mark.xfail" in marks
    return found


def test_every_requirement_is_there_once_and_in_order() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, LAST + 1))


def test_every_requirement_names_code_that_exists() -> None:
    for number, _, code, _ in ROWS:
        links = LINK.findall(code)
        assert links, f"R{number} names no code"
        for _, target in links:
            assert (PAGE.parent / target).is_file(), f"R{number}: {target}"


def test_every_test_named_is_one_that_runs() -> None:
    levels = re.search(r"LEVELS = \{(.+?)\}", (ROOT / ".ci" / "checks.py").read_text())
    assert levels is not None
    for number, _, _, tests in ROWS:
        links = LINK.findall(tests)
        assert links, f"R{number} names no test"
        for name, target in links:
            path = (PAGE.parent / target).resolve()
            assert path.is_file(), f"R{number}: {target}"
            assert path.name.startswith("test_"), f"R{number}: pytest does not look into {target}"
            level = path.relative_to(ROOT / "tests").parts[0]
            assert f'"{level}"' in levels[1], f"R{number}: `make test` does not run tests/{level}"
            assert name in named_in(path), f"R{number}: {target} has no {name}"
            assert not named_in(path)[name], f"R{number}: {name} is not always run"


def test_what_a_test_says_it_proves_is_on_the_page() -> None:
    """A test that names a requirement in a comment names one that there is."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for number in re.findall(r"# .*?\bR(\d+)\b", path.read_text()):
            assert 1 <= int(number) <= LAST, f"{path.name}: R{number}"
