"""Brings the evidence together once a test is over: journals, rows, comments and every text.

Asks the simulators and the API server; leaves the operator alone, whose word is not evidence.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from issuesandbox.local.checker.evidence import Comment, Evidence, Observation, Row, Span
from issuesandbox.local.checker.journals import read_daytona, read_github


class CollectError(Exception):
    """A source that did not tell what it knows; without it nothing can be judged."""


@dataclass(frozen=True)
class Sources:
    """Where the evidence of one world lies."""

    installation: str
    daytona_admin: str
    github: str | None = None
    # Namespaces of this world; None where the whole cluster is its own.
    namespaces: frozenset[str] | None = None
    # Log files, or folders of them, of the operator and the webhook adapter.
    logs: tuple[Path, ...] = ()
    # Whose calls are the operator's: `organisation/label` of its Daytona keys, logins on GitHub.
    daytona_identities: frozenset[str] | None = None
    github_logins: frozenset[str] | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


async def collect(
    sources: Sources,
    history: Sequence[Observation],
    *,
    texts: Mapping[str, str] | None = None,
    frozen: Sequence[Span] = (),
) -> Evidence:
    """Gather what everybody saw."""
    history = [each for each in history if _belongs(each, sources.namespaces)]
    async with aiohttp.ClientSession(headers={"User-Agent": "issuesandbox-checker"}) as session:
        daytona = await _text(session, f"{sources.daytona_admin}/journal")
        rows = await _json(session, f"{sources.daytona_admin}/sandboxes")
        pages = await _github_journal(session, sources.github) if sources.github else []
        comments = await _comments(session, sources.github, history) if sources.github else []
    everything = {
        "Daytona's journal": daytona,
        "GitHub's journal": "\n".join(map(json.dumps, pages)),
        "resources": "\n".join(json.dumps(each.object) for each in history),
        "comments": "\n".join(comment.body for comment in comments),
        **await asyncio.to_thread(_read_logs, sources.logs),
        **(texts or {}),
    }
    return Evidence(
        installation=sources.installation,
        observations=tuple(history),
        daytona=read_daytona(map(json.loads, daytona.splitlines()), sources.daytona_identities),
        rows=tuple(_row(row) for row in rows),
        github=read_github(pages, sources.github_logins) if sources.github else None,
        comments=tuple(comments),
        texts=everything,
        secrets=sources.secrets,
        frozen=tuple(frozen),
    )


def cluster_texts(kubeconfig: Path) -> dict[str, str]:
    """Return the ConfigMaps and Events of a cluster as texts; a secret must be in none."""
    from kubernetes import client, config

    with config.new_client_from_config(config_file=str(kubeconfig)) as connection:
        core: Any = client.CoreV1Api(connection)
        raw = {
            "ConfigMaps": core.list_config_map_for_all_namespaces(_preload_content=False),
            "Events": core.list_event_for_all_namespaces(_preload_content=False),
        }
        return {name: response.data.decode() for name, response in raw.items()}


async def _text(
    session: aiohttp.ClientSession, url: str, *, missing: str | None = None, **request: Any
) -> str:
    method = "POST" if "json" in request else "GET"
    try:
        async with session.request(method, url, **request) as response:
            text = await response.text()
    except aiohttp.ClientError as error:
        raise CollectError(f"{url} does not answer: {error}") from error
    if response.status == 404 and missing is not None:
        return missing
    if response.status != 200:
        raise CollectError(f"{url} answered {response.status}: clear all faults before the end")
    return text


async def _json(session: aiohttp.ClientSession, url: str, **request: Any) -> Any:
    return json.loads(await _text(session, url, **request))


async def _github_journal(session: aiohttp.ClientSession, github: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    while True:
        since = entries[-1]["seq"] if entries else 0
        page = await _json(session, f"{github}/_sim/journal", params={"since": str(since)})
        if not page:
            return entries
        entries += page


async def _comments(
    session: aiohttp.ClientSession, github: str, history: Sequence[Observation]
) -> list[Comment]:
    """Read every comment of the repositories that resources name, as their owners."""
    found = []
    for repository in sorted({each.object["spec"]["issue"]["repository"] for each in history}):
        owner = repository.split("/")[0]
        made = await _json(session, f"{github}/_sim/tokens", json={"user": owner})
        headers = {"Authorization": f"Bearer {made['token']}"}
        url = f"{github}/repos/{repository}/issues/comments"
        for page in range(1, 1000):
            params = {"per_page": "100", "page": str(page)}
            # A resource may name a repository that does not exist.
            comments = await _json(session, url, missing="[]", headers=headers, params=params)
            found += [_comment(repository, each) for each in comments]
            if len(comments) < 100:
                break
    return found


def _belongs(seen: Observation, namespaces: Collection[str] | None) -> bool:
    return namespaces is None or seen.object["metadata"]["namespace"] in namespaces


def _comment(repository: str, shown: Mapping[str, Any]) -> Comment:
    number = int(shown["issue_url"].rsplit("/", 1)[1])
    return Comment(repository.lower(), number, shown["id"], shown["body"])


def _row(shown: Mapping[str, Any]) -> Row:
    return Row(shown["id"], shown["name"], shown["visibleState"], shown["labels"])


def _read_logs(places: Sequence[Path]) -> dict[str, str]:
    return {str(path): path.read_text(errors="replace") for path in _files(places)}


def _files(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            yield from sorted(path for path in place.rglob("*") if path.is_file())
        else:
            yield place
