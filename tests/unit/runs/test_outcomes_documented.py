"""Every reason for which a run can end is on the page that tells what to do about it."""

from __future__ import annotations

import re
from pathlib import Path

import issuesandbox

PACKAGE = Path(issuesandbox.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "outcomes.md"
# Where a reason is spelled out: ends, hopeless cases, verdicts, and what collecting failed at.
SPELLED = (
    r'Ending\(\s*Outcome\.\w+,\s*"(\w+)"',
    r'Hopeless\(\s*"(\w+)"',
    r'_failed\(\s*"([A-Z]\w+)"',
    r'CollectError\(\s*"(\w+)"',
    r'reason_of\(\w+, "(\w+)"\)',
    r'EndedBy\.\w+: \(\s*"(\w+)"',
    r'"error_\w+": \(\s*"(\w+)"',
    r'reason, words = "(\w+)"',
    r"\bfail ([A-Z]\w+)",
)


def reasons() -> set[str]:
    sources = [
        *(PACKAGE / "engine" / "runs").glob("*.py"),
        PACKAGE / "domain" / "agents" / "verdict.py",
        PACKAGE / "domain" / "collection.py",
        PACKAGE / "inside" / "collect.sh",
    ]
    texts = [path.read_text() for path in sources]
    return {found for text in texts for each in SPELLED for found in re.findall(each, text)}


def test_every_reason_is_on_the_page() -> None:
    found = reasons()
    assert len(found) > 40
    told = set(re.findall(r"`([A-Z]\w+)`", PAGE.read_text()))
    assert found - told == set()
