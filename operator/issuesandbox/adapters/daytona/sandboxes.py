"""Daytona's control plane behind the `Sandboxes` port.

Uses the generated clients without their response models: a minor release of the service adds
required fields, and a strict model would then turn an existing sandbox into an error. Never
waits for a state and never retries: both are the engine's business.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec
from daytona_api_client_async import (
    ApiClient,
    Configuration,
    CreateBuildInfo,
    CreateSandbox,
    OrganizationsApi,
    SandboxApi,
    SandboxLabels,
)
from daytona_api_client_async.models.sandbox_list_sort_direction import SandboxListSortDirection
from daytona_api_client_async.models.sandbox_list_sort_field import SandboxListSortField

from issuesandbox.adapters.daytona.addresses import ToolboxAddresses
from issuesandbox.adapters.daytona.failures import failure
from issuesandbox.adapters.daytona.metering import Meter, metered, unmetered
from issuesandbox.adapters.daytona.rate_limits import Gate, rate_limited
from issuesandbox.adapters.proxies import behind_proxy
from issuesandbox.domain.sandbox import SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import Busy, Conflict, Invalid, NotFound, Unavailable
from issuesandbox.ports.sandboxes import SandboxOrder

_PAGE = 200
# A page keeps the loop for some milliseconds: between two of them others have their turn.
_BREATH = 0.02
T = TypeVar("T")


class _Organization(msgspec.Struct):
    id: str


class _Page(msgspec.Struct, Generic[T], rename="camel"):
    items: list[T]
    next_cursor: str | None = None


_PAGE_DECODER = msgspec.json.Decoder(_Page[SandboxView])


class DaytonaSandboxes:
    """Every call bounded in time, every failure one of the seven kinds."""

    def __init__(
        self,
        api_url: str,
        api_key: str,
        timings: Timings,
        gate: Gate | None = None,
        meter: Meter = unmetered,
    ) -> None:
        configuration = Configuration(host=api_url.rstrip("/"), access_token=api_key)
        self._client = _PlainClient(configuration)
        self._client.user_agent = "issuesandbox"
        self._api = SandboxApi(self._client)
        self._organizations = OrganizationsApi(self._client)
        self._timings = timings
        self._meter = meter
        self._addresses: ToolboxAddresses | None = None
        self._listed: dict[str, SandboxView] = {}
        self._asking: asyncio.Future[str] | None = None
        # The generated client makes a session of its own, unless it has one.
        rest = self._client.rest_client
        rest.pool_manager = aiohttp.ClientSession(
            # How many passes there are bounds it: a stop must not wait for slow calls of others.
            connector=aiohttp.TCPConnector(limit=0, ssl=rest.ssl_context),
            middlewares=(rate_limited(gate),) if gate is not None else (),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=behind_proxy(api_url),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.rest_client.close()

    def use_key(self, api_key: str) -> None:
        """Make every further call with another key."""
        self._client.configuration.access_token = api_key

    def share(self, addresses: ToolboxAddresses) -> None:
        """Tell also where the toolboxes answer of the sandboxes that are looked at."""
        self._addresses = addresses

    async def organization(self) -> str:
        """Return the id of the organisation that the key opens; all who ask at once ask once."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask_organization())
        return await asyncio.shield(self._asking)

    async def _ask_organization(self) -> str:
        body = await self._read(
            "LIST organizations", self._organizations.list_organizations_without_preload_content()
        )
        found = _decode(body, list[_Organization])
        if len(found) != 1:
            raise Unavailable(f"the key opens {len(found)} Daytona organisations instead of one")
        return found[0].id

    async def get(self, id_or_name: str) -> SandboxView:
        """Return one sandbox by id or name; the answer is evidence."""
        body = await self._read(
            f"GET sandbox {id_or_name}",
            self._api.get_sandbox_without_preload_content(id_or_name),
        )
        return self._shown(body)

    async def list_owned(self, labels: Mapping[str, str]) -> Sequence[SandboxView]:
        """Return all pages of the sandboxes with these labels; a hint, never evidence."""
        found: list[SandboxView] = []
        cursor: str | None = None
        wanted = msgspec.json.encode(dict(labels)).decode()
        while True:
            # Sorted by creation: the default key, last activity, moves while we page.
            body = await self._read(
                "LIST sandboxes",
                self._api.list_sandboxes_without_preload_content(
                    cursor=cursor,
                    limit=_PAGE,
                    labels=wanted,
                    sort=SandboxListSortField.CREATEDAT,
                    order=SandboxListSortDirection.ASC,
                ),
            )
            page = _page_of(body)
            found.extend(map(self._known, page.items))
            if not page.next_cursor:
                self._listed = {each.id: each for each in found}
                return tuple(found)
            cursor = page.next_cursor
            await asyncio.sleep(_BREATH)

    def _known(self, seen: SandboxView) -> SandboxView:
        """Return what the last list showed if nothing changed: so thousands are held only once."""
        before = self._listed.get(seen.id)
        return _lean(seen) if before is None or before != seen else before

    async def create(self, order: SandboxOrder) -> SandboxView:
        """Ask for a new sandbox; the unique name is the lock."""
        try:
            body = await self._send(
                f"CREATE sandbox {order.name}",
                self._api.create_sandbox_without_preload_content(_create_body(order)),
                self._timings.create_timeout.total_seconds(),
            )
        except NotFound as error:
            # There is nothing to be found yet: what does not exist is the region that was named.
            raise Invalid(str(error), code="TargetNotUsable") from error
        return self._shown(body)

    async def start(self, sandbox_id: str) -> None:
        """Ask a stopped or archived sandbox to start."""
        await self._change(
            f"START sandbox {sandbox_id}",
            self._api.start_sandbox_without_preload_content(sandbox_id),
        )

    async def stop(self, sandbox_id: str) -> None:
        """Ask a running sandbox to stop."""
        await self._change(
            f"STOP sandbox {sandbox_id}",
            self._api.stop_sandbox_without_preload_content(sandbox_id),
        )

    async def recover(self, sandbox_id: str) -> None:
        """Ask Daytona to repair a recoverable sandbox."""
        await self._change(
            f"RECOVER sandbox {sandbox_id}",
            self._api.recover_sandbox_without_preload_content(sandbox_id),
        )

    async def delete(self, sandbox_id: str) -> None:
        """Ask for the deletion of a sandbox; its name is free when this returns."""
        await self._change(
            f"DELETE sandbox {sandbox_id}",
            self._api.delete_sandbox_without_preload_content(sandbox_id),
        )

    async def archive(self, sandbox_id: str) -> None:
        """Ask Daytona to archive a stopped sandbox."""
        await self._change(
            f"ARCHIVE sandbox {sandbox_id}",
            self._api.archive_sandbox_without_preload_content(sandbox_id),
        )

    async def relabel(self, sandbox_id: str, labels: Mapping[str, str]) -> None:
        """Replace all labels of a sandbox."""
        await self._change(
            f"RELABEL sandbox {sandbox_id}",
            self._api.replace_labels_without_preload_content(
                sandbox_id, SandboxLabels(labels=dict(labels))
            ),
        )

    async def renew(self, sandbox_id: str) -> None:
        """Tell Daytona that a sandbox is still needed: its auto-stop counts from now."""
        await self._change(
            f"RENEW sandbox {sandbox_id}",
            self._api.update_last_activity_without_preload_content(sandbox_id),
        )

    def _shown(self, body: bytes) -> SandboxView:
        if self._addresses is not None:
            self._addresses.learn(body)
        return _decode(body, SandboxView)

    async def _read(self, call: str, request: Awaitable[Any]) -> bytes:
        return await self._send(call, request, self._timings.read_timeout.total_seconds())

    async def _change(self, call: str, request: Awaitable[Any]) -> bytes:
        try:
            return await self._send(call, request, self._timings.change_timeout.total_seconds())
        except Conflict as error:
            # Only a create has a name to lose: whatever stands in the way here, it is not now.
            raise Busy(str(error)) from error

    async def _send(self, call: str, request: Awaitable[Any], limit: float) -> bytes:
        with metered(self._meter, _kind(call)):
            # The generated client has no timeout of its own and would wait for ever.
            try:
                async with asyncio.timeout(limit):
                    response = await request
                    body: bytes = await response.read()
            except TimeoutError as error:
                raise Unavailable(f"Daytona gave no answer to {call} within {limit:g} s") from error
            except aiohttp.ClientError as error:
                raise Unavailable(f"Daytona cannot be reached for {call}: {error}") from error
            if response.status >= 300:
                raise failure(call, response.status, body, dict(response.headers))
            return body


