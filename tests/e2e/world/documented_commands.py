"""The commands that README and documents show, page by page, and which of them cannot be run here.

A block is run unless the line before it says why not: `<!-- not executed: reason -->`. What a
`console` block shows is compared with what the commands say.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(
    r"(?:^ *<!-- not executed: (?P<reason>.+?) -->\n)?"
    r"^(?P<indent> *)```(?P<kind>sh|console)\n(?P<text>.*?)^(?P=indent)```",
    re.M | re.S,
)
# Ends what goes on for ever as Ctrl-C would.
_ENDLESS = "kubectl isb list -w"


@dataclass(frozen=True)
class Block:
    """One block of commands."""

    page: str
    kind: str
    text: str
    reason: str | None
    """Why it is not run."""

    def script(self, **placeholders: str) -> str:
        """Return the commands with what a reader would put in."""
        text = self.text.replace(_ENDLESS, f"timeout --preserve-status -s INT 4 {_ENDLESS}")
        # Really deleted, it would be missing to all that watches the world until its end.
        text = text.replace("kubectl delete -", "kubectl delete --dry-run=server -")
        for name, value in placeholders.items():
            text = re.sub(rf"\b{name}\b", value, text)
        return text

    def dialogue(self) -> list[tuple[str, str]]:
        """Return the commands of a `console` block, each with the output shown."""
        parts = re.split(r"^\$ (.+)\n", self.text, flags=re.M)[1:]
        return list(zip(parts[::2], parts[1::2], strict=True))

    def creates(self) -> list[tuple[str, str]]:
        """Return the Secrets and ConfigMaps that it expects not to be there."""
        found = re.findall(
            r"create (secret|configmap)(?: generic)? (issuesandbox[\w-]*)", self.text
        )
        return [] if "--dry-run=client" in self.text else found


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page."""
    return [
        Block(page.name, each["kind"], textwrap.dedent(each["text"]), each["reason"])
        for each in _BLOCK.finditer(page.read_text())
    ]


def pages() -> list[Path]:
    """Return the pages in the order in which somebody would follow them."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    first = [ROOT / "README.md", ROOT / "docs" / "install.md"]
    last = [ROOT / "docs" / "uninstall.md"]
    return [*first, *(each for each in docs if each not in (*first, *last)), *last]
