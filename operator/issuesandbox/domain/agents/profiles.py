"""The agents the operator knows, by the name a resource gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from issuesandbox.api.spec_agent import Agent, AgentProfile
from issuesandbox.domain.agents import claude, cursor, custom
from issuesandbox.domain.agents.launch import Launch, LaunchOrder
from issuesandbox.domain.supervision import Limits, RunPaths

_PROFILES: Mapping[AgentProfile, Callable[[LaunchOrder], Launch]] = {
    AgentProfile.CLAUDE: claude.launch,
    AgentProfile.CURSOR: cursor.launch,
    AgentProfile.CUSTOM: custom.launch,
}


def launch(
    agent: Agent,
    *,
    paths: RunPaths,
    session_id: str,
    resume: bool,
    limits: Limits,
    secrets: Mapping[str, str] | None = None,
) -> Launch:
    """Return how the agent is started; `secrets` are the keys of its Secrets.

    Variables the resource spells out win over those of Secrets, these over the profile's.
    """
    order = LaunchOrder(
        agent=agent, paths=paths, session_id=session_id, resume=resume, limits=limits
    )
    made = _PROFILES[agent.profile](order)
    given = {each.name: each.value for each in agent.env or ()}
    return replace(made, env={**made.env, **(secrets or {}), **given})
