"""Which coding agent runs and how it is started. Knows nothing of limits or publishing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from issuesandbox.api.constraints import Matches, MaxBytes, merged_by, rule, rules
from issuesandbox.api.model import SpecModel
from issuesandbox.api.spec_common import MAX_ENV, MAX_ENV_FROM, Argument, EnvList, EnvSources

# A leading '-' would be read as an option of the agent's command line.
ModelName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128),
    Matches(
        r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*",
        "must be the name of a model: letters, digits and . _ : / @ [ ] -, not starting with '-'",
    ),
]

Dollars = Annotated[
    str,
    StringConstraints(min_length=1, max_length=12),
    Matches(
        r"[0-9]{1,6}([.][0-9]{1,4})?",
        'must be an amount of US dollars in quotes, such as "2.50"',
    ),
]


class AgentProfile(StrEnum):
    """Agents the operator knows how to start, read and stop."""

    CLAUDE = "claude"
    CURSOR = "cursor"
    CUSTOM = "custom"


class Agent(SpecModel):
    """The coding agent and how it is started."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.profile != 'custom' || has(self.command)",
                "profile custom needs a command: the program to run and its arguments",
            ),
            rule(
                "self.profile == 'claude' || !has(self.maxBudgetUSD)",
                "maxBudgetUSD works with profile claude only",
            ),
        )
    )

    profile: AgentProfile = Field(
        default=AgentProfile.CLAUDE,
        description=(
            "Which agent runs: `claude`, `cursor`, or `custom` for any program given in `command`. "
            "Default: claude."
        ),
    )
    model: ModelName | None = Field(
        default=None, description="Model the agent uses. Default: the agent's own default."
    )
    command: tuple[Argument, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        description=(
            "Program and leading arguments, one item each; no shell reads them. Needed for profile "
            "`custom`; replaces the program of the other profiles."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    args: tuple[Argument, ...] | None = Field(
        default=None,
        max_length=24,
        description="Arguments added after those of the profile, one item each, 256 bytes at most.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    env: EnvList | None = Field(
        default=None,
        max_length=MAX_ENV,
        description="Environment variables of the agent's process alone.",
        json_schema_extra=merged_by("name"),
    )
    env_from: EnvSources | None = Field(
        default=None,
        max_length=MAX_ENV_FROM,
        description=(
            "Secrets whose keys become environment variables of the agent's process, later ones "
            "winning. Default: Secret `issuesandbox-agent` in the operator's namespace."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    max_turns: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="The run ends after this many turns of the agent. Default: no limit.",
    )
    max_budget_usd: Dollars | None = Field(
        default=None,
        alias="maxBudgetUSD",
        description=(
            "The agent stops when its own estimate of the cost exceeds this many US dollars, "
            'written in quotes: "2.50". Profile claude only. Default: no limit.'
        ),
    )
    system_prompt: Annotated[str, MaxBytes(8192)] | None = Field(
        default=None, description="Text added to the agent's system prompt, at most 8 KiB."
    )
    mcp_config: Annotated[str, MaxBytes(8192)] | None = Field(
        default=None,
        description=(
            "MCP servers for the agent as JSON text, at most 8 KiB. Default: none; servers that "
            "the repository brings along stay off."
        ),
    )
    trust_repository_settings: bool = Field(
        default=False,
        description=(
            "Let settings, hooks and MCP servers in the repository act. They can run any program "
            "and read the model key: only for repositories whose every author you trust. Default: "
            "false."
        ),
    )
