"""Any program as an agent: it reads the fixed sentence from its standard input.

Its exit code alone is the verdict, unless it prints result lines as the known agents do.
"""

from __future__ import annotations

from issuesandbox.domain.agents.launch import Launch, LaunchOrder, program_of
from issuesandbox.domain.supervision import quoted


def launch(order: LaunchOrder) -> Launch:
    """Return how the resource's own program is started for one run."""
    paths = order.paths
    program = program_of(order.agent, ())
    if not program:
        raise ValueError("profile custom needs a command: the program to run and its arguments")
    return Launch(
        argv=(*program, *(order.agent.args or ())),
        env={
            "ISSUESANDBOX_ISSUE_FILE": paths.issue,
            "ISSUESANDBOX_SUMMARY_FILE": paths.summary,
            "ISSUESANDBOX_SESSION_ID": order.session_id,
            "ISSUESANDBOX_RESUME": "1" if order.resume else "0",
        },
        stdin_path=paths.prompt,
        check_command=f"command -v {quoted(program[0])} >/dev/null",
    )
