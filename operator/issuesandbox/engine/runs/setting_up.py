"""The setup commands of a run: each is run once, whoever asks for it and however often.

The toolbox does not end a command when its caller goes away, so a repeated preparation, or another
replica's, would run it a second time beside the first.
"""

from __future__ import annotations

from issuesandbox.domain.collection import SYSTEM_FIRST
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.supervision import RunPaths, quoted
from issuesandbox.engine.runs.agents import hidden_values
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.sources import Hopeless

_SHOWN = 2000


async def set_up(assignment: Assignment, outside: Outside, paths: RunPaths) -> None:
    """Run what the resource asks for before its agent starts."""
    for number, command in enumerate(assignment.asked.setup or (), 1):
        outside.check_charge(assignment)
        # What a command started is gone after a restart of the sandbox, so all is done again.
        name = f"setup-{assignment.run.restarts}-{number}"
        done = await outside.toolbox.execute(
            assignment.sandbox_id,
            once(paths, name, command),
            seconds=assignment.limits.run.total_seconds(),
            cwd=paths.work,
        )
        if done.exit_code != 0:
            hide = Redactor(*await hidden_values(assignment, outside))
            raise Hopeless(
                "SetupFailed",
                f"spec.run.setup command {number} ended with code {done.exit_code}: "
                f"{hide.redact(done.output).strip()[-200:]}",
            )


def once(paths: RunPaths, name: str, command: str) -> str:
    """Return a line that runs a command, or waits for whoever runs it, and takes its exit code."""
    code, out, lock = (quoted(f"{paths.inputs}/{name}.{each}") for each in ("code", "out", "lock"))
    # An earlier run's agent may have left programs there; the command is to see its whole PATH.
    alone = f'PATH="$ISSUESANDBOX_PATH"; unset ISSUESANDBOX_PATH; eval {quoted(command)}'
    return (
        f'ISSUESANDBOX_PATH="$PATH"; {SYSTEM_FIRST}; '
        f"mkdir -p {quoted(paths.inputs)}; until [ -e {code} ] || ln -s $$ {lock} 2>/dev/null; do "
        # The lock names its holder, so that one who died does not hold it.
        f'kill -0 "$(readlink {lock})" 2>/dev/null || rm -f {lock}; sleep 1; done; '
        f"[ -e {code} ] || {{ ({alone}) >{out} 2>&1 </dev/null; "
        f"echo $? >{code}.new; mv {code}.new {code}; }}; "
        f'tail -c {_SHOWN} {out}; exit "$(cat {code})"'
    )
