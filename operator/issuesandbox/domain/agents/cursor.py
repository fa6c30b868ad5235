"""Cursor's command line agent, run headless, as its documentation describes it.

It takes its prompt as an argument and chooses the id of a session itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from issuesandbox.domain.agents.launch import Launch, LaunchOrder, answers_version, program_of
from issuesandbox.domain.prompt import sentence


def launch(order: LaunchOrder) -> Launch:
    """Return how `cursor-agent` is started for one run."""
    program = program_of(order.agent, ("cursor-agent",))
    return Launch(
        argv=(*program, *_flags(order), *(order.agent.args or ()), "--", sentence(order.paths)),
        stdin_path="/dev/null",
        check_command=answers_version(program),
    )


def _flags(order: LaunchOrder) -> Iterator[str]:
    yield from ("-p", "--output-format", "stream-json", "--stream-partial-output", "--force")
    if order.agent.trust_repository_settings:
        yield "--approve-mcps"
    if order.agent.model is not None:
        yield from ("--model", order.agent.model)
    if order.resume:
        yield from ("--resume", order.session_id)
