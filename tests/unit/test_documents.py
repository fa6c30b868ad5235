"""The documents say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from issuesandbox.entry.table import render

ROOT = Path(__file__).resolve().parents[2]


def test_the_decision_table_in_the_documents_is_the_one_in_the_code() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    shown = text.split("<!-- table -->\n")[1].split("<!-- /table -->")[0]
    assert shown == render(), "run `issuesandbox table` and paste its output"


def test_every_link_between_documents_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
