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

from issuesandbox.local.checker.asking import Asking
from issuesandbox.local.checker.evidence import Comment, Evidence, Observation, Row, Span
from issuesandbox.local.checker.github_texts import GitHubTexts
from issuesandbox.local.checker.journals import GitHubJournal, read_daytona, read_github


@dataclass(frozen=True)
class Sources:
    """Where the evidence of one world lies."""

    installation: str
    # None where nobody has a sandbox.
    daytona_admin: str | None = None
    github: str | None = None
    # Namespaces of this world; None where the whole cluster is its own.
    namespaces: frozenset[str] | None = None
    # Log files, or folders of them, of the operator and the webhook adapter.
    logs: tuple[Path, ...] = ()
    # Whose calls are the operator's: `organisation/label` of its Daytona keys, logins on GitHub.
    daytona_identities: frozenset[str] | None = None
    github_logins: frozenset[str] | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class _OnGitHub:
    """What GitHub tells at the end."""

    journal: GitHubJournal | None = None
    comments: tuple[Comment, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)


async def collect(
    sources: Sources,
    history: Sequence[Observation],
    *,
    texts: Mapping[str, str] | None = None,
    frozen: Sequence[Span] = (),
    metrics: Sequence[str] = (),
) -> Evidence:
    """Gather what everybody saw; what is exported at the addresses `metrics` is a text too."""
    history = [each for each in history if _belongs(each, sources.namespaces)]
    async with aiohttp.ClientSession(headers={"User-Agent": "issuesandbox-checker"}) as session:
        asking = Asking(session)
        journal, rows = await _at_daytona(asking, sources.daytona_admin)
        on_github = await _on_github(asking, sources, history)
        exported = {url: await asking.text_if_up(url) for url in metrics}
    everything = {
        "Daytona's journal": journal,
        "Daytona's sandboxes": rows,
        **on_github.texts,
        "resources": "\n".join(json.dumps(each.object) for each in history),
        **exported,
        **await asyncio.to_thread(_read_logs, sources.logs),
        **(texts or {}),
    }
    return Evidence(
        installation=sources.installation,
        observations=tuple(history),
        daytona=read_daytona(map(json.loads, journal.splitlines()), sources.daytona_identities),
        rows=tuple(_row(row) for row in json.loads(rows)),
        github=on_github.journal,
        comments=on_github.comments,
        texts=everything,
        secrets=sources.secrets,
        frozen=tuple(frozen),
    )


async def _at_daytona(asking: Asking, admin: str | None) -> tuple[str, str]:
    if admin is None:
        return "", "[]"
    return await asking.text(f"{admin}/journal"), await asking.text(f"{admin}/sandboxes")


async def _on_github(asking: Asking, sources: Sources, history: Sequence[Observation]) -> _OnGitHub:
    if sources.github is None:
        return _OnGitHub()
    reading = GitHubTexts(asking, sources.github)
    entries = await reading.journal()
    journal = read_github(entries, sources.github_logins)
    repositories = {each.object["spec"]["issue"]["repository"] for each in history}
    comments = await reading.comments(repositories)
    texts = {
        "GitHub's journal": "\n".join(map(json.dumps, entries)),
        "comments": "\n".join(comment.body for comment in comments),
        "pull requests": await reading.pull_requests(repositories),
        "pushed commits": await reading.commits(journal.pushes),
    }
    return _OnGitHub(journal, tuple(comments), texts)


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


def _belongs(seen: Observation, namespaces: Collection[str] | None) -> bool:
    return namespaces is None or seen.object["metadata"]["namespace"] in namespaces


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
