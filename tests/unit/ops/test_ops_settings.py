"""A ConfigMap over the environment over the defaults, and errors that name the place."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from issuesandbox.api.spec_cleanup import CleanupAction, CleanupFields, RecoveryFields, SaveWork
from issuesandbox.domain.flags import Flag
from issuesandbox.entry.setting_fields import is_live, names
from issuesandbox.entry.settings import Origin, SettingsError, load, load_settings, misspelt

KEY = {"DAYTONA_API_KEY": "dtn-secret-value"}


def test_the_configmap_wins_over_the_environment_over_the_default() -> None:  # R104
    environment = {**KEY, "ISSUESANDBOX_MAX_SANDBOXES": "30", "ENABLE_HEALTH_PROBE": "false"}
    loaded = load(environment, {"ISSUESANDBOX_MAX_SANDBOXES": "40"})
    assert loaded.settings.max_sandboxes == 40
    assert loaded.settings.max_per_repository == 5
    assert loaded.settings.flags.percent[Flag.HEALTH_PROBE] == 0
    assert loaded.origins["ISSUESANDBOX_MAX_SANDBOXES"] is Origin.CONFIG_MAP
    assert loaded.origins["ENABLE_HEALTH_PROBE"] is Origin.ENVIRONMENT
    assert loaded.origins["ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY"] is Origin.DEFAULT
    assert loaded.origins["DAYTONA_API_KEY"] is Origin.ENVIRONMENT


def test_what_a_resource_may_leave_out_has_the_same_order() -> None:
    environment = {
        **KEY,
        "ISSUESANDBOX_CLEANUP_RETENTION": "2h",
        "ISSUESANDBOX_RECOVERY_SAVE_WORK": "Off",
    }
    loaded = load(environment, {"ISSUESANDBOX_CLEANUP_RETENTION": "1h"})
    assert loaded.settings.cleanup_retention == timedelta(hours=1)
    assert loaded.settings.recovery_save_work is SaveWork.OFF
    assert loaded.settings.cleanup_on_success is CleanupAction.DELETE
    assert loaded.origins["ISSUESANDBOX_CLEANUP_RETENTION"] is Origin.CONFIG_MAP
    assert loaded.origins["ISSUESANDBOX_RECOVERY_SAVE_WORK"] is Origin.ENVIRONMENT
    assert loaded.origins["ISSUESANDBOX_CLEANUP_ON_SUCCESS"] is Origin.DEFAULT


def test_every_part_of_the_cleanup_and_the_recovery_is_a_setting_that_needs_no_restart() -> None:
    wanted = {
        *(f"cleanup_{name}" for name in CleanupFields.model_fields),
        *(f"recovery_{name}" for name in RecoveryFields.model_fields),
    }
    assert wanted <= set(names().values())
    assert all(map(is_live, wanted))


def test_a_removed_key_falls_back_to_the_environment() -> None:
    environment = {**KEY, "ISSUESANDBOX_LOG_LEVEL": "WARNING"}
    assert load(environment, {"ISSUESANDBOX_LOG_LEVEL": "DEBUG"}).settings.log_level == "DEBUG"
    assert load(environment, {}).settings.log_level == "WARNING"


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"ISSUESANDBOX_MAX_SANDBOX": "1"}, "did you mean ISSUESANDBOX_MAX_SANDBOXES?"),
        ({"SOMETHING": "1"}, "SOMETHING in the ConfigMap: there is no such setting"),
        ({"ISSUESANDBOX_MAX_SANDBOXES": "many"}, "ISSUESANDBOX_MAX_SANDBOXES in the ConfigMap"),
        ({"ISSUESANDBOX_MAX_SANDBOXES": "-1"}, "ISSUESANDBOX_MAX_SANDBOXES in the ConfigMap"),
        ({"ISSUESANDBOX_TIMINGS": '{"fleet_tick": "-3s"}'}, "ISSUESANDBOX_TIMINGS"),
        ({"ISSUESANDBOX_LOG_LEVELS": "issuesandbox=LOUD"}, "ISSUESANDBOX_LOG_LEVELS"),
        ({"ENABLE_HEALTH_PROBE": "maybe"}, "ENABLE_HEALTH_PROBE in the ConfigMap"),
        ({"AGENT_INACTIVITY_TIMEOUT_MS": "-5"}, "AGENT_INACTIVITY_TIMEOUT_MS"),
        ({"AGENT_INACTIVITY_TIMEOUT_MS": "999999"}, "must not be larger than"),
        ({"DAYTONA_API_KEY": "dtn-other-value"}, "belongs into a Secret"),
        ({"DAYTONA_API_KEY_FILE": "/etc/x"}, "belongs into a Secret"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_without_its_value(
    stored: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(KEY, stored)
    assert said in str(caught.value)
    assert "dtn-" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_secret_file_counts_as_not_set_and_says_so(tmp_path: Path) -> None:  # R108
    with pytest.raises(SettingsError, match=r"not set .DAYTONA_API_KEY_FILE names a file that"):
        load({"DAYTONA_API_KEY_FILE": str(tmp_path / "none")})


def test_a_rotated_secret_is_seen_by_the_next_load(tmp_path: Path) -> None:
    file = tmp_path / "key"
    environment = {"DAYTONA_API_KEY_FILE": str(file)}
    file.write_text("first\n")
    before = load(environment)
    file.write_text("second\n")
    after = load(environment)
    assert before.settings.secrets() == ("first",)
    assert after.settings.secrets() == ("second",)
    assert after.settings != before.settings
    assert after.origins["DAYTONA_API_KEY"] is Origin.FILE


def test_levels_of_single_modules_are_read() -> None:
    loaded = load(KEY, {"ISSUESANDBOX_LOG_LEVELS": "kopf=INFO, issuesandbox.engine=DEBUG"})
    assert loaded.settings.log_levels == {"kopf": "INFO", "issuesandbox.engine": "DEBUG"}


def test_every_flag_takes_effect_without_a_restart() -> None:  # R106
    assert all(is_live(names()[flag.value]) for flag in Flag)
    assert not is_live("http_port")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ISSUESANDBOX_TIMINGS", '{"fleet_tick": "-5s"}', "fleet_tick must be a duration"),
        ("ISSUESANDBOX_TIMINGS", '{"fleet_tick": "0s"}', "fleet_tick must be longer"),
        ("ISSUESANDBOX_TIMINGS", '{"fleet_tick": 5}', "a JSON object of texts"),
        ("ISSUESANDBOX_TIMINGS", "nonsense", "a JSON object of texts"),
        ("ISSUESANDBOX_TIMINGS", '{"lease_hold": "1h"}', "lease_retry must be below lease_hold"),
        ("DAYTONA_API_URL", "https://me:planted-password@host/api", "must not hold credentials"),
        ("ISSUESANDBOX_WATCH_NAMESPACES", "team_a", "cannot be the name of a namespace"),
        ("AGENT_MAX_WAIT_TIME_MS", "-1", "greater than or equal to 1000"),
        ("ISSUESANDBOX_CLEANUP_ON_FAILURE", "Keep", "one of Delete, Stop, Archive, Retain"),
        ("ISSUESANDBOX_CLEANUP_DELAY", "-5m", "must be a duration"),
        ("ISSUESANDBOX_CLEANUP_RETENTION", "tomorrow", "must be a duration"),
        ("ISSUESANDBOX_CLEANUP_WINDOW", "at night", "must be a JSON object such as"),
        ("ISSUESANDBOX_CLEANUP_WINDOW", '{"start": "22:00"}', "end: Field required"),
        (
            "ISSUESANDBOX_CLEANUP_WINDOW",
            '{"start": "22", "end": "23:00"}',
            "start: String should have at least 5",
        ),
        ("ISSUESANDBOX_CLEANUP_WINDOW", '{"start": "22:00", "end": "22:00"}', "must differ"),
        ("ISSUESANDBOX_RECOVERY_MAX_ATTEMPTS", "0", "greater than or equal to 1"),
        ("ISSUESANDBOX_RECOVERY_MAX_ATTEMPTS", "11", "less than or equal to 10"),
        ("ISSUESANDBOX_RECOVERY_SAVE_WORK", "disk", "one of Branch, Patch, Off"),
        ("ISSUESANDBOX_SANDBOX_AUTO_ARCHIVE", "721h", "at most 720h"),
        ("ISSUESANDBOX_SANDBOX_AUTO_DELETE", "soon", "must be a duration"),
        ("ISSUESANDBOX_SANDBOX_TTL", "1y", "must be a duration"),
    ],
)
@pytest.mark.parametrize("where", ["environment", "ConfigMap"])
def test_a_wrong_value_is_named_with_its_setting_and_its_place(
    name: str, value: str, says: str, where: str
) -> None:
    given = {"DAYTONA_API_KEY": "dtn_key", **({name: value} if where == "environment" else {})}
    with pytest.raises(SettingsError) as caught:
        load_settings(given, {} if where == "environment" else {name: value})
    text = str(caught.value)
    assert name in text
    assert says in text
    assert where in text
    assert "planted-password" not in text


def test_a_misspelt_variable_is_told_and_what_kubernetes_sets_is_not() -> None:
    lines = misspelt(
        {
            "ENABLE_HEALTH_PROBES": "false",
            "ISSUESANDBOX_OPERATOR_SERVICE_HOST": "10.0.0.1",
            "ISSUESANDBOX_MAX_SANDBOXES": "3",
            "PATH": "/bin",
        }
    )
    assert lines == [
        "ENABLE_HEALTH_PROBES in the environment is no setting; did you mean ENABLE_HEALTH_PROBE?"
    ]
