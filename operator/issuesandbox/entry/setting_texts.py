"""How the text of a setting becomes its value; anything but text is passed on as it is.

What is wrong is raised as a ValueError that says how it should look. Knows no setting.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from functools import lru_cache

import msgspec
from pydantic import SecretStr, ValidationError

from issuesandbox.api.durations import Duration
from issuesandbox.api.spec_cleanup import Window
from issuesandbox.api.spec_sandbox import LONGEST_ARCHIVE
from issuesandbox.domain.flags import parse_share
from issuesandbox.domain.key_formats import KeyKind, flaw
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import CallError

LEVELS = "DEBUG|INFO|WARNING|ERROR"
# Of these, none at all makes sense; any other would turn a wait into a storm.
_MAY_BE_ZERO = frozenset({"trigger_debounce", "event_gap", "rank_refresh", "work_hold"})
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def name_list(value: object) -> object:
    """Return what a comma-separated text lists."""
    return (
        tuple(filter(None, (each.strip() for each in value.split(","))))
        if isinstance(value, str)
        else value
    )


def namespaces(value: object) -> object:
    """Return the namespaces that a comma-separated text lists."""
    listed = name_list(value)
    if isinstance(listed, tuple):
        for each in listed:
            if not _NAMESPACE.fullmatch(each):
                raise ValueError(f"{each!r} cannot be the name of a namespace")
    return listed


def levels_by_module(value: object) -> object:
    """Return the levels that a text such as `issuesandbox.engine=DEBUG` sets."""
    if not isinstance(value, str):
        return value
    pairs = [each.partition("=") for each in name_list(value)]  # type: ignore[attr-defined]
    for module, _, level in pairs:
        if not module or level not in LEVELS.split("|"):
            raise ValueError(f"must look like issuesandbox.engine.fleet=DEBUG; levels: {LEVELS}")
    return {module: level for module, _, level in pairs}


def percentage(value: object) -> object:
    """Return for which share of issues a flag is on."""
    return parse_share(value) if isinstance(value, str) else value


def globs_by_namespace(value: object) -> object:
    """Return the lists by namespace that a text says in JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value, type=dict[str, tuple[str, ...]])
    except (msgspec.MsgspecError, RecursionError):
        text = 'must be a JSON object such as {"team-a": ["octocat/*"]}'
        raise ValueError(text) from None


def choice_of(kind: type[StrEnum]) -> Callable[[object], object]:
    """Return a reader of one of a few words; the words are named where it is none of them."""

    def read(value: object) -> object:
        if not isinstance(value, str) or value not in list(kind):
            raise ValueError(f"must be one of {', '.join(kind)}")
        return kind(value)

    return read


def duration(value: object) -> object:
    """Return the duration that a text such as `10m` means."""
    return Duration(value) if isinstance(value, str) else value


def archivable(value: Duration) -> Duration:
    """Return a duration that Daytona takes for its archiving."""
    if value > Duration(LONGEST_ARCHIVE):
        raise ValueError(f"must be at most {LONGEST_ARCHIVE}, Daytona's longest interval")
    return value


def window(value: object) -> object:
    """Return the window that a text says in JSON."""
    if not isinstance(value, str):
        return value
    try:
        found = Window.model_validate_json(value)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = f"{first['loc'][0]}: " if first["loc"] else ""
        text = 'must be a JSON object such as {"start": "22:00", "end": "06:00", "days": ["Sat"]}'
        raise ValueError(f"{text}; {where}{first['msg'].removeprefix('Value error, ')}") from None
    if found.start == found.end:
        raise ValueError("start and end must differ")
    return found


def timings_value(value: object) -> object:
    """Return the timings that a JSON object of durations asks for."""
    if not isinstance(value, str):
        return value
    known = {each.name for each in fields(Timings)}
    given = _durations(value)
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ValueError(f"unknown timing {unknown[0]}; known are {', '.join(sorted(known))}")
    return Timings(**{name: _duration(name, text) for name, text in given.items()})


def _durations(text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        raise ValueError('must be a JSON object of texts, such as {"fleet_tick": "30s"}') from None


def _duration(name: str, text: str) -> Duration:
    try:
        found = Duration(text)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    if not found and name not in _MAY_BE_ZERO:
        raise ValueError(f"{name} must be longer than nothing")
    return found


def address(value: str) -> str:
    """Return an address of a service, unless it holds what must not be shown."""
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise ValueError("must not hold credentials: they belong into a Secret")
    return value


def well_formed(kind: KeyKind) -> Callable[[SecretStr | None], SecretStr | None]:
    """Return a check that a secret can be a key of this kind; what is wrong never shows it."""

    def check(value: SecretStr | None) -> SecretStr | None:
        wrong = flaw(kind, value.get_secret_value()) if value is not None else None
        if wrong is not None:
            raise ValueError(wrong)
        return value

    return check


@lru_cache(maxsize=2)
def check_private_key(text: str) -> None:
    """Raise unless the App's private key can be used; it is read often and seldom changes."""
    from issuesandbox.adapters.github.app import AppKey

    try:
        AppKey("0", text)
    except CallError:
        raise ValueError("GITHUB_APP_PRIVATE_KEY is not an RSA key in PEM format") from None
