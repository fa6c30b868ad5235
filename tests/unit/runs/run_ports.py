"""The ports of a run over a real shell and real git: the sandbox is a folder.

The remote is a bare repository, GitHub and Kubernetes are in memory.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.kube import FakeKube
from tests.unit.runs.run_wire import Wire

from issuesandbox.ports.errors import NotFound, Unavailable
from issuesandbox.ports.github import (
    CommentView,
    IssueView,
    PullOrder,
    PullView,
    RepositoryView,
    Token,
)
from issuesandbox.ports.remote import ZERO, Pushed, PushOrder, PushVerdict
from issuesandbox.ports.resources import EventNote, ResourceKey
from issuesandbox.ports.toolbox import Clone, Executed

Answer = TypeVar("Answer")
_WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


async def shell(
    *command: str,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    feed: bytes = b"",
) -> tuple[int, str]:
    """Run a command to its end."""
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, **_WHO, **(env or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await child.communicate(feed)
    assert child.returncode is not None
    return child.returncode, output.decode(errors="replace")


class FolderToolbox:
    """The `Toolbox` port over a folder of this machine."""

    def __init__(self, home: Path, wire: Wire) -> None:
        self._home = home
        self._wire = wire

    async def home(self, sandbox_id: str) -> str:
        return await self._wire.carry("home", lambda: _soon(str(self._home)))

    async def execute(
        self,
        sandbox_id: str,
        command: str,
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Executed:
        async def effect() -> Executed:
            own = {"HOME": str(self._home), **(env or {})}
            return Executed(*await shell("sh", "-c", command, cwd=cwd or self._home, env=own))

        return await self._wire.carry("execute", effect)

    async def upload(self, sandbox_id: str, files: Mapping[str, bytes]) -> None:
        async def effect() -> None:
            for path, content in files.items():
                _write(Path(path), content)

        await self._wire.carry("upload", effect)

    async def download(self, sandbox_id: str, path: str, *, limit: int) -> bytes:
        async def effect() -> bytes:
            return _read(Path(path))

        return await self._wire.carry("download", effect)

    async def clone(self, sandbox_id: str, clone: Clone, *, seconds: float) -> None:
        async def effect() -> None:
            branch = ("-b", clone.branch) if clone.branch else ()
            code, output = await shell("git", "clone", "-q", *branch, clone.url, clone.path)
            assert code == 0, output
            if clone.commit:
                await shell("git", "-C", clone.path, "checkout", "-q", "--detach", clone.commit)

        await self._wire.carry("clone", effect)


class Hub:
    """GitHub and its git, seen by everybody."""

    def __init__(self, bare: Path) -> None:
        self.bare = bare
        self.pushes: list[tuple[str, str, str]] = []
        self.pulls: list[PullView] = []
        self.comments: dict[int, str] = {}
        self.next_id = 1
        self.refuses = False
        """Every push is refused, by a rule of the repository."""
        self.unanswered = 0.0
        """So many pushes of unpublished work find nobody there."""

    async def refs(self) -> dict[str, str]:
        form = "--format=%(refname) %(objectname)"
        _, output = await shell("git", "-C", str(self.bare), "for-each-ref", form)
        return dict(line.split(" ", 1) for line in output.splitlines())

    async def push(self, order: PushOrder) -> Pushed:
        if self.unanswered > 0 and "/wip/" in order.ref:
            self.unanswered -= 1
            raise Unavailable("502")
        if self.refuses:
            return Pushed(PushVerdict.REFUSED, "protected")
        git = ("git", "-C", str(self.bare))
        code, output = await shell(*git, "index-pack", "--stdin", "--fix-thin", feed=order.pack)
        assert code == 0, output
        code, output = await shell(*git, "update-ref", order.ref, order.new, order.old)
        if code == 0:
            self.pushes.append((order.ref, order.old, order.new))
            return Pushed(PushVerdict.ACCEPTED)
        tip = (await self.refs()).get(order.ref, ZERO)
        if tip == order.old:
            raise Unavailable("somebody else is changing it")
        return Pushed(PushVerdict.ACCEPTED if tip == order.new else PushVerdict.MOVED, output)


class HubClient:
    """The `GitHub` and `GitRemote` ports of one operator."""

    def __init__(self, hub: Hub, wire: Wire) -> None:
        self._hub = hub
        self._wire = wire

    async def repository(self, repository: str) -> RepositoryView:
        view = RepositoryView(repository, "main", str(self._hub.bare))
        return await self._wire.carry("repository", lambda: _soon(view))

    async def issue(self, repository: str, number: int) -> IssueView:
        raise AssertionError("the resource has the issue's text")

    async def branch_tip(self, repository: str, branch: str) -> str | None:
        async def effect() -> str | None:
            return (await self._hub.refs()).get(f"refs/heads/{branch}")

        return await self._wire.carry("branch_tip", effect)

    async def read_token(self, repository: str) -> Token:
        return await self._wire.carry("read_token", lambda: _soon(Token("read")))

    async def write_token(self, repository: str) -> Token:
        return await self._wire.carry("write_token", lambda: _soon(Token("write")))

    async def open_pull(self, repository: str, branch: str) -> PullView | None:
        return await self._wire.carry("open_pull", lambda: _soon(self._pull(branch)))

    async def create_pull(self, repository: str, order: PullOrder) -> PullView:
        async def effect() -> PullView:
            known = self._pull(order.head)
            if known is not None:
                return known
            number = 100 + len(self._hub.pulls)
            url = f"https://hub/pull/{number}"
            made = PullView(
                number, url, "open", order.head, "", order.base, order.body, order.title
            )
            self._hub.pulls.append(made)
            return made

        return await self._wire.carry("create_pull", effect)

    async def update_pull(self, repository: str, number: int, *, title: str, body: str) -> PullView:
        known = next(each for each in self._hub.pulls if each.number == number)
        return await self._wire.carry("update_pull", lambda: _soon(known))

    async def comments(self, repository: str, number: int, marker: str) -> Sequence[CommentView]:
        async def effect() -> Sequence[CommentView]:
            found = sorted(self._hub.comments.items())
            return [CommentView(each, body, "us") for each, body in found if marker in body]

        return await self._wire.carry("comments", effect)

    async def create_comment(self, repository: str, number: int, body: str) -> CommentView:
        async def effect() -> CommentView:
            self._hub.next_id += 1
            self._hub.comments[self._hub.next_id] = body
            return CommentView(self._hub.next_id, body, "us")

        return await self._wire.carry("create_comment", effect)

    async def update_comment(self, repository: str, comment_id: int, body: str) -> CommentView:
        async def effect() -> CommentView:
            self._hub.comments[comment_id] = body
            return CommentView(comment_id, body, "us")

        return await self._wire.carry("update_comment", effect)

    async def delete_comment(self, repository: str, comment_id: int) -> None:
        async def effect() -> None:
            self._hub.comments.pop(comment_id, None)

        await self._wire.carry("delete_comment", effect)

    async def refs(self, url: str, token: Token | None) -> Mapping[str, str]:
        return await self._wire.carry("refs", self._hub.refs)

    async def push(self, url: str, token: Token, order: PushOrder) -> Pushed:
        return await self._wire.carry("push", lambda: self._hub.push(order))

    def _pull(self, branch: str) -> PullView | None:
        found = (each for each in self._hub.pulls if each.head == branch)
        return next((each for each in found if each.state == "open"), None)


class Cluster:
    """The `Resources` and `Ledgers` ports."""

    def __init__(self, kube: FakeKube, wire: Wire) -> None:
        self._kube = kube
        self._wire = wire

    async def patch_status(
        self, key: ResourceKey, version: str, status: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        async def effect() -> Mapping[str, Any]:
            return self._kube.merge_status(key, version, status)

        return await self._wire.carry("patch_status", effect)

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        # Not over the wire: how many of these looks there are is a matter of time, and no place.
        self._wire.check("get")
        return self._kube.read(key)

    async def put(
        self, owner: ResourceKey, name: str, data: Mapping[str, str], *, new: bool = False
    ) -> None:
        async def effect() -> None:
            self._kube.config_maps[name] = dict(data)

        await self._wire.carry("put", effect)

    async def secret(self, namespace: str, name: str) -> Mapping[str, str]:
        if name not in self._kube.secrets:
            raise NotFound(name)
        return self._kube.secrets[name]

    async def patch(
        self, key: ResourceKey, version: str, changes: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        raise AssertionError("a run writes its status alone")

    async def delete(self, key: ResourceKey, version: str) -> None:
        raise AssertionError("a run deletes nothing")

    async def note(self, key: ResourceKey, event: EventNote) -> None:
        raise AssertionError("the pass tells, not the run")


async def _soon(value: Answer) -> Answer:
    return value


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _read(path: Path) -> bytes:
    if not path.exists():
        raise NotFound(str(path))
    return path.read_bytes()
