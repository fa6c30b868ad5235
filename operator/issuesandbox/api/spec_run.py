"""What the agent is asked to do, within which limits, and where its work goes.

Knows nothing of sandboxes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from issuesandbox.api.constraints import Matches, MaxBytes, rule, rules
from issuesandbox.api.durations import Duration, in_order, within
from issuesandbox.api.model import ApiModel, SpecModel
from issuesandbox.api.spec_agent import Agent
from issuesandbox.api.spec_common import GitRef

Trigger = Annotated[
    str,
    StringConstraints(min_length=1, max_length=63),
    Matches(
        r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?",
        "must be 1 to 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or "
        "digit: any new value starts a new run",
    ),
]


class InactivitySource(StrEnum):
    """What counts as a sign of life of the agent."""

    OUTPUT = "Output"
    OUTPUT_OR_CHILD = "OutputOrChild"


class OnNewTrigger(StrEnum):
    """What a new trigger does while a run is going on."""

    REPLACE = "Replace"
    QUEUE = "Queue"
    IGNORE = "Ignore"


class LimitFields(ApiModel):
    """How long a run may take; shared by the spec and by the effective values in the status."""

    inactivity: Duration | None = Field(
        default=None,
        description=(
            "The agent is ended after this time without a sign of life, such as `60s`. Default: "
            "the operator's setting (60s)."
        ),
    )
    agent: Duration | None = Field(
        default=None,
        description=(
            "The agent is ended after this time, such as `5m`, however busy it is. Default: the "
            "operator's setting (5m)."
        ),
    )
    run: Duration | None = Field(
        default=None,
        description=(
            "The whole run is ended after this time, such as `15m`, counted from Preparing and not "
            "from queueing. Default: the operator's setting (15m), or agent + 10m if longer."
        ),
    )
    inactivity_source: InactivitySource | None = Field(
        default=None,
        description=(
            "Sign of life: `Output` (any byte the agent prints) or `OutputOrChild` (also a busy "
            "child process, for long silent builds). Default: the operator's setting (Output)."
        ),
    )


class Limits(LimitFields):
    """Limits of a run; a change takes effect at once, counted from the stored start."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra=rules(
            within("inactivity", "1s", None, "inactivity must be at least 1s"),
            within("agent", "1s", None, "agent must be at least 1s"),
            within("run", "1s", None, "run must be at least 1s"),
            in_order("inactivity", "agent", "inactivity must not be longer than agent"),
            in_order("agent", "run", "agent must not be longer than run"),
            in_order("inactivity", "run", "inactivity must not be longer than run"),
        ),
    )


class Publish(SpecModel):
    """Where the work of a run goes."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.branch) || !has(self.base) || self.branch != self.base",
                "branch and base must differ: a pull request cannot go from a branch into itself",
            )
        )
    )

    enabled: bool = Field(
        default=True,
        description=(
            "Push the changes and open a pull request. false: the work stays in the sandbox and in "
            "the summary. Default: true."
        ),
    )
    branch: GitRef | None = Field(
        default=None,
        description="Branch to push. Default: `claude-fix-issue-{number}`.",
    )
    base: GitRef | None = Field(
        default=None,
        description=(
            "Branch the pull request goes into. Default: the repository's default branch."
        ),
    )
    draft: bool = Field(
        default=False, description="Open the pull request as a draft. Default: false."
    )


class Run(SpecModel):
    """One run of the agent; `{}` asks for one with all defaults."""

    trigger: Trigger | None = Field(
        default=None,
        description=(
            "Any new value starts a new run in the same sandbox, such as `2` after `1`. The "
            "webhook adapter derives it from what changed on GitHub."
        ),
    )
    prompt: Annotated[str, MaxBytes(16384)] | None = Field(
        default=None,
        description=(
            "Instructions for the agent beside the issue, at most 16 KiB. Changing it together "
            "with `trigger` is a follow-up to the run before."
        ),
    )
    prompt_template: Annotated[str, MaxBytes(8192)] | None = Field(
        default=None,
        description=(
            "Replaces the built-in prompt, at most 8 KiB. `{number}`, `{title}`, `{body}`, "
            "`{labels}`, `{author}` and `{prompt}` are filled in."
        ),
    )
    setup: tuple[Annotated[str, MaxBytes(1024)], ...] | None = Field(
        default=None,
        max_length=8,
        description=(
            "Shell commands run one by one in the clone before the agent starts, such as `npm ci`. "
            "The first that fails ends the run."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    agent: Agent | None = Field(
        default=None, description="The coding agent. Default: profile claude."
    )
    limits: Limits | None = Field(
        default=None,
        description=(
            "How long the run may take. A change takes effect at once, counted from the stored "
            "start."
        ),
    )
    on_new_trigger: OnNewTrigger = Field(
        default=OnNewTrigger.REPLACE,
        description=(
            "What a new trigger does during a run: `Replace` (cancel, then start anew), `Queue` "
            "(start after it) or `Ignore`. Default: Replace."
        ),
    )
    keep_alive: bool = Field(
        default=False,
        description=(
            "Keep the sandbox running after a successful run for follow-ups, within the operator's "
            "idle limits (30m). Default: false."
        ),
    )
    resume_session: bool = Field(
        default=True,
        description=(
            "Continue the agent's session in the next run if the sandbox's disk survived. Default: "
            "true."
        ),
    )
    publish: Publish | None = Field(
        default=None, description="Where the work goes. Default: a branch and a pull request."
    )
