"""Secrets of the webhook adapter change while it runs."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.kept_logs import kept_logs

from issuesandbox.entry.webhook.rotation import Rotation
from issuesandbox.entry.webhook.settings import WebhookSettings, load_webhook_settings


def test_a_new_secret_is_taken_up_once_and_a_broken_one_never(tmp_path: Path) -> None:  # R108
    secret, token = tmp_path / "webhook-secret", tmp_path / "token"
    environment = {"GITHUB_WEBHOOK_SECRET_FILE": str(secret), "GITHUB_TOKEN_FILE": str(token)}
    secret.write_text("the-first-secret\n")
    token.write_text("github_pat_" + "Ab1" * 10)
    taken: list[tuple[bytes, ...]] = []

    def load() -> WebhookSettings:
        return load_webhook_settings(environment)

    with kept_logs():
        rotation = Rotation(load(), load, lambda each: taken.append(each.webhook_secrets))
        rotation.look()
        secret.write_text("the-second-secret,the-first-secret")
        rotation.look()
        rotation.look()
        for broken in ("", "short,the-first-secret"):
            secret.write_text(broken)
            rotation.look()
        secret.write_text("the-second-secret,the-first-secret")
        token.write_text("dtn_" + "a1" * 20)
        rotation.look()
    assert taken == [(b"the-second-secret", b"the-first-secret")]
