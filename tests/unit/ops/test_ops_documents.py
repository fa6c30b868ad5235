"""The documents for operations say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from promql_names import ROOT

from issuesandbox.entry.cli import cli
from issuesandbox.entry.plugin import plugin
from issuesandbox.entry.reference import render_resource, render_settings

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))


@pytest.mark.parametrize(
    ("page", "marker", "expected"),
    [
        ("configuration.md", "settings", render_settings()),
        ("resource.md", "resource", render_resource()),
    ],
)
def test_a_generated_reference_is_up_to_date(page: str, marker: str, expected: str) -> None:
    text = (DOCS / page).read_text()
    shown = text.split(f"<!-- {marker} -->\n")[1].split(f"<!-- /{marker} -->")[0]
    assert shown == expected, f"run `issuesandbox reference {marker} --into docs/{page}`"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^a-z0-9-]", "", each.lower().replace(" ", "-")) for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_to_a_section_leads_to_one(page: Path) -> None:
    for target, section in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        assert section in anchors(page.parent / target if target else page), f"{target}#{section}"


def commands(text: str) -> list[list[str]]:
    """Return the words of every command of ours that a page shows."""
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", text, re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    inline = re.findall(r"`((?:kubectl isb|issuesandbox) [^`]+)`", text)
    words = [line.removeprefix("$ ").split("#")[0].split() for line in [*lines, *inline]]
    return [
        each for each in words if each[:2] == ["kubectl", "isb"] or each[:1] == ["issuesandbox"]
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_ours_exists_with_its_options(page: Path) -> None:
    for words in commands(page.read_text()):
        group, rest = (plugin, words[2:]) if words[0] == "kubectl" else (cli, words[1:])
        command: click.Command | None = group
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            command, rest = command.get_command(click.Context(command), rest[0]), rest[1:]
        assert command is not None, f"{page.name}: no such command: {' '.join(words)}"
        known = {name for each in command.params for name in each.opts} | {"--help"}
        used = {word.split("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)}
        assert used <= known, f"{page.name}: {' '.join(words)}: {used - known}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_every_manifest_that_a_page_names_exists(page: Path) -> None:
    names = re.findall(r"manifests/(?:samples|examples|overlays|base)/[\w./-]+", page.read_text())
    assert [name for name in names if not (ROOT / name.rstrip(".")).exists()] == []
