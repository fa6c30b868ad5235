"""Collecting: one commit from the work tree, the transcript, and what the agent used up.

The agent tree is dead before anything is read, and nothing of the agent's is run. Repeated, it
makes the same commit: parent, date and message are the run's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from uuid import uuid4

from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.status_run import Outcome
from issuesandbox.domain.collection import (
    MAX_PACK,
    CollectError,
    Collection,
    CollectOrder,
    CommitOrder,
    IncompleteAnswer,
    collect_command,
    collector_sent,
    pack_path,
    parse_collection,
    patch_path,
)
from issuesandbox.domain.pack_search import PackError, holds_any
from issuesandbox.domain.publication import commit_message
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.reported_tests import reported_tests
from issuesandbox.domain.runs.chapters import Ending, Harvest
from issuesandbox.domain.supervision import RunPaths, supervisor_sent, sweep_command
from issuesandbox.domain.transcript import HEAD, TAIL, transcript
from issuesandbox.domain.usage import own_usage
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import ahead
from issuesandbox.engine.runs.following import SURVIVES, Follower
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.warden import pulse_of
from issuesandbox.engine.runs.watch import Watch
from issuesandbox.ports.errors import CallError, Invalid, Unavailable
from issuesandbox.ports.resources import ResourceKey

AUTHOR = "issuesandbox"
EMAIL = "issuesandbox@users.noreply.github.com"

# What was known of the agent, and the name of its transcript if that could be kept.
_Kept = tuple[Watch, str | None]


@dataclass(frozen=True, slots=True)
class Work:
    """What a run left behind, with the pack that carries it."""

    collection: Collection
    pack: bytes = b""
    patch: str | None = None
    leaks: bool = False
    """A secret of the run is in it: it must not be published."""

    def is_complete(self, *, patch: bool) -> bool:
        """Tell whether it can be saved as asked: as a patch, too, where there is work."""
        return not patch or self.patch is not None or self.collection.commit is None


class Collector:
    """Collects the work of all runs; remembers a pack until it is pushed."""

    def __init__(self, outside: Outside, follower: Follower) -> None:
        self._outside = outside
        self._follower = follower
        self._works: dict[ResourceKey, tuple[str, Work]] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop what was collected."""
        self._works.pop(key, None)

    async def collect(self, assignment: Assignment) -> Harvest | Ending:
        """Make one commit of what the agent left, and have it ready for the push."""
        # The agent has ended: all that it printed is there.
        async with ahead(self._keep(assignment)) as kept:
            return await self._collected(assignment, kept)

    async def _collected(self, assignment: Assignment, kept: Awaitable[_Kept]) -> Harvest | Ending:
        try:
            work = await self.work(assignment)
        except CollectError as error:
            # git names files in its complaints, and the agent named the files.
            watch = await self._follower.informed_watch(assignment)
            return Ending(Outcome.FAILED, error.code, watch.redactor.redact(str(error)))
        except Invalid as error:
            return Ending(Outcome.FAILED, "CollectFailed", str(error))
        if work.leaks and assignment.publishes:
            text = "A file of the work holds a secret of the run, so nothing is published."
            return Ending(Outcome.FAILED, "SecretInWork", text)
        return await self.harvest(assignment, work, kept)

    async def work(self, assignment: Assignment, *, save: SaveWork | None = None) -> Work:
        """Return what the run left, collected once per process."""
        known = self._works.get(assignment.key)
        patch = save is SaveWork.PATCH
        fits = known is not None and known[0] == assignment.run.id
        if known is not None and fits and known[1].is_complete(patch=patch):
            return known[1]
        work = await self._collect(assignment, patch=patch)
        self._works[assignment.key] = (assignment.run.id, work)
        return work

    def remembered(self, assignment: Assignment, commit: str) -> Work | None:
        """Return the work whose push was decided, if this process collected it."""
        _, work = self._works.get(assignment.key, ("", None))
        return work if work is not None and work.collection.commit == commit else None

    async def decided(self, assignment: Assignment, commit: str) -> Work:
        """Fetch the work whose push was decided; its commit's id proves what a pack holds."""
        paths = await self._follower.paths(assignment)
        path = pack_path(_folder(paths), commit)
        pack = await self._outside.toolbox.download(assignment.sandbox_id, path, limit=MAX_PACK)
        return Work(Collection(tree="", commit=commit), pack)

    async def _collect(self, assignment: Assignment, *, patch: bool) -> Work:
        toolbox, sandbox_id = self._outside.toolbox, assignment.sandbox_id
        paths = await self._follower.paths(assignment)
        order = _order(assignment, paths, patch=patch)
        async with ahead(self._follower.informed_watch(assignment)) as informed:
            found = await self._swept(assignment, paths, order)
            if found.commit is None:
                return Work(found)
            pack = found.pack
            if pack is None:
                path = pack_path(order.folder, found.commit)
                pack = await toolbox.download(sandbox_id, path, limit=MAX_PACK)
            redactor = (await informed).redactor
        try:
            leaks = await asyncio.to_thread(holds_any, pack, redactor.traces())
        except PackError as error:
            raise CollectError("PackFailed", f"the pack cannot be read: {error}") from error
        if not patch:
            return Work(found, pack, leaks=leaks)
        path = patch_path(order.folder, found.commit)
        text = await toolbox.download(sandbox_id, path, limit=MAX_PACK)
        return Work(found, pack, redactor.redact(text.decode(errors="replace")), leaks)

    async def _swept(
        self, assignment: Assignment, paths: RunPaths, order: CollectOrder
    ) -> Collection:
        """Kill what is left of the agent, then collect, in one call."""
        done = await self._outside.toolbox.execute(
            assignment.sandbox_id,
            sweep_command(paths, collect_command(order)),
            seconds=self._outside.timings.collect_timeout.total_seconds(),
            env=supervisor_sent() | collector_sent(),
        )
        pulse = pulse_of(done.output)
        if pulse.survivors != 0:
            raise _surviving(pulse.survivors)
        try:
            return parse_collection(done.output, order)
        except IncompleteAnswer as error:
            raise Unavailable(str(error)) from error

    async def harvest(
        self, assignment: Assignment, work: Work | None, kept: Awaitable[_Kept] | None = None
    ) -> Harvest:
        """Return what the status says of the work, if there is any, and keep the transcript."""
        watch, name = await (kept or self._keep(assignment))
        facts, redact = await self._follower.facts(assignment), watch.redactor.redact
        usage = own_usage(facts.usage, assignment.earlier_costs)
        harvest = Harvest(summary=redact(facts.final_text), usage=usage, transcript=name)
        if work is None:
            return harvest
        found = work.collection
        changes = (each.model_copy(update={"path": redact(each.path)}) for each in found.changes)
        summary = redact(found.summary) if found.summary else harvest.summary
        return replace(
            harvest,
            commit=found.commit,
            changes=tuple(changes),
            totals=found.totals,
            summary=summary,
            tests=reported_tests(summary or ""),
        )

    async def _keep(self, assignment: Assignment) -> _Kept:
        """Keep the first and the last of what the agent printed; losing it fails nothing."""
        watch, name = await self._follower.informed_watch(assignment), assignment.transcript_name
        try:
            text = await self._transcript(assignment, watch.redactor)
            new = not self._follower.shows_output(assignment)
            await self._outside.ledgers.put(assignment.key, name, {"transcript": text}, new=new)
        except CallError:
            return watch, None
        return watch, name

    async def _transcript(self, assignment: Assignment, redactor: Redactor) -> str:
        whole = self._follower.whole_output(assignment)
        if whole is not None:
            return transcript(whole, b"", redactor, gap=False)
        paths = await self._follower.paths(assignment)
        first = await self._follower.poll(assignment, paths, 0, 0)
        head, tail, begin = first.chunk[:HEAD], b"", max(HEAD, first.size - TAIL)
        offset = begin
        while offset < first.size:
            more = await self._follower.poll(assignment, paths, offset, 0)
            if not more.chunk:
                break
            if more.chunk_offset > offset:
                tail, begin = b"", more.chunk_offset
            tail += more.chunk
            offset = more.next_offset(offset)
        return transcript(head, tail, redactor, gap=len(head) < min(begin, first.size))


def _order(assignment: Assignment, paths: RunPaths, *, patch: bool) -> CollectOrder:
    run, issue = assignment.run, assignment.resource.spec.issue
    assert run.parent is not None, "work is collected after its parent was recorded"
    commit = CommitOrder(
        parent=run.parent.commit,
        name=AUTHOR,
        email=EMAIL,
        date=run.started_at,
        message=commit_message(issue.number, issue.title or "", run.id),
    )
    return CollectOrder(
        home=paths.home,
        work=paths.work,
        folder=_folder(paths),
        nonce=uuid4().hex[:8],
        commit=commit,
        patch=patch,
    )


def _surviving(survivors: int | None) -> CollectError:
    count = "an unknown number of" if survivors is None else str(survivors)
    text = f"{count} processes of the agent cannot be killed; the sandbox is stopped"
    return CollectError(SURVIVES, text)


def _folder(paths: RunPaths) -> str:
    return f"{paths.root}/collected"
