"""Every setting of the operator: its name, its default and its meaning.

Knows nothing of where a value comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    model_validator,
)

from issuesandbox.domain.flags import Flag, Flags
from issuesandbox.domain.key_formats import KeyKind
from issuesandbox.domain.timings import Timings
from issuesandbox.entry.setting_defaults import LIVE, ResourceDefaults
from issuesandbox.entry.setting_texts import (
    LEVELS,
    address,
    check_private_key,
    globs_by_namespace,
    levels_by_module,
    namespaces,
    percentage,
    timings_value,
    well_formed,
)

Share = Annotated[int, BeforeValidator(percentage), Field(ge=0, le=100)]


class Settings(ResourceDefaults):
    """What one operator process needs to know; `live` ones may change while it runs."""

    daytona_api_key: Annotated[SecretStr, AfterValidator(well_formed(KeyKind.DAYTONA))] = Field(
        alias="DAYTONA_API_KEY",
        min_length=1,
        description="Key of the Daytona organisation.",
        json_schema_extra=LIVE,
    )
    daytona_api_url: Annotated[str, AfterValidator(address)] = Field(
        "https://app.daytona.io/api",
        alias="DAYTONA_API_URL",
        pattern="^https?://",
        description="Address of Daytona.",
    )
    daytona_target: str | None = Field(
        None,
        alias="DAYTONA_TARGET",
        description="Target of sandboxes whose resource names none. Default: Daytona's.",
        json_schema_extra=LIVE,
    )
    daytona_snapshot: str | None = Field(
        None,
        alias="DAYTONA_SNAPSHOT",
        description="Snapshot of sandboxes whose resource names none. Default: Daytona's.",
        json_schema_extra=LIVE,
    )
    github_api_url: Annotated[str, AfterValidator(address)] = Field(
        "https://api.github.com",
        alias="GITHUB_API_URL",
        pattern="^https?://",
        description="Address of GitHub's API, also of an Enterprise server.",
    )
    github_app_id: str | None = Field(
        None,
        alias="GITHUB_APP_ID",
        description="Id of the GitHub App that the operator acts as.",
        json_schema_extra=LIVE,
    )
    github_app_private_key: Annotated[
        SecretStr | None, AfterValidator(well_formed(KeyKind.PRIVATE))
    ] = Field(
        None,
        alias="GITHUB_APP_PRIVATE_KEY",
        description="Private key of the App, in PEM format.",
        json_schema_extra=LIVE,
    )
    github_token: Annotated[SecretStr | None, AfterValidator(well_formed(KeyKind.GITHUB))] = Field(
        None,
        alias="GITHUB_TOKEN",
        description="A token instead of an App. It never enters a sandbox.",
        json_schema_extra=LIVE,
    )
    github_read_token: Annotated[SecretStr | None, AfterValidator(well_formed(KeyKind.GITHUB))] = (
        Field(
            None,
            alias="GITHUB_READ_TOKEN",
            description=(
                "Beside `GITHUB_TOKEN`: a token that may only read, with which sandboxes clone. "
                "Without it only public repositories can be cloned; an App needs none."
            ),
            json_schema_extra=LIVE,
        )
    )
    agent_inactivity_ms: int = Field(
        60_000,
        alias="AGENT_INACTIVITY_TIMEOUT_MS",
        ge=1000,
        description="An agent that is silent for so many milliseconds is ended.",
        json_schema_extra=LIVE,
    )
    agent_max_wait_ms: int = Field(
        300_000,
        alias="AGENT_MAX_WAIT_TIME_MS",
        ge=1000,
        description="An agent that runs for so many milliseconds is ended.",
        json_schema_extra=LIVE,
    )
    enable_db_backed_stop: Share = Field(
        100,
        alias=Flag.DB_BACKED_STOP.value,
        description="Stop from the stored state, by any replica; `true`, `false` or `10%`.",
        json_schema_extra=LIVE,
    )
    enable_cancellation_checks: Share = Field(
        100,
        alias=Flag.CANCELLATION_CHECKS.value,
        description="Look for a stop at every tick of a run; as above.",
        json_schema_extra=LIVE,
    )
    enable_health_probe: Share = Field(
        100,
        alias=Flag.HEALTH_PROBE.value,
        description="Probe a sandbox before it is used again; as above.",
        json_schema_extra=LIVE,
    )
    enable_inactivity_timeout: Share = Field(
        100,
        alias=Flag.INACTIVITY_TIMEOUT.value,
        description="End an agent that shows no sign of life; as above.",
        json_schema_extra=LIVE,
    )
    enable_authoritative_timeout: Share = Field(
        100,
        alias=Flag.AUTHORITATIVE_TIMEOUT.value,
        description="Stop the sandbox of a run that is out of time; as above.",
        json_schema_extra=LIVE,
    )
    installation: str | None = Field(
        None,
        alias="ISSUESANDBOX_INSTALLATION",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description=(
            "Tells installations in one Daytona organisation apart. Default: the uid of the "
            "operator's namespace."
        ),
    )
    watch_namespaces: Annotated[tuple[str, ...], BeforeValidator(namespaces)] = Field(
        (),
        alias="ISSUESANDBOX_WATCH_NAMESPACES",
        description="Namespaces to look after, comma-separated. Default: all.",
    )
    max_sandboxes: int = Field(
        20,
        alias="ISSUESANDBOX_MAX_SANDBOXES",
        ge=1,
        description="Sandboxes at once; what exceeds them waits in a fair queue.",
        json_schema_extra=LIVE,
    )
    max_per_repository: int = Field(
        5,
        alias="ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY",
        ge=1,
        description="Sandboxes at once for one repository.",
        json_schema_extra=LIVE,
    )
    max_new_runs: int = Field(
        10,
        alias="ISSUESANDBOX_MAX_NEW_RUNS_PER_MINUTE",
        ge=1,
        description="New runs a minute for one author in one repository.",
        json_schema_extra=LIVE,
    )
    allowed_repositories: Annotated[
        dict[str, tuple[str, ...]] | None, BeforeValidator(globs_by_namespace)
    ] = Field(
        None,
        alias="ISSUESANDBOX_ALLOWED_REPOSITORIES",
        description="JSON object: namespace to list of `owner/name` globs. Default: all.",
        json_schema_extra=LIVE,
    )
    shards: int = Field(
        1,
        alias="ISSUESANDBOX_SHARDS",
        ge=1,
        le=64,
        description="Above 1, several replicas act at once, each for a share of repositories.",
    )
    state_events: bool = Field(
        True,
        alias="ISSUESANDBOX_STATE_EVENTS",
        description="Listen to Daytona's push feed; without it changes show at the next tick.",
    )
    http_host: str = Field(
        "0.0.0.0",  # noqa: S104 - a pod's own
        alias="ISSUESANDBOX_HTTP_HOST",
        description="Address of `/healthz`, `/readyz` and `/metrics`.",
    )
    http_port: int = Field(
        8080, alias="ISSUESANDBOX_HTTP_PORT", ge=0, le=65535, description="Their port."
    )
    log_format: str = Field(
        "json",
        alias="ISSUESANDBOX_LOG_FORMAT",
        pattern="^(json|console)$",
        description="`json` or `console`.",
    )
    log_level: str = Field(
        "INFO",
        alias="ISSUESANDBOX_LOG_LEVEL",
        pattern=f"^({LEVELS})$",
        description="`DEBUG`, `INFO`, `WARNING` or `ERROR`.",
        json_schema_extra=LIVE,
    )
    log_levels: Annotated[dict[str, str], BeforeValidator(levels_by_module)] = Field(
        {},
        alias="ISSUESANDBOX_LOG_LEVELS",
        description="Other levels for single modules: `issuesandbox.engine.fleet=DEBUG,…`.",
        json_schema_extra=LIVE,
    )
    timings: Annotated[Timings, BeforeValidator(timings_value)] = Field(
        Timings(),
        alias="ISSUESANDBOX_TIMINGS",
        description='JSON object of durations, such as `{"fleet_tick": "30s"}`; see below.',
    )

    @model_validator(mode="after")
    def _limits_in_order(self) -> Settings:
        if self.agent_inactivity_ms > self.agent_max_wait_ms:
            raise ValueError(
                "AGENT_INACTIVITY_TIMEOUT_MS must not be larger than AGENT_MAX_WAIT_TIME_MS"
            )
        return self

    @model_validator(mode="after")
    def _app_is_whole(self) -> Settings:
        if (self.github_app_id is None) != (self.github_app_private_key is None):
            raise ValueError("GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY belong together")
        if self.github_app_private_key is not None:
            check_private_key(self.github_app_private_key.get_secret_value())
        return self

    @property
    def flags(self) -> Flags:
        """Return for which issues each feature flag is on."""
        return Flags({flag: getattr(self, flag.value.lower()) for flag in Flag})

    def identity(self) -> tuple[str | None, tuple[str, ...]]:
        """Return whom the operator acts as: whatever of it changes, every client must know."""
        return self.github_app_id, self.secrets()

    def secrets(self) -> tuple[str, ...]:
        """Return every secret value, for those who must hide them."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return tuple(each.get_secret_value() for each in values if isinstance(each, SecretStr))


def names() -> Mapping[str, str]:
    """Return the field of each setting by the name people write; defaults of resources last."""
    known = Settings.model_fields
    ordered = sorted(known, key=lambda name: name in ResourceDefaults.model_fields)
    return {str(known[name].alias): name for name in ordered}


def is_live(name: str) -> bool:
    """Tell whether a setting, by its field, takes effect without a restart."""
    return Settings.model_fields[name].json_schema_extra == LIVE
