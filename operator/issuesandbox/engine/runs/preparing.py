"""Preparing: a sandbox that answers, the tools, a fresh clone, setup, and the issue as a file.

Safe to repeat: a clone goes into a folder of its own and takes its place only when it is whole,
and never once the run's agent was started.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import NAMESPACE_URL, uuid4, uuid5

from issuesandbox.api.status_run import Outcome, Parent
from issuesandbox.domain import numbers
from issuesandbox.domain.agents.launch import Launch
from issuesandbox.domain.collection import SYSTEM_PATH
from issuesandbox.domain.prompt import issue_text, sentence
from issuesandbox.domain.runs.chapters import Ending, Preparation
from issuesandbox.domain.supervision import RunPaths, kill_command, quoted, supervisor_file
from issuesandbox.engine.runs.agents import launch_of, resumable
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import ahead
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.probing import probe, unprobed
from issuesandbox.engine.runs.scouting import Scouts
from issuesandbox.engine.runs.setting_up import set_up
from issuesandbox.engine.runs.sources import Hopeless, Source
from issuesandbox.engine.runs.warden import programs
from issuesandbox.ports.errors import Conflict, Denied, Invalid, NotFound, Unavailable
from issuesandbox.ports.toolbox import TOO_SLOW, Clone

_GIT = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false"
# A clone that is this old belongs to nobody any more.
_STALE_MINUTES = 30
_CLEAN_ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


async def prepare(
    assignment: Assignment, outside: Outside, scouts: Scouts, at_home: Callable[[str], None]
) -> Preparation | Ending:
    """Make the sandbox ready for the agent; an `Ending` if that can never work.

    `at_home` gets to know the sandbox's home directory.
    """
    try:
        return await _prepare(assignment, outside, scouts, at_home)
    except Hopeless as error:
        return error.ending


async def _prepare(
    assignment: Assignment, outside: Outside, scouts: Scouts, at_home: Callable[[str], None]
) -> Preparation:
    # GitHub and the sandbox are asked side by side; what GitHub refuses is told first.
    async with ahead(_checked_in(assignment, outside)) as checked_in:
        scouted = await scouts.report(assignment)
        paths, session_id = await checked_in
    at_home(paths.home)
    asked, source = assignment.asked, scouted.source
    text = issue_text(scouted.facts, prompt=asked.prompt or "", template=asked.prompt_template)
    launch = launch_of(assignment, paths, session_id)
    files = {paths.issue: text.encode(), paths.prompt: sentence(paths).encode()}
    files |= {**launch.files, **programs(paths)}
    async with ahead(_check_agent(assignment, outside, launch)) as checked:
        commit = await _furnished(assignment, outside, paths, source, (files, checked))
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
    source: Source,
    rest: tuple[Mapping[str, bytes], asyncio.Task[None]],
) -> str:
    """Clone, set up and upload, with the agent's check beside it; return the commit."""
    files, checked = rest
    upload = outside.toolbox.upload
    async with ahead(_clone(assignment, outside, paths, source)) as cloned:
        if not assignment.asked.setup:
            async with ahead(upload(assignment.sandbox_id, files)) as uploaded:
                await checked
                await uploaded
                return await cloned
        await checked
        commit = await cloned
    await set_up(assignment, outside, paths)
    # Only now, so that no command of the setup finds anything to change.
    await upload(assignment.sandbox_id, files)
    return commit


async def _checked_in(assignment: Assignment, outside: Outside) -> tuple[RunPaths, str]:
    """Make sure that the sandbox answers and has git; return its paths and the session."""
    ask = probe if assignment.flags.health_probe else unprobed
    health = await ask(assignment.sandbox_id, outside)
    if not health.has_git:
        raise Hopeless("GitMissing", "The sandbox has no git: use a snapshot that has it.")
    paths = RunPaths(health.home, assignment.run.id)
    await _end_the_last(assignment, outside, health.home)
    return paths, await _session(assignment, outside, paths)


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


async def _clone(assignment: Assignment, outside: Outside, paths: RunPaths, source: Source) -> str:
    fresh = f"{paths.home}/work.{uuid4().hex[:8]}"
    credential = source.credential
    order = Clone(
        url=source.url,
        path=fresh,
        branch=source.checkout,
        commit=source.commit,
        username=credential.username if credential is not None else None,
        password=credential.value if credential is not None else None,
    )
    outside.check_charge(assignment)
    seconds = outside.timings.clone_timeout.total_seconds()
    try:
        await outside.toolbox.clone(assignment.sandbox_id, order, seconds=seconds)
    except NotFound as error:
        raise Hopeless("RepositoryNotFound", f"Nothing to clone: {error}") from None
    except Denied as error:
        raise Hopeless("RepositoryDenied", f"The clone was refused: {error}") from None
    except (Invalid, Conflict) as error:
        raise Hopeless("CloneFailed", f"The clone failed: {error}") from None
    outside.check_charge(assignment)
    done = await outside.toolbox.execute(
        assignment.sandbox_id,
        move_in(paths, fresh),
        seconds=outside.timings.toolbox_timeout.total_seconds(),
        env=_CLEAN_ENV,
    )
    commit = done.output.strip().rpartition("\n")[2]
    if done.exit_code != 0 or len(commit) < 40:
        raise Hopeless("CloneFailed", f"The clone cannot be used: {done.output.strip()[-300:]}")
    return commit


def move_in(paths: RunPaths, fresh: str) -> str:
    """Return the command that puts a whole clone in its place, once for each run.

    What an earlier run left beside the tracked files, such as installed packages, stays; its
    `.git` does not, since the agent could write into it. Two operators may prepare the same run:
    the second one takes what the first one put there.
    """
    work, new, fence = (quoted(each) for each in (paths.work, fresh, paths.run))
    done, lock = quoted(f"{paths.inputs}/parent"), quoted(f"{paths.inputs}/moving")
    old = f"{quoted(paths.home)} -maxdepth 1 -name 'work.*' -mmin +{_STALE_MINUTES}"
    return (
        # The agent of an earlier run may have put programs of its own into a folder of the PATH.
        f'PATH={SYSTEM_PATH}:"$PATH"; set -e; [ ! -e {fence} ]; '
        f"mkdir -p {quoted(paths.inputs)}; "
        # The lock names its holder, so that one who died does not hold it.
        f"until ln -s $$ {lock} 2>/dev/null; do "
        f'kill -0 "$(readlink {lock})" 2>/dev/null || rm -f {lock}; sleep 1; done; '
        f"trap {quoted(f'rm -f {lock}')} EXIT; "
        f"if [ ! -s {done} ]; then "
        # An agent may have left a link there: git would clean whatever it points to.
        f"if [ -L {work} ] || [ ! -d {work} ]; then rm -f {work}; fi; "
        f"if [ -d {work} ] && rm -rf {work}/.git && mv {new}/.git {work}/.git && "
        f"{_GIT} -C {work} reset -q --hard && {_GIT} -C {work} clean -fdq; then :; else "
        # Or files that nobody can remove: the whole tree is put aside then.
        f"if [ -d {work} ]; then [ -d {new}/.git ] || mv {work}/.git {new}/.git; "
        f"mv {work} {new}.old; fi; mv {new} {work}; fi; "
        f"{_GIT} -C {work} rev-parse HEAD >{done}.new; mv {done}.new {done}; fi; "
        f"[ ! -e {new} ] || rm -rf {new}; find {old} -exec rm -rf {{}} + 2>/dev/null || :; "
        f'read -r REPLY <{done}; echo "$REPLY"'
    )
