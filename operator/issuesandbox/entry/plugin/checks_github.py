"""GitHub's part of `kubectl isb doctor`: whether the credentials work, and for what."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

import msgspec

from issuesandbox.clock import SystemClock
from issuesandbox.domain.key_formats import KeyKind, flaw
from issuesandbox.domain.webhook.signature import SHORTEST_SECRET
from issuesandbox.entry.plugin.checks import Finding, Verdict
from issuesandbox.entry.plugin.cluster import Cluster
from issuesandbox.entry.plugin.credentials import GITHUB_SECRET, readable, setting
from issuesandbox.ports.errors import CallError

_PUBLIC = "https://api.github.com"
_TIMEOUT = 10.0
# What a run needs: clone and push, one comment, one pull request.
_PERMISSIONS = {"contents": "write", "issues": "write", "pull_requests": "write"}
_EVENTS = {"issues", "issue_comment", "pull_request"}
_WRITE_ANEW = f"write the Secret {GITHUB_SECRET} anew; see docs/webhook.md"
_EDIT_APP = "change it on the App's page at GitHub, and accept it for each installation"


class _App(msgspec.Struct):
    slug: str
    permissions: dict[str, str] = {}
    events: list[str] = []


class _User(msgspec.Struct):
    login: str


def github_findings(cluster: Cluster, home: str) -> Iterator[Finding]:
    """Say whether the App or token works, what it may do, and whether a webhook can be trusted."""
    kept = readable(cluster, home, GITHUB_SECRET)
    app_id = os.environ.get("GITHUB_APP_ID") or kept.get("app-id")
    private = os.environ.get("GITHUB_APP_PRIVATE_KEY") or kept.get("private-key")
    token = os.environ.get("GITHUB_TOKEN") or kept.get("token")
    url = (setting(cluster, home, "GITHUB_API_URL") or _PUBLIC).rstrip("/")
    if app_id and private:
        yield from _app(url, app_id, private)
    elif token:
        yield from _token(url, token)
    else:
        fix = "set GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, or GITHUB_TOKEN, and try again"
        yield Finding("GitHub", Verdict.UNKNOWN, "no credentials to ask with", fix)
    secret = os.environ.get("GITHUB_WEBHOOK_SECRET") or kept.get("webhook-secret")
    if secret is not None:
        yield _webhook_secret(secret)


def _webhook_secret(secret: str) -> Finding:
    parts = [each.strip() for each in secret.split(",")]
    if all(len(each) >= SHORTEST_SECRET for each in parts):
        return Finding("webhook secret", Verdict.OK, f"{len(parts)} in use")
    text = f"shorter than {SHORTEST_SECRET} characters: the webhook adapter refuses it"
    fix = "openssl rand -hex 32; write it into the Secret and on the App's page"
    return Finding("webhook secret", Verdict.FAILED, text, fix)


def _app(url: str, app_id: str, private: str) -> Iterator[Finding]:
    from issuesandbox.adapters.github.app import AppKey

    try:
        assertion = AppKey(app_id, private).assertion(SystemClock().now())
    except CallError as error:
        yield Finding("GitHub App", Verdict.FAILED, str(error), _WRITE_ANEW)
        return
    answer = _ask(f"{url}/app", assertion)
    if isinstance(answer, Finding):
        yield answer
        return
    app = msgspec.json.decode(answer, type=_App)
    yield Finding("GitHub App", Verdict.OK, f"{app.slug} is known at {url}")
    yield app_rights(app.permissions)
    missing = sorted(_EVENTS - set(app.events))
    if missing:
        text = f"the App does not send {', '.join(missing)}"
        yield Finding("GitHub events", Verdict.WARNING, text, _EDIT_APP)
    else:
        yield Finding("GitHub events", Verdict.OK, ", ".join(sorted(_EVENTS)))
    installed = _ask(f"{url}/app/installations", assertion)
    if not isinstance(installed, Finding) and msgspec.json.decode(installed) == []:
        text = f"{app.slug} is installed nowhere"
        yield Finding("GitHub installations", Verdict.FAILED, text, "install it on a repository")


def app_rights(granted: Mapping[str, str]) -> Finding:
    """Say whether what an App was granted is enough for a run."""
    lacking = [
        f"{name}: {level}" for name, level in _PERMISSIONS.items() if granted.get(name) != level
    ]
    if lacking:
        text = f"the App lacks {', '.join(lacking)}"
        return Finding("GitHub rights", Verdict.FAILED, text, _EDIT_APP)
    if granted.get("workflows") != "write":
        text = "without workflows: write a change of a workflow file cannot be pushed"
        return Finding("GitHub rights", Verdict.WARNING, text, _EDIT_APP)
    return Finding("GitHub rights", Verdict.OK, "push, comment and open pull requests")


def _token(url: str, token: str) -> Iterator[Finding]:
    wrong = flaw(KeyKind.GITHUB, token)
    if wrong is not None:
        yield Finding("GitHub token", Verdict.FAILED, f"the token {wrong}", _WRITE_ANEW)
        return
    answer = _ask(f"{url}/user", token)
    if isinstance(answer, Finding):
        yield answer
        return
    login = msgspec.json.decode(answer, type=_User).login
    text = f"the token is {login}'s; what {login} does is not listened to"
    yield Finding("GitHub token", Verdict.OK, text)


def _ask(url: str, token: str) -> bytes | Finding:
    """Return GitHub's answer, or what is wrong in words that show no credential."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the address is a setting
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        refused = error.code in (401, 403)
        text = "GitHub refuses the credentials" if refused else f"GitHub answered {error.code}"
        return Finding("GitHub", Verdict.FAILED, text, _WRITE_ANEW)
    except (OSError, ValueError):
        return Finding(
            "GitHub",
            Verdict.FAILED,
            f"no good answer from {url}",
            "check GITHUB_API_URL and egress",
        )
