"""Log lines: stable keys, levels that change at any time, and no way around the redaction."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from unittest.mock import patch

import pytest
from tests.fakes.kept_logs import kept_logs

from issuesandbox.entry import cli
from issuesandbox.entry.logs import configure_logs, set_levels
from issuesandbox.ports.errors import IssueSandboxError

KNOWN = "plain-looking-value-of-a-secret"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
PLANTED = {
    "known": KNOWN,
    "daytona": "dtn_" + "4f" * 32,
    "github": "ghp_" + "Ab3" * 12,
    "installation": "ghs_" + "Zz9" * 12,
    "anthropic": "sk-ant-api03-" + "Qr7_" * 22,
    "pem": PEM.split("\n")[1],
}
URL = f"https://x-access-token:{PLANTED['github']}@github.com/octo/hello.git"


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    with kept_logs():
        yield


def raise_with(text: str) -> None:
    raise RuntimeError(text)


def in_message(secret: str) -> None:
    logging.getLogger("issuesandbox.some").info(f"answered {secret}")


def in_arguments(secret: str) -> None:
    logging.getLogger("some.library").info("answered %s %r", secret, {"a": secret})


def in_extra(secret: str) -> None:
    extra = {"error": secret, "nested": {"list": [{"deep": secret}], secret: 1}}
    logging.getLogger("issuesandbox.some").info("failed", extra=extra)


def in_exception(secret: str) -> None:
    try:
        raise_with(secret)
    except RuntimeError:
        logging.getLogger("issuesandbox.some").exception("failed")


def in_cause(secret: str) -> None:
    try:
        try:
            raise_with(secret)
        except RuntimeError as error:
            raise ValueError("outer") from error
    except ValueError as error:
        logging.getLogger("issuesandbox.some").error("failed", exc_info=error)


def uncaught(secret: str) -> None:
    try:
        raise_with(secret)
    except RuntimeError as error:
        sys.excepthook(type(error), error, error.__traceback__)


def uncaught_in_a_thread(secret: str) -> None:
    thread = threading.Thread(target=raise_with, args=(secret,))
    thread.start()
    thread.join()


def in_a_warning(secret: str) -> None:
    warnings.warn(f"do not use {secret}", stacklevel=1)


def malformed(secret: str) -> None:
    logging.getLogger("issuesandbox.some").info("answered %d", secret)


def with_an_own_handler(secret: str) -> None:
    other = logging.getLogger("a.package.with.its.own.handler")
    other.info("answered %s", secret)


def with_a_handler_added_later(secret: str) -> None:
    late = logging.getLogger("a.package.that.comes.late")
    handler = logging.StreamHandler(sys.stderr)
    late.addHandler(handler)
    try:
        raise_with(secret)
    except RuntimeError:
        late.exception("answered %s", secret)
        late.info("answered %d", secret)
    finally:
        late.removeHandler(handler)


def as_the_error_that_ends_a_command(text: str) -> None:
    error = IssueSandboxError(f"it said {text}")
    with patch.object(cli, "cli", side_effect=error), suppress(SystemExit):
        cli.main()


WAYS = [
    in_message,
    in_arguments,
    in_extra,
    in_exception,
    in_cause,
    uncaught,
    uncaught_in_a_thread,
    in_a_warning,
    malformed,
    with_an_own_handler,
    with_a_handler_added_later,
    as_the_error_that_ends_a_command,
]


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_of_logging_shows_a_secret(
    style: str, way: object, capsys: pytest.CaptureFixture[str]
) -> None:  # R112
    own = logging.getLogger("a.package.with.its.own.handler")
    own.addHandler(logging.StreamHandler(sys.stderr))
    own.propagate = False
    configure_logs(style, "INFO", [KNOWN])
    for secret in (*PLANTED.values(), URL, PEM):
        way(secret if secret != PLANTED["pem"] else PEM)  # type: ignore[operator]
    shown = "".join(capsys.readouterr())
    assert shown.count("\n") >= len(PLANTED), "every call leaves a line"
    for name, secret in PLANTED.items():
        assert secret not in shown, f"the {name} secret is shown"


def test_a_field_named_like_a_secret_is_hidden_whatever_it_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json", "INFO")
    extra = {"api_key": "abc", "headers": {"Authorization": "abc"}, "monkey": "shown"}
    logging.getLogger("issuesandbox").info("asked", extra=extra)
    line = json.loads(capsys.readouterr().err)
    assert "abc" not in json.dumps(line)
    assert line["monkey"] == "shown"


def test_json_lines_have_the_same_keys_and_extras_cannot_replace_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json", "INFO")
    extra = {"resource": "team/one", "attempt": 2, "level": "forged", "at": "never"}
    logging.getLogger("issuesandbox.engine").warning("created", extra=extra)
    line = json.loads(capsys.readouterr().err)
    assert list(line)[:4] == ["at", "level", "logger", "message"]
    assert line | {"at": ""} == {
        "at": "",
        "level": "warning",
        "logger": "issuesandbox.engine",
        "message": "created",
        "resource": "team/one",
        "attempt": 2,
    }
    assert line["at"].endswith("Z")


def test_the_level_of_one_module_changes_without_a_restart_and_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("console", "INFO")
    fleet, other = logging.getLogger("issuesandbox.fleet"), logging.getLogger("issuesandbox.other")

    def said() -> str:
        fleet.debug("fleet detail")
        other.debug("other detail")
        return capsys.readouterr().err

    assert said() == ""
    set_levels("INFO", {"issuesandbox.fleet": "DEBUG"})
    assert "fleet detail" in (shown := said())
    assert "other detail" not in shown
    set_levels("INFO")
    assert said() == ""


def test_loud_packages_stay_quiet_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("console", "INFO")
    logging.getLogger("kopf.activities").info("noise")
    assert capsys.readouterr().err == ""
    set_levels("INFO", {"kopf": "INFO"})
    logging.getLogger("kopf.activities").info("wanted")
    assert "wanted" in capsys.readouterr().err


def test_a_secret_that_was_replaced_is_hidden_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", "INFO", ["the-old-secret-value"])
    configure_logs("json", "INFO", ["the-new-secret-value"])
    logging.getLogger("issuesandbox").info("the-old-secret-value the-new-secret-value")
    shown = capsys.readouterr().err
    assert "secret-value" not in shown
