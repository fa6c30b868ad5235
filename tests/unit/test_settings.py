"""Settings from the environment: precedence, files, and errors that show no value."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from issuesandbox.entry.settings import SettingsError, load_settings

KEY = {"DAYTONA_API_KEY": "dtn-secret-value"}


def test_defaults_need_nothing_but_the_key() -> None:
    settings = load_settings(KEY)
    assert settings.daytona_api_url == "https://app.daytona.io/api"
    assert settings.watch_namespaces == ()
    assert settings.timings.fleet_tick == timedelta(seconds=12)


def test_namespaces_and_timings_are_parsed() -> None:
    settings = load_settings(
        {
            **KEY,
            "ISSUESANDBOX_WATCH_NAMESPACES": " team-a, team-b ,",
            "ISSUESANDBOX_TIMINGS": '{"fleet_tick": "3s"}',
        }
    )
    assert settings.watch_namespaces == ("team-a", "team-b")
    assert settings.timings.fleet_tick == timedelta(seconds=3)


def test_an_empty_variable_counts_as_not_set() -> None:
    with pytest.raises(SettingsError, match="DAYTONA_API_KEY is not set"):
        load_settings({"DAYTONA_API_KEY": ""})


def test_a_secret_file_is_read_unless_the_variable_is_given(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    given = {"DAYTONA_API_KEY_FILE": str(file)}
    assert load_settings(given).daytona_api_key.get_secret_value() == "from-file"
    both = load_settings({**given, **KEY})
    assert both.daytona_api_key.get_secret_value() == "dtn-secret-value"


def test_files_that_other_programs_name_are_none_of_ours() -> None:
    load_settings({**KEY, "SOME_OTHER_FILE": "/nowhere"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ISSUESANDBOX_HTTP_PORT", "many"),
        ("ISSUESANDBOX_LOG_FORMAT", "xml"),
        ("ISSUESANDBOX_INSTALLATION", "not a label"),
        ("ISSUESANDBOX_TIMINGS", "not json"),
    ],
)
def test_an_error_names_the_variable_and_shows_no_secret(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({**KEY, name: value})
    assert name in str(caught.value)
    assert "dtn-secret-value" not in str(caught.value)
    assert "dtn-secret-value" not in repr(load_settings(KEY))
