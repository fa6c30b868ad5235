"""Settings of the adapter, and the command that sends a sample by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.domain.webhook.hints import CommentHint, IssueHint
from issuesandbox.domain.webhook.payloads import read_delivery
from issuesandbox.domain.webhook.signature import is_signed
from issuesandbox.entry.settings import SettingsError
from issuesandbox.entry.webhook.settings import load_webhook_settings
from issuesandbox.local.send import send

OLD, NEW = "0" * 16, "1" * 16
GOOD = {"GITHUB_WEBHOOK_SECRET": OLD, "GITHUB_TOKEN": "ghp_t"}


def test_secrets_are_several_and_may_lie_in_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{OLD}, {NEW}\n")
    missing = tmp_path / "missing"
    given = {
        "GITHUB_WEBHOOK_SECRET_FILE": str(tmp_path / "secret"),
        "GITHUB_TOKEN": "ghp_t",
        "GITHUB_APP_PRIVATE_KEY_FILE": str(missing),
    }
    settings = load_webhook_settings(given)
    assert settings.webhook_secrets == (OLD.encode(), NEW.encode())
    assert settings.identity == PlainToken("ghp_t")
    assert set(settings.secrets()) == {"ghp_t", OLD, NEW}
    assert "ghp_t" not in repr(settings)


BAD: dict[str, dict[str, str]] = {
    "GITHUB_WEBHOOK_SECRET is not set": {"GITHUB_TOKEN": "t"},
    "GITHUB_WEBHOOK_SECRET is empty": {**GOOD, "GITHUB_WEBHOOK_SECRET": " , "},
    "fewer than 16 characters": {**GOOD, "GITHUB_WEBHOOK_SECRET": f"{OLD},{NEW[1:]}"},
    "neither GITHUB_APP_ID": {"GITHUB_WEBHOOK_SECRET": OLD},
    "belong together": {**GOOD, "GITHUB_APP_ID": "1"},
    "ISSUESANDBOX_HTTP_PORT": {**GOOD, "ISSUESANDBOX_HTTP_PORT": "x"},
    "ISSUESANDBOX_CATCH_UP_EVERY": {**GOOD, "ISSUESANDBOX_CATCH_UP_EVERY": "soon"},
    "ISSUESANDBOX_NAMING": {**GOOD, "ISSUESANDBOX_NAMING": "Both"},
}


@pytest.mark.parametrize(("wanted", "given"), BAD.items(), ids=BAD)
def test_without_what_it_needs_the_adapter_does_not_start(
    wanted: str, given: dict[str, str]
) -> None:
    with pytest.raises(SettingsError, match=wanted) as error:
        load_webhook_settings(given)
    assert "\n" not in str(error.value)
    assert "webhook adapter's environment" in str(error.value)


def test_the_process_ends_at_once_with_one_line_where_it_has_no_secret() -> None:
    environment = {"PATH": os.environ["PATH"], "GITHUB_TOKEN": "ghp_" + "t" * 36}
    command = [sys.executable, "-P", "-m", "issuesandbox", "webhook"]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "GITHUB_WEBHOOK_SECRET is not set" in ended.stderr


@pytest.fixture
def listener() -> Iterator[Any]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.got = (dict(self.headers), body)  # type: ignore[attr-defined]
            self.send_response(self.server.status)  # type: ignore[attr-defined]
            self.end_headers()
            self.wfile.write(b'{"did":"created"}')

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.status = 202  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _send(listener: Any, *arguments: str) -> Any:
    url = f"http://127.0.0.1:{listener.server_port}/webhook"
    return CliRunner().invoke(send, [*arguments, "--to", url, "--secret", "s,old"])


def test_a_sample_sent_by_hand_is_what_the_adapter_reads(listener: Any) -> None:
    # R117
    result = _send(listener, "edited", "New text", "--number", "3", "--association", "MEMBER")
    assert (result.exit_code, result.output) == (0, '202 {"did":"created"}\n')
    headers, body = listener.got
    assert is_signed((b"s",), body, headers["X-Hub-Signature-256"])
    hint = read_delivery(headers["X-Github-Event"], body)
    assert isinstance(hint, IssueHint)
    assert (hint.issue.number, hint.issue.body) == (3, "New text")
    assert hint.issue.author.standing == "MEMBER"

    _send(listener, "comment", "/run please")
    said = read_delivery("issue_comment", listener.got[1])
    assert isinstance(said, CommentHint)
    assert said.body == "/run please"
    for kind in ("opened", "reopened", "closed", "labeled", "unlabeled", "deleted"):
        assert _send(listener, kind, "agent").exit_code == 0
        assert isinstance(read_delivery("issues", listener.got[1]), IssueHint)
    assert json.loads(listener.got[1])["action"] == "deleted"


def test_a_refusal_or_nobody_there_is_one_line_and_a_bad_exit_code(listener: Any) -> None:
    listener.status = 401
    refused = _send(listener, "opened")
    assert refused.exit_code == 1
    assert refused.output.startswith("401 ")
    nobody = CliRunner().invoke(send, ["ping", "--to", "http://127.0.0.1:9/x", "--secret", "s"])
    assert nobody.exit_code == 1
    assert nobody.output.count("\n") == 1
    assert "cannot be reached" in nobody.output
