"""The operator's credentials, for verbs that ask Daytona or GitHub as it does. Never shown."""

from __future__ import annotations

import base64
import os

import click

from issuesandbox.api.names import SETTINGS_MAP
from issuesandbox.entry.plugin.cluster import Cluster, failures

DAYTONA_SECRET = "issuesandbox-daytona"  # noqa: S105 - the name of one
GITHUB_SECRET = "issuesandbox-github"  # noqa: S105 - the name of one


def daytona_key(cluster: Cluster, home: str) -> str | None:
    """Return the key of the caller, else the operator's where the caller may read it."""
    return os.environ.get("DAYTONA_API_KEY") or readable(cluster, home, DAYTONA_SECRET).get(
        "api-key"
    )


def setting(cluster: Cluster, home: str, name: str) -> str | None:
    """Return a setting of the caller's environment, else the one stored for the operator."""
    return os.environ.get(name) or (cluster.peek(home, SETTINGS_MAP) or {}).get(name)


def readable(cluster: Cluster, home: str, name: str) -> dict[str, str]:
    """Return what is in a Secret; nothing if there is none, or the caller may not read it."""
    try:
        with failures(f"Secret {home}/{name}"):
            data = cluster.core.read_namespaced_secret(name, home).data or {}
    except click.ClickException:
        return {}
    texts = {each: base64.b64decode(value).decode(errors="replace") for each, value in data.items()}
    # As the operator reads its files: a line end after the key is no part of it.
    return {each: text.strip() for each, text in texts.items() if text.strip()}
