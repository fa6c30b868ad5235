"""The engine's ports, as one operator process has them: the fakes behind a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tests.fakes.daytona import FakeDaytona
from tests.fakes.kube import FakeKube
from tests.fakes.wire import Call, Fate, Line, Service

from issuesandbox.api.names import LABEL_UID
from issuesandbox.domain.sandbox import SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.resources import EventNote, ResourceKey
from issuesandbox.ports.sandboxes import SandboxOrder

Answer = TypeVar("Answer")


class FakeSandboxes:
    """The `Sandboxes` port."""

    def __init__(self, daytona: FakeDaytona, line: Line, timings: Timings) -> None:
        self._daytona = daytona
        self._line = line
        self._timings = timings

    async def organization(self) -> str:
        """Return the id of the organisation that the key opens."""
        return await self._carry(self._call("organization", ""), self._daytona.read_organization)

    async def get(self, id_or_name: str) -> SandboxView:
        """Return one sandbox by id or name."""
        return await self._carry(
            self._call("get", id_or_name), lambda: self._daytona.read(id_or_name)
        )

    async def list_owned(self, labels: Mapping[str, str]) -> Sequence[SandboxView]:
        """Return the sandboxes with these labels."""
        return await self._carry(self._call("list", ""), lambda: self._daytona.enumerate(labels))

    async def create(self, order: SandboxOrder) -> SandboxView:
        """Ask for a new sandbox."""
        return await self._carry(
            self._call("create", order.name, uid=order.labels.get(LABEL_UID, "")),
            lambda: self._daytona.create(order),
            {Fate.HALF_DONE: lambda: self._daytona.create(order, broken=True)},
        )

    async def start(self, sandbox_id: str) -> None:
        """Ask a sandbox to start."""
        await self._change("start", sandbox_id, self._daytona.start)

    async def stop(self, sandbox_id: str) -> None:
        """Ask a sandbox to stop."""
        await self._change("stop", sandbox_id, self._daytona.stop)

    async def recover(self, sandbox_id: str) -> None:
        """Ask Daytona to repair a sandbox."""
        await self._change("recover", sandbox_id, self._daytona.recover)

    async def delete(self, sandbox_id: str) -> None:
        """Ask for the deletion of a sandbox."""
        await self._change("delete", sandbox_id, self._daytona.delete)

    async def archive(self, sandbox_id: str) -> None:
        """Ask Daytona to archive a stopped sandbox."""
        await self._change("archive", sandbox_id, self._daytona.archive)

    async def renew(self, sandbox_id: str) -> None:
        """Tell Daytona that a sandbox is still needed."""
        await self._change("renew", sandbox_id, self._daytona.renew)

    async def relabel(self, sandbox_id: str, labels: Mapping[str, str]) -> None:
        """Replace all labels of a sandbox."""
        await self._change("relabel", sandbox_id, lambda each: self._daytona.relabel(each, labels))

    async def _change(self, verb: str, sandbox_id: str, effect: Callable[[str], None]) -> None:
        await self._carry(self._call(verb, sandbox_id), lambda: effect(sandbox_id))

    async def _carry(
        self,
        call: Call,
        effect: Callable[[], Answer],
        special: dict[Fate, Callable[[], Answer]] | None = None,
    ) -> Answer:
        """Send a call with the key of this moment: it takes effect with that, however late."""
        key = self._daytona.organization

        def served() -> Answer:
            with self._daytona.called_from(key):
                return effect()

        return await self._line.carry(call, served, special)

    def _call(self, verb: str, target: str, uid: str = "") -> Call:
        timings = self._timings
        limit = {
            "create": timings.create_timeout,
            "get": timings.read_timeout,
            "list": timings.read_timeout,
            "organization": timings.read_timeout,
        }.get(verb, timings.change_timeout)
        now = self._line.network.time.seconds
        return Call(now, Service.DAYTONA, verb, target, limit.total_seconds(), uid)


class FakeResources:
    """The `Resources` port."""

    def __init__(
        self, kube: FakeKube, line: Line, timings: Timings, learn: Callable[[str], None]
    ) -> None:
        self._kube = kube
        self._learn = learn
        self._line = line
        self._limit = timings.read_timeout.total_seconds()

    async def patch(
        self, key: ResourceKey, version: str, changes: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Merge changes into the resource if it is still at `version`."""
        return await self._send("patch", key, lambda: self._kube.merge(key, version, changes))

    async def patch_status(
        self, key: ResourceKey, version: str, status: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Merge changes into the status if the resource is still at `version`."""
        return await self._send(
            "patch_status", key, lambda: self._kube.merge_status(key, version, status)
        )

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        """Return the resource as it is now."""
        return await self._send("read", key, lambda: self._kube.read(key))

    async def delete(self, key: ResourceKey, version: str) -> None:
        """Delete the resource if it is still at `version`."""
        await self._send("delete", key, lambda: self._kube.remove(key, version))

    async def note(self, key: ResourceKey, event: EventNote) -> None:
        """Post a Kubernetes Event about the resource."""
        await self._send("note", key, lambda: self._kube.note(key, event))

    async def _send(self, verb: str, key: ResourceKey, effect: Callable[[], Answer]) -> Answer:
        now = self._line.network.time.seconds
        call = Call(now, Service.KUBERNETES, verb, str(key), self._limit, key.uid)
        answer = await self._line.carry(call, effect)
        self._learn(self._kube.date())
        return answer
