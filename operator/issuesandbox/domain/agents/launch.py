"""What it takes to start an agent, whichever it is. Knows no agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from issuesandbox.api.spec_agent import Agent
from issuesandbox.domain.supervision import Limits, RunPaths, quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """What is asked of a profile."""

    agent: Agent
    paths: RunPaths
    session_id: str
    resume: bool
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How one agent is started; `env` holds secrets and is never shown."""

    argv: tuple[str, ...]
    stdin_path: str
    check_command: str
    """Ends with 0 if the agent's program can be started in this sandbox."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_command: str | None = None
    """Worth one attempt where the check fails."""
    session_command: str | None = None
    """Ends with 0 if the session that is to be resumed is still on the sandbox's disk."""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """To be uploaded before the start, by absolute path."""


def program_of(agent: Agent, default: Sequence[str]) -> tuple[str, ...]:
    """Return the program with its leading arguments: the resource's, else the profile's."""
    return tuple(agent.command or default)


def answers_version(program: Sequence[str]) -> str:
    """Return a command that ends with 0 if the program tells its version."""
    return f"{' '.join(map(quoted, program))} --version </dev/null"
