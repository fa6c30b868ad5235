"""Preparing: a sandbox that answers, the tools, a fresh clone, setup, and the issue as a file.

Safe to repeat: a clone goes into a folder of its own and takes its place only when it is whole,
and never once the run's agent was started.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from datetime import timedelta
from uuid import NAMESPACE_URL, uuid5

from issuesandbox.api.status_run import Outcome, Parent
from issuesandbox.domain import numbers
from issuesandbox.domain.agents.launch import Launch
from issuesandbox.domain.collection import SYSTEM_FIRST
from issuesandbox.domain.prompt import issue_text, sentence
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.runs.chapters import Ending, Preparation
from issuesandbox.domain.supervision import RunPaths, kill_command, quoted, supervisor_file
from issuesandbox.engine.runs.agents import hidden_values, launch_of, resumable
from issuesandbox.engine.runs.approach import Approach
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import ahead
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.probing import Health
from issuesandbox.engine.runs.setting_up import set_up
from issuesandbox.engine.runs.sources import COMMIT, Hopeless
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.toolbox import TOO_SLOW

_GIT = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false"
# A clone that is this old belongs to nobody any more.
_STALE_MINUTES = 30
_CLEAN_ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


async def prepare(
    assignment: Assignment, outside: Outside, approach: Approach
) -> Preparation | Ending:
    """Make the sandbox ready for the agent; an `Ending` if that can never work."""
    try:
        return await _prepare(assignment, outside, approach)
    except Hopeless as error:
        return error.ending


async def _prepare(assignment: Assignment, outside: Outside, approach: Approach) -> Preparation:
    # GitHub and the sandbox are asked side by side; what GitHub refuses is told first.
    scouted = await approach.scouted
    paths = await _checked_in(assignment, outside, await approach.health)
    session_id = await _session(assignment, outside, paths)
    asked, source = assignment.asked, scouted.source
    text = issue_text(scouted.facts, prompt=asked.prompt or "", template=asked.prompt_template)
    launch = launch_of(assignment, paths, session_id)
    files = {paths.issue: text.encode(), paths.prompt: sentence(paths).encode()}
    files |= {**launch.files, **supervisor_file(paths)}
    async with ahead(_check_agent(assignment, outside, launch)) as checked:
        commit = await _furnished(assignment, outside, paths, files, (approach.cloned, checked))
    return Preparation(
        parent=Parent(commit=commit, ref=source.checkout, branch_existed=source.branch_existed),
        branch=source.branch,
        session_id=session_id,
        prompt_hash=hashlib.sha256(text.encode()).hexdigest()[:16],
    )


async def _furnished(
    assignment: Assignment,
    outside: Outside,
    paths: RunPaths,
    files: Mapping[str, bytes],
    under_way: tuple[asyncio.Task[str], asyncio.Task[None]],
) -> str:
    """Move into the clone, set up and upload, with the check beside it; return the commit."""
    cloned, checked = under_way
    upload = outside.toolbox.upload
    async with ahead(_moved_in(assignment, outside, paths, cloned)) as moved_in:
        if not assignment.asked.setup:
            async with ahead(upload(assignment.sandbox_id, files)) as uploaded:
                await checked
                await uploaded
                return await moved_in
        await checked
        commit = await moved_in
    await set_up(assignment, outside, paths)
    # Only now, so that no command of the setup finds anything to change.
    await upload(assignment.sandbox_id, files)
    return commit


async def _checked_in(assignment: Assignment, outside: Outside, health: Health) -> RunPaths:
    """Make sure that the sandbox has git, and that nothing of an earlier run is left in it."""
    if not health.has_git:
        raise Hopeless("GitMissing", "The sandbox has no git: use a snapshot that has it.")
    await _end_the_last(assignment, outside, health.home)
    return RunPaths(health.home, assignment.run.id)


async def _end_the_last(assignment: Assignment, outside: Outside, home: str) -> None:
    """Kill what a run that was only marked as out of time left running in this sandbox."""
    last = assignment.status.history[0] if assignment.status.history else None
    if last is None or last.outcome is not Outcome.TIMED_OUT:
        return
    if last.sandbox_id == assignment.sandbox_id:
        paths = RunPaths(home, last.id)
        # An operator of another version may have begun it.
        await outside.toolbox.upload(assignment.sandbox_id, supervisor_file(paths))
        command = kill_command(paths)
        seconds = outside.timings.kill_timeout.total_seconds()
        await outside.toolbox.execute(assignment.sandbox_id, command, seconds=seconds)


async def _session(assignment: Assignment, outside: Outside, paths: RunPaths) -> str:
    """Return the agent's session: the last run's if it is still there, else one of our choice."""
    past = resumable(assignment)
    if past is not None:
        find = launch_of(assignment, paths, past).session_command
        seconds = outside.timings.toolbox_timeout.total_seconds()
        found = True
        if find is not None:
            done = await outside.toolbox.execute(assignment.sandbox_id, find, seconds=seconds)
            found = done.exit_code == 0
        outside.books.tally.count(numbers.RESUMES, numbers.OK if found else "lost")
        if found:
            return past
    # Derived from the run, so that a repeated step chooses the same.
    return str(uuid5(NAMESPACE_URL, f"issuesandbox:{assignment.run.id}"))


async def _check_agent(assignment: Assignment, outside: Outside, launch: Launch) -> None:
    timings, check, install = outside.timings, launch.check_command, launch.install_command

    async def succeeds(command: str, limit: timedelta) -> bool:
        seconds = limit.total_seconds()
        try:
            done = await outside.toolbox.execute(assignment.sandbox_id, command, seconds=seconds)
        except Unavailable as error:
            if error.code == TOO_SLOW:
                return False
            raise
        return done.exit_code == 0

    if await succeeds(check, timings.toolbox_timeout):
        return
    if install is not None:
        works = await succeeds(install, timings.install_timeout)
        works = works and await succeeds(check, timings.toolbox_timeout)
        outside.books.installed(assignment.sandbox_id, works=works)
        if works:
            return
    raise Hopeless(
        "CliMissing",
        f"The sandbox cannot run {launch.argv[0]}: use a snapshot that has the agent's program.",
    )


async def _moved_in(
    assignment: Assignment, outside: Outside, paths: RunPaths, cloned: asyncio.Task[str]
) -> str:
    """Put the clone in its place once it is there; return its commit."""
    fresh = await cloned
    outside.check_charge(assignment)
    done = await outside.toolbox.execute(
        assignment.sandbox_id,
        move_in(paths, fresh),
        seconds=outside.timings.toolbox_timeout.total_seconds(),
        env=_CLEAN_ENV,
    )
    commit = done.output.strip().rpartition("\n")[2]
    if done.exit_code != 0 or not COMMIT.fullmatch(commit):
        hide = Redactor(*await hidden_values(assignment, outside))
        said = hide.redact(done.output).strip()[-300:]
        raise Hopeless("CloneFailed", f"The clone cannot be used: {said}")
    return commit


def move_in(paths: RunPaths, fresh: str) -> str:
    """Return the command that puts a whole clone in its place, once for each run.

    What an earlier run left beside the tracked files, such as installed packages, stays; its
    `.git` does not, since the agent could write into it. Two operators may prepare the same run:
    the second one takes what the first one put there. The run waits for it, so a program is only
    started where there is something for it to do.
    """
    work, new, fence = (quoted(each) for each in (paths.work, fresh, paths.run))
    inputs, done, lock = (quoted(f"{paths.inputs}{each}") for each in ("", "/parent", "/moving"))
    others = f"{quoted(paths.home)}/work.*"
    old = f"{quoted(paths.home)} -maxdepth 1 -name 'work.*' -mmin +{_STALE_MINUTES}"
    return (
        # The agent of an earlier run may have put programs of its own into a folder of the PATH.
        f"{SYSTEM_FIRST}; set -e; [ ! -e {fence} ]; "
        f"[ -d {inputs} ] || mkdir -p {inputs}; "
        # The lock names its holder, so that one who died does not hold it.
        f"until ln -s $$ {lock} 2>/dev/null; do "
        f'kill -0 "$(readlink {lock})" 2>/dev/null || rm -f {lock}; sleep 1; done; '
        f"trap {quoted(f'rm -f {lock}')} EXIT; "
        f"if [ ! -s {done} ]; then "
        # An agent may have left a link there: git would clean whatever it points to.
        f"if [ -L {work} ] || {{ [ -e {work} ] && [ ! -d {work} ]; }}; then rm -f {work}; fi; "
        f"if [ -d {work} ] && rm -rf {work}/.git && mv {new}/.git {work}/.git && "
        f"{_GIT} -C {work} reset -q --hard && {_GIT} -C {work} clean -fdq; then :; else "
        # Or files that nobody can remove: the whole tree is put aside then.
        f"if [ -d {work} ]; then [ -d {new}/.git ] || mv {work}/.git {new}/.git; "
        f"mv {work} {new}.old; fi; mv {new} {work}; fi; "
        # Where git keeps it in a fresh clone, else git is asked.
        f"read -r REPLY <{work}/.git/HEAD; "
        f'case "$REPLY" in ref:*) read -r REPLY <{work}/.git/"${{REPLY#ref: }}" || REPLY=;; esac; '
        f'[ ${{#REPLY}} = 40 ] || REPLY="$({_GIT} -C {work} rev-parse HEAD)"; '
        # In one piece, or not at all.
        f'echo "$REPLY" >{done}; fi; '
        f"[ ! -e {new} ] || rm -rf {new}; "
        f'for REPLY in {others}; do [ ! -e "$REPLY" ] || find {old} -exec rm -rf {{}} + '
        f"2>/dev/null || :; break; done; "
        f'read -r REPLY <{done}; echo "$REPLY"'
    )
