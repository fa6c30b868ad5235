"""What the agent does without a scenario: a small change that depends on the prompt alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from .scenario import Step

_NUMBER = re.compile(r"#(\d+)\b|\bissues?[ /_-](\d+)\b", re.IGNORECASE)
_TITLE = re.compile(r"^(?:#+|title:)[ \t]*(?!\W*$)(.{1,100})", re.IGNORECASE | re.MULTILINE)


def steps_for(prompt: str, files: Iterable[str]) -> tuple[Step, ...]:
    """Plan one added line in a file named after the issue, and say so at the end."""
    texts = (*files, prompt)
    number = next((m.group(1) or m.group(2) for m in map(_NUMBER.search, texts) if m), None)
    title = next((m.group(1).strip() for m in map(_TITLE.search, texts) if m), "the task")
    digest = sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:8]
    path = f"notes/issue-{number}.md" if number else "notes/task.md"
    subject = f"issue #{number}" if number else "the task"
    return (
        Step("say", (f"I read {subject}: {title}",)),
        Step("append", (path, f"- {title} ({digest})")),
        Step("say", (f"I added one line to {path} for {subject}. No scenario was given.",)),
    )
