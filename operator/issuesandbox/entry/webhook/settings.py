"""The webhook adapter's settings, from the environment, checked once at the start.

Every secret may also come from a file (`NAME_FILE`). An error names the variable and never shows
its value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from issuesandbox.adapters.github.app import AppKey
from issuesandbox.adapters.github.connection import PUBLIC_GITHUB
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.api.durations import Duration
from issuesandbox.api.names import CURSOR_MAP, POLICY_MAP
from issuesandbox.domain.key_formats import KeyKind
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.webhook.signature import SHORTEST_SECRET
from issuesandbox.entry.setting_texts import LEVELS, address, namespaces, timings_value, well_formed
from issuesandbox.entry.settings import SettingsError

_SECRETS = ("GITHUB_WEBHOOK_SECRET", "GITHUB_APP_PRIVATE_KEY", "GITHUB_TOKEN")


def _duration(value: object) -> object:
    return Duration(value) if isinstance(value, str) else value


class WebhookSettings(BaseModel):
    """What one adapter process needs to know before it can start."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    webhook_secret: SecretStr = Field(
        alias="GITHUB_WEBHOOK_SECRET",
        description="Secret of the webhook; several, separated by commas, while it is changed.",
    )
    github_api_url: Annotated[str, AfterValidator(address)] = Field(
        PUBLIC_GITHUB, alias="GITHUB_API_URL", pattern="^https?://"
    )
    github_app_id: str | None = Field(None, alias="GITHUB_APP_ID")
    github_app_private_key: Annotated[
        SecretStr | None, AfterValidator(well_formed(KeyKind.PRIVATE))
    ] = Field(None, alias="GITHUB_APP_PRIVATE_KEY")
    github_token: Annotated[SecretStr | None, AfterValidator(well_formed(KeyKind.GITHUB))] = Field(
        None, alias="GITHUB_TOKEN"
    )
    watch_namespaces: Annotated[tuple[str, ...], BeforeValidator(namespaces)] = Field(
        (), alias="ISSUESANDBOX_WATCH_NAMESPACES"
    )
    namespace: str | None = Field(
        None,
        alias="ISSUESANDBOX_WEBHOOK_NAMESPACE",
        description="Where resources are made if the policy does not say. Default: our own.",
    )
    policy: str = Field(POLICY_MAP, alias="ISSUESANDBOX_WEBHOOK_POLICY")
    cursor: str = Field(CURSOR_MAP, alias="ISSUESANDBOX_WEBHOOK_CURSOR")
    naming: Literal["Number", "GlobalId"] = Field("Number", alias="ISSUESANDBOX_NAMING")
    catch_up_every: Annotated[timedelta, BeforeValidator(_duration)] = Field(
        timedelta(minutes=10), alias="ISSUESANDBOX_CATCH_UP_EVERY"
    )
    drain: Annotated[timedelta, BeforeValidator(_duration)] = Field(
        timedelta(seconds=3),
        alias="ISSUESANDBOX_WEBHOOK_DRAIN",
        description="How long deliveries are still taken after the signal to end.",
    )
    http_host: str = Field("0.0.0.0", alias="ISSUESANDBOX_HTTP_HOST")  # noqa: S104 - a pod's own
    http_port: int = Field(8080, alias="ISSUESANDBOX_HTTP_PORT", ge=0, le=65535)
    log_format: str = Field("json", alias="ISSUESANDBOX_LOG_FORMAT", pattern="^(json|console)$")
    log_level: str = Field("INFO", alias="ISSUESANDBOX_LOG_LEVEL", pattern=f"^({LEVELS})$")
    timings: Annotated[Timings, BeforeValidator(timings_value)] = Field(
        Timings(), alias="ISSUESANDBOX_TIMINGS"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> WebhookSettings:
        if not self.webhook_secrets:
            raise ValueError("GITHUB_WEBHOOK_SECRET is empty")
        if any(len(each) < SHORTEST_SECRET for each in self.webhook_secrets):
            raise ValueError(
                "GITHUB_WEBHOOK_SECRET, or one of its parts between commas, has fewer than "
                f"{SHORTEST_SECRET} characters: make one with `openssl rand -hex 32`"
            )
        if (self.github_app_id is None) != (self.github_app_private_key is None):
            raise ValueError("GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY belong together")
        if self.github_app_id is None and self.github_token is None:
            raise ValueError(
                "neither GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY nor GITHUB_TOKEN is set"
            )
        return self

    @property
    def webhook_secrets(self) -> tuple[bytes, ...]:
        """Return every secret that a delivery may be signed with."""
        given = self.webhook_secret.get_secret_value().split(",")
        return tuple(each.strip().encode() for each in given if each.strip())

    @property
    def identity(self) -> AppKey | PlainToken:
        """Return as whom we talk to GitHub."""
        if self.github_app_id is not None and self.github_app_private_key is not None:
            return AppKey(self.github_app_id, self.github_app_private_key.get_secret_value())
        assert self.github_token is not None
        return PlainToken(self.github_token.get_secret_value())

    def secrets(self) -> tuple[str, ...]:
        """Return every secret value, for those who must hide them."""
        given = (self.github_app_private_key, self.github_token)
        known = tuple(each.get_secret_value() for each in given if each is not None)
        return known + tuple(each.decode() for each in self.webhook_secrets)


def load_webhook_settings(environment: Mapping[str, str] | None = None) -> WebhookSettings:
    """Return the settings of this process, or say in one line what is wrong."""
    given = dict(os.environ if environment is None else environment)
    for name in _SECRETS:
        source = f"{name}_FILE"
        if given.get(source) and not given.get(name):
            given[name] = _read(source, given[source])
    try:
        return WebhookSettings.model_validate({name: each for name, each in given.items() if each})
    except ValidationError as error:
        raise SettingsError(_in_words(error)) from None


def _read(name: str, path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except FileNotFoundError:
        return ""  # so can a Secret be mounted that has some keys only
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsError(f"{name} names a file that cannot be read: {why}") from None


def _in_words(error: ValidationError) -> str:
    problems = []
    for each in error.errors(include_input=False, include_url=False, include_context=False):
        text = each["msg"].removeprefix("Value error, ")
        name = str(each["loc"][0]) if each["loc"] else ""
        missing = each["type"] == "missing"
        problems.append(f"{name} is not set" if missing else f"{name}: {text}" if name else text)
    return f"{'; '.join(problems)}. Set it in the webhook adapter's environment."