class _PlainClient(ApiClient):
    """The generated client without its walk through every value of what is sent."""

    def sanitize_for_serialization(self, obj: Any) -> Any:
        """Return what becomes JSON: bodies are models of plain values, and all else is plain."""
        return obj.to_dict() if isinstance(obj, CreateSandbox | SandboxLabels) else obj


def _kind(call: str) -> str:
    verb, _, rest = call.lower().partition(" ")
    return "organization" if rest == "organizations" else verb


def _create_body(order: SandboxOrder) -> CreateSandbox:
    body = CreateSandbox(
        name=order.name,
        labels=dict(order.labels),
        snapshot=order.snapshot,
        target=order.target,
        user=order.user,
        env=dict(order.env) or None,
        network_block_all=order.block_network or None,
        network_allow_list=",".join(order.allowed_networks) or None,
        domain_allow_list=",".join(order.allowed_domains) or None,
        auto_stop_interval=order.auto_stop_minutes,
        auto_archive_interval=order.auto_archive_minutes,
        auto_delete_interval=order.auto_delete_minutes,
        ttl_minutes=order.ttl_minutes,
    )
    if order.image is not None:
        # Daytona takes resources only together with an image.
        body.build_info = CreateBuildInfo(dockerfile_content=f"FROM {order.image}\n")
        body.cpu, body.memory, body.disk = order.cpu, order.memory, order.disk
        body.gpu = order.gpu
    return body


def _page_of(body: bytes) -> _Page[SandboxView]:
    try:
        return _PAGE_DECODER.decode(body)
    except msgspec.MsgspecError:
        # One item that cannot be read must not blind us to all the others.
        page = _decode(body, _Page[msgspec.Raw])
        return _Page(list(_readable(page.items)), page.next_cursor)


def _readable(items: Iterable[msgspec.Raw]) -> Iterator[SandboxView]:
    for item in items:
        with suppress(msgspec.ValidationError):
            yield msgspec.json.decode(item, type=SandboxView)


def _lean(view: SandboxView) -> SandboxView:
    """Return the same view with texts that many views share held once."""
    return msgspec.structs.replace(
        view,
        organization_id=sys.intern(view.organization_id),
        state=view.state and sys.intern(view.state),
        desired_state=view.desired_state and sys.intern(view.desired_state),
        labels={name: sys.intern(text) for name, text in view.labels.items()},
    )


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"Daytona sent an answer that cannot be read: {error}") from error
