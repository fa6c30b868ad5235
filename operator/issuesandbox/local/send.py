"""`issuesandbox local send`: sign a sample event and post it, as GitHub would.

For trying the webhook adapter by hand. The payloads have the fields that the adapter reads and no
others. Knows nothing of the adapter but its address.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from typing import Any

import click

from issuesandbox.clock import Clock, SystemClock
from issuesandbox.domain.webhook.signature import sign

_ISSUE_ACTIONS = ("opened", "edited", "reopened", "closed", "labeled", "unlabeled", "deleted")
_KINDS = (*_ISSUE_ACTIONS, "comment", "ping")
_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What the event is about and who caused it."""

    kind: str
    repository: str
    number: int
    title: str
    text: str
    login: str
    association: str

    def event(self) -> str:
        """Return GitHub's name of the event."""
        return {"comment": "issue_comment", "ping": "ping"}.get(self.kind, "issues")

    def payload(self, clock: Clock) -> dict[str, Any]:
        """Return the body of the delivery."""
        if self.kind == "ping":
            return {"zen": "Keep it logically awesome.", "hook_id": 1}
        now = clock.now().isoformat(timespec="seconds").replace("+00:00", "Z")
        person = {"login": self.login, "type": "User"}
        is_comment, is_label = self.kind == "comment", self.kind.endswith("labeled")
        found: dict[str, Any] = {
            "action": "created" if is_comment else self.kind,
            "issue": {
                # Never the number: that the two differ is a thing to find out here.
                "id": 2_000_000_000 + self.number,
                "number": self.number,
                "title": self.title,
                "body": "" if is_comment or is_label else self.text,
                "state": "closed" if self.kind == "closed" else "open",
                "updated_at": now,
                "user": person,
                "author_association": self.association,
                "labels": [{"name": self.text}] if self.kind == "labeled" else [],
                "assignees": [],
                "locked": False,
                "html_url": f"https://github.com/{self.repository}/issues/{self.number}",
            },
            "repository": {"full_name": self.repository},
            "sender": person,
        }
        if self.kind == "edited":
            found["changes"] = {"body": {"from": "an earlier text"}}
        if is_label:
            found["label"] = {"name": self.text}
        if is_comment:
            found["comment"] = {
                "id": int(clock.now().timestamp()),
                "body": self.text,
                "created_at": now,
                "updated_at": now,
                "user": person,
                "author_association": self.association,
            }
        return found


@click.command()
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("text", default="")
@click.option("--to", "url", required=True, metavar="URL", help="Such as http://host:8080/webhook.")
@click.option(
    "--secret",
    envvar="GITHUB_WEBHOOK_SECRET",
    required=True,
    help="Signs the event; better from GITHUB_WEBHOOK_SECRET than on the command line.",
)
@click.option("--repository", default="octocat/hello-world", show_default=True)
@click.option("--number", type=click.IntRange(1), default=1, show_default=True)
@click.option("--title", default="A sample issue", show_default=True)
@click.option("--login", default="octocat", show_default=True, help="Who did it.")
@click.option("--association", default="OWNER", show_default=True, help="What they are.")
def send(  # noqa: PLR0913, PLR0917 - click passes one argument per option
    kind: str,
    text: str,
    url: str,
    secret: str,
    repository: str,
    number: int,
    title: str,
    login: str,
    association: str,
) -> None:
    """Post an event KIND to the webhook adapter; TEXT is its body, comment or label."""
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter("must begin with http:// or https://", param_hint="--to")
    sample = Sample(kind, repository, number, title, text, login, association)
    body = json.dumps(sample.payload(SystemClock())).encode()
    status, answer = _post(url, sample.event(), body, secret.partition(",")[0].strip())
    click.echo(f"{status} {answer}")
    if status >= 300:
        raise click.exceptions.Exit(1)


def _post(url: str, event: str, body: bytes, secret: str) -> tuple[int, str]:
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        url,
        data=body,
        headers={
            "Content-Type": "application/json",
            "User-Agent": "issuesandbox-local-send",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": str(uuid.uuid4()),
            "X-Hub-Signature-256": sign(secret.encode(), body),
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode().strip()
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise click.ClickException(f"{url} cannot be reached: {reason}") from None
