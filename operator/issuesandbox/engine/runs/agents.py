"""The agent of a run: how it is started, with which environment, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from issuesandbox.api.spec_agent import Agent
from issuesandbox.api.spec_run import InactivitySource
from issuesandbox.domain.agents.launch import Launch
from issuesandbox.domain.agents.profiles import launch
from issuesandbox.domain.key_formats import KeyKind, flaw
from issuesandbox.domain.redaction import Hidden, hidden
from issuesandbox.domain.supervision import Limits, RunPaths
from issuesandbox.engine.environment import variables
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.sources import USER_NAMES, Hopeless
from issuesandbox.ports.errors import NotFound

_MODEL_KEY = "ANTHROPIC_API_KEY"
_NO_SESSION = frozenset({"SessionNotFound", "SessionInUse"})
AGENT_SECRET = "issuesandbox-agent"  # noqa: S105 - the name of a Secret


def launch_of(
    assignment: Assignment,
    paths: RunPaths,
    session_id: str,
    secrets: Mapping[str, str] | None = None,
) -> Launch:
    """Return how the agent of a run is started."""
    return launch(
        agent_of(assignment),
        paths=paths,
        session_id=session_id,
        resume=session_id == resumable(assignment),
        limits=limits_of(assignment, assignment.run.started_at),
        secrets=secrets,
    )


def agent_of(assignment: Assignment) -> Agent:
    """Return the agent that the spec asks for."""
    return assignment.asked.agent or Agent()


def resumable(assignment: Assignment) -> str | None:
    """Return the session to resume: that of the last run that had one in this very sandbox."""
    if not assignment.asked.resume_session:
        return None
    for past in assignment.status.history:
        if past.sandbox_id == assignment.sandbox_id and past.session_id is not None:
            # Not every agent can be asked beforehand whether it still knows a session.
            return None if past.reason in _NO_SESSION else past.session_id
    return None


def limits_of(assignment: Assignment, now: datetime) -> Limits:
    """Return the limits as the supervisor takes them: they count from the agent's start."""
    limits, run, flags = assignment.limits, assignment.run, assignment.flags
    before = (run.agent_started_at or now) - run.started_at
    left, ends = max(0.0, (limits.run - before).total_seconds()), flags.authoritative_timeout
    return Limits(
        inactivity=limits.inactivity.total_seconds() if flags.inactivity_timeout else None,
        agent=limits.agent.total_seconds() if ends else None,
        run=left if ends else None,
        or_child=limits.source is InactivitySource.OUTPUT_OR_CHILD,
    )


async def environment_of(assignment: Assignment, outside: Outside) -> Mapping[str, str]:
    """Return the secrets of the agent's environment: its own, else the operator's default."""
    named = agent_of(assignment).env_from
    found: Mapping[str, str]
    try:
        if named:
            found = await variables(outside.ledgers, assignment.key.namespace, named)
        else:
            found = await outside.ledgers.secret(outside.namespace, AGENT_SECRET)
    except NotFound as error:
        if not named:
            return {}
        raise Hopeless("SecretNotFound", f"{error} for the agent.") from None
    wrong = flaw(KeyKind.ANTHROPIC, found.get(_MODEL_KEY, ""))
    if wrong is not None:
        raise Hopeless("AgentKeyMalformed", f"{_MODEL_KEY} in the Secret of the agent {wrong}.")
    return found


async def hidden_values(
    assignment: Assignment, outside: Outside, environment: Mapping[str, str] | None = None
) -> Hidden:
    """Return what nothing that comes out of the sandbox may show: the values of its run's Secrets.

    A Secret that was deleted during the run must not cost the run its end. `environment` is that
    of the agent, where it was read just now.
    """
    namespace, spec = assignment.key.namespace, assignment.resource.spec
    found: list[tuple[str, str]] = []
    for source in (spec.sandbox and spec.sandbox.env_from) or ():
        with suppress(NotFound):
            found += (await variables(outside.ledgers, namespace, (source,))).items()
    keys = spec.repository.credentials_secret_ref if spec.repository is not None else None
    if keys is not None:
        with suppress(NotFound):
            secret = await outside.ledgers.secret(namespace, keys.name)
            # A user's name may be any word, such as `oauth2`.
            found += (each for each in secret.items() if each[0] not in USER_NAMES)
    if environment is not None:
        return hidden([*found, *environment.items()])
    try:
        found += (await environment_of(assignment, outside)).items()
    except Hopeless:
        if assignment.run.agent_started_at is None:
            raise
    return hidden(found)
