"""Which events on GitHub make a resource run: the policy, its defaults and how it is read.

The policy is one YAML document. `defaults` holds for every repository; an entry of `repositories`
changes it for those whose name matches. Knows nothing of where the document lies.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from issuesandbox.api.model import SpecModel
from issuesandbox.api.spec import Spec
from issuesandbox.api.spec_issue import Login
from issuesandbox.domain.repository_globs import matches
from issuesandbox.domain.webhook.issue import Standing


class PolicyError(ValueError):
    """The policy cannot be used."""


class Source(StrEnum):
    """What can start a run."""

    OPENED = "opened"
    EDITED = "edited"
    LABEL = "label"
    MENTION = "mention"
    ASSIGNEE = "assignee"
    COMMAND = "command"


PermissionName = Literal["read", "triage", "write", "maintain", "admin"]


def _switches(value: Any) -> Any:
    # YAML reads an unquoted `on` as true.
    if isinstance(value, dict) and True in value:
        value = {("on" if name is True else name): each for name, each in value.items()}
    return value


def _template(value: dict[str, Any]) -> dict[str, Any]:
    taken = {"issue", "desiredState"} & value.keys()
    run = value.get("run", {})
    if taken:
        raise ValueError(f"{sorted(taken)[0]} is filled in by the webhook adapter")
    if not isinstance(run, dict) or "trigger" in run:
        raise ValueError("run must be an object without `trigger`")
    try:
        Spec.model_validate({**value, "issue": {"repository": "owner/name", "number": 1}})
    except ValidationError as error:
        raise ValueError(_in_words(error)) from None
    return value


Glob = Annotated[str, Field(min_length=1, max_length=200)]
NamespaceName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


class Rules(SpecModel):
    """What holds for one repository."""

    on: frozenset[Source] = Field(
        default=frozenset({Source.OPENED, Source.EDITED, Source.LABEL, Source.COMMAND}),
        description="What starts a run.",
    )
    label: str = Field(default="agent", description="Label that asks for a run; removed: stop.")
    mention: str = Field(default="", description="Login whose `@mention` asks for a run.")
    assignees: tuple[Login, ...] = Field(
        default=(), description="Logins whose assignment asks for a run."
    )
    associations: frozenset[Standing] = Field(
        default=frozenset({Standing.OWNER, Standing.MEMBER, Standing.COLLABORATOR}),
        description="Who may start runs.",
    )
    minimum_permission: PermissionName | None = Field(
        default=None,
        description=(
            "Whoever has this permission in the repository may start runs as well; it is asked of "
            "GitHub. Where an event does not tell what somebody is, `write` is the default."
        ),
    )
    allowed_bots: frozenset[str] = Field(
        default=frozenset(), description="Bots that are listened to, by their exact login."
    )
    ignore_locked: bool = Field(default=True, description="Start nothing for a locked issue.")
    answer_unknown: bool = Field(
        default=True, description="Answer commands that nobody knows; false where other bots live."
    )
    namespace: NamespaceName | None = Field(default=None, description="Where resources are made.")
    template: Annotated[dict[str, Any], AfterValidator(_template)] = Field(
        default_factory=dict, description="`spec` of new resources."
    )

    def trusts(self, bot: str) -> bool:
        """Tell whether a bot is listened to."""
        return bot.lower() in {each.lower() for each in self.allowed_bots}


class Entry(SpecModel):
    """Rules for some repositories; what it leaves out is taken from the defaults."""

    match: Annotated[tuple[Glob, ...], Field(min_length=1)]
    rules: Annotated[dict[str, Any], BeforeValidator(_switches)] = Field(default_factory=dict)

    def matches(self, repository: str) -> bool:
        """Tell whether the rules are for a repository; a glob with `!` takes it out again."""
        wanted = [each for each in self.match if not each.startswith("!")]
        unwanted = [each[1:] for each in self.match if each.startswith("!")]
        return _any(wanted, repository) and not _any(unwanted, repository)


class _Document(SpecModel):
    defaults: Annotated[Rules, BeforeValidator(_switches)] = Field(default_factory=Rules)
    repositories: tuple[Entry, ...] = Field(
        default=(), description="The first entry that matches counts; without any, all do."
    )


class Policy:
    """The whole policy, ready to be asked."""

    def __init__(self, document: _Document | None = None) -> None:
        document = document or _Document()
        self._defaults = document.defaults
        self._entries = [(each, _merged(document.defaults, each)) for each in document.repositories]

    def rules_for(self, repository: str) -> Rules | None:
        """Return what holds for a repository, or None if it is not served."""
        if not self._entries:
            return self._defaults
        return next((rules for entry, rules in self._entries if entry.matches(repository)), None)


def read_policy(text: str) -> Policy:
    """Return the policy in a YAML text, or raise PolicyError with one line that tells why."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where is not None else ""
        raise PolicyError(f"the policy is not YAML{line}") from None
    try:
        return Policy(_Document.model_validate(document if document is not None else {}))
    except ValidationError as error:
        raise PolicyError(_in_words(error)) from None


def _merged(defaults: Rules, entry: Entry) -> Rules:
    given = defaults.model_dump(by_alias=True, exclude_unset=True)
    return Rules.model_validate({**given, **entry.rules})


def _any(globs: list[str], name: str) -> bool:
    return any(matches(each, name) for each in globs)


def _in_words(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(str(each) for each in first["loc"]) or "the policy"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"
