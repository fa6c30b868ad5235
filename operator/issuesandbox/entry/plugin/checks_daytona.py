"""Daytona's part of `kubectl isb doctor`, asked with Daytona's own SDK."""

from __future__ import annotations

from collections.abc import Iterator

from issuesandbox.domain.key_formats import KeyKind, flaw
from issuesandbox.entry.plugin.checks import Finding, Verdict
from issuesandbox.entry.plugin.cluster import Cluster
from issuesandbox.entry.plugin.credentials import DAYTONA_SECRET, daytona_key, setting

_DEFAULT_URL = "https://app.daytona.io/api"


def daytona_findings(cluster: Cluster, home: str) -> Iterator[Finding]:
    """Say whether the key works, and whether the default snapshot exists."""
    key = daytona_key(cluster, home)
    if not key:
        text = "no key to ask with"
        yield Finding("Daytona", Verdict.UNKNOWN, text, "set DAYTONA_API_KEY and try again")
        return
    wrong = flaw(KeyKind.DAYTONA, key)
    if wrong is not None:
        fix = f"write the Secret {DAYTONA_SECRET} anew"
        yield Finding("Daytona key", Verdict.FAILED, f"the key {wrong}", fix)
        return
    url = setting(cluster, home, "DAYTONA_API_URL") or _DEFAULT_URL
    yield from _ask(key, url, setting(cluster, home, "DAYTONA_SNAPSHOT"))


def _ask(key: str, url: str, snapshot: str | None) -> Iterator[Finding]:
    from daytona import Daytona, DaytonaConfig, DaytonaError

    client = Daytona(DaytonaConfig(api_key=key, api_url=url))
    try:
        next(iter(client.list()), None)
    except DaytonaError as error:
        code = getattr(error, "status_code", None)
        refused = code in (401, 403)
        text = "the key is refused" if refused else f"no good answer from {url}"
        fix = (
            f"write the Secret {DAYTONA_SECRET} anew"
            if refused
            else "check DAYTONA_API_URL and egress"
        )
        yield Finding("Daytona key", Verdict.FAILED, text, fix)
        return
    yield Finding("Daytona key", Verdict.OK, f"works at {url}")
    if snapshot is None:
        return
    try:
        state = client.snapshot.get(snapshot).state
    except DaytonaError:
        text = f"{snapshot} does not exist in this organisation"
        yield Finding("snapshot", Verdict.FAILED, text, "set DAYTONA_SNAPSHOT to one that does")
        return
    yield Finding("snapshot", Verdict.OK, f"{snapshot} is {getattr(state, 'value', state)}")
