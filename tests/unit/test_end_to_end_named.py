"""The eleven stories that the operator was asked for: each is a test that says its name."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

E2E = Path(__file__).parents[1] / "e2e"
STORIES = 11
# The comment is the first line of the test, so that the test tells the story it proves.
NAMED = re.compile(r"async def test_\w+\((?:[^()]|\([^()]*\))*\) -> None:\n    # (E2E-\d+)\b")


def test_every_story_is_told_by_a_test_that_names_it() -> None:
    # R123-R133
    told = Counter(
        name for path in E2E.rglob("test_*.py") for name in NAMED.findall(path.read_text())
    )
    assert set(told) == {f"E2E-{number}" for number in range(1, STORIES + 1)}
