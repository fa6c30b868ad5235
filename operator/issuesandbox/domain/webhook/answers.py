"""What is said in answer to a command: short, once, and without a word that GitHub obeys.

Every answer carries a hidden marker, by which it is found again and never taken for a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from issuesandbox.domain.webhook.commands import MARKER, STATUS_MARKER, Verb
from issuesandbox.domain.webhook.live import Path
from issuesandbox.domain.webhook.stamps import Stamp, read_stamp

# On a line of its own at the very end, where nobody else's words are.
_DELETED = re.compile(rf"^{re.escape(MARKER)}:deleted ([0-9TZ: -]{{1,60}}) -->\s*\Z", re.M | re.A)
_BREAK = str.maketrans({"@": "@\u200b", "#": "#\u200b", "`": "'", "<": "&lt;", "\n": " "})


def answer_marker(comment_id: int) -> str:
    """Return the marker of the answer to a comment."""
    return f"{MARKER}:answer c{comment_id} -->"


def deleted_marker(stamp: Stamp) -> str:
    """Return the marker of the answer to `/delete`: it tells of the order after the resource."""
    return f"{MARKER}:deleted {stamp} -->"


def was_done(stamp: Stamp, own: Iterable[tuple[str, datetime | None]]) -> bool:
    """Tell from our own comments whether an order was meant for a resource that is gone.

    A comment about a run shows that there was a resource after the order, and the answer to
    `/delete` that whatever came before is over.
    """
    for body, at in own:
        found = _DELETED.search(body)
        deleted = read_stamp(found[1]) if found else None
        if deleted is not None and stamp <= deleted:
            return True
        if body.startswith(STATUS_MARKER) and at is not None and at >= stamp.at:
            return True
    return False


def stranger_marker(login: str) -> str:
    """Return the marker of the answer to somebody without permission: one per issue is enough."""
    return f"{MARKER}:refused {login.lower()} -->"


def with_marker(text: str, marker: str) -> str:
    """Return the body of an answer."""
    return f"{text}\n\n{marker}"


def held_text(held: tuple[Path, ...], where: str) -> str:
    """Say that somebody set a field by hand, so that the command could not."""
    names = ", ".join(f"`{'.'.join(path)}`" for path in held)
    return f"{names} was set by hand on {where}; change it there."


def nothing_text(verb: Verb, *, is_late: bool = False) -> str:
    """Say that there is nothing to do it to."""
    if verb is Verb.RUN and is_late:
        return "I heard this late, and the issue may have been edited since: give it again."
    if verb in (Verb.RETRY, Verb.CONTINUE):
        return f"there is nothing to {verb} yet: begin with `/run`."
    return "there is nothing running for this issue."


def deleted_text(name: str) -> str:
    """Say that the resource is being deleted."""
    return f"`{name}` and its sandbox are being deleted. `/run` begins anew."


def status_text(body: Mapping[str, Any]) -> str:
    """Tell how a resource is."""
    metadata, status = body["metadata"], body.get("status", {})
    sandbox, run = status.get("sandbox") or {}, status.get("run") or {}
    pull = run.get("pullRequest") or {}
    ready: Mapping[str, Any] = next(
        (each for each in status.get("conditions", ()) if each.get("type") == "Ready"), {}
    )
    rows = [
        ("state", status.get("phase") or "New"),
        ("because", ready.get("message")),
        ("sandbox", " ".join(filter(None, (sandbox.get("name"), sandbox.get("state"))))),
        ("run", " ".join(filter(None, (run.get("id"), run.get("phase"), run.get("outcome"))))),
        ("pull request", f"#{pull['number']}" if pull else None),
        ("resource", f"{metadata['namespace']}/{metadata['name']}"),
    ]
    lines = [
        f"- {name}: {value if name == 'pull request' else plain(value)}"
        for name, value in rows
        if value
    ]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Return a text that mentions nobody, links nothing and hides nothing."""
    return text.translate(_BREAK)[:500]
