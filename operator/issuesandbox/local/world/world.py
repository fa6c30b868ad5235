"""Starts the whole world and stops it again. Each part is a process of its own, on one leash."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import aiohttp
import yaml

from issuesandbox.api.crd import render_crd
from issuesandbox.api.names import CRD_NAME
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.control_plane.binaries import Binaries
from issuesandbox.local.control_plane.plane import running_control_plane
from issuesandbox.local.control_plane.preflight import preflight
from issuesandbox.local.control_plane.progress import Reporter
from issuesandbox.local.control_plane.resolve import Resolver
from issuesandbox.local.daytona.config import DEFAULT_KEY
from issuesandbox.local.processes import Child, Leash
from issuesandbox.local.world.errors import WorldError
from issuesandbox.local.world.furnish import MODEL_KEY, furnish_cluster, furnish_github
from issuesandbox.local.world.layout import Layout, manifests
from issuesandbox.local.world.outside import Outside
from issuesandbox.local.world.parts import Parts, Ports, address

_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_RESTART_SECONDS = 1.0
# Beside the operators: API server, Daytona, GitHub, webhook adapter.
_OTHERS = 4

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class World:
    """A running world, as those inside and around it need to know it."""

    access: Access
    ports: Ports
    parts: list[Child] = field(default_factory=list)
    replicas: list[Child] = field(default_factory=list)
    """The operators, where there are several: one that ends is started again."""

    @property
    def daytona_url(self) -> str:
        """Return the address of the simulated Daytona."""
        return address(self.ports.daytona, "/api")

    @property
    def daytona_admin(self) -> str:
        """Return the address of its admin API."""
        return address(self.ports.daytona, "/_sim")

    @property
    def github_url(self) -> str:
        """Return the address of the simulated GitHub."""
        return address(self.ports.github)

    @property
    def github_admin(self) -> str:
        """Return the address of its admin API."""
        return address(self.ports.github, "/_sim")

    @property
    def operator_url(self) -> str:
        """Return the address of the operator's probes and metrics."""
        return self.operator_urls[0]

    @property
    def operator_urls(self) -> list[str]:
        """Return the addresses of all replicas of the operator."""
        return [address(port) for port in self.ports.operators]

    @property
    def webhook_url(self) -> str:
        """Return the address of the webhook adapter."""
        return address(self.ports.webhook)

    async def ended(self) -> Child:
        """Wait until a part ends by itself and return it."""
        while True:
            for part in self.parts:
                if part.returncode is not None:
                    return part
            await asyncio.sleep(_POLL_SECONDS)


@asynccontextmanager
async def running_world(
    layout: Layout,
    say: Say,
    operator_settings: Mapping[str, str] | None = None,
    replicas: int = 1,
    real: Outside | None = None,
) -> AsyncIterator[World]:
    """Run a world for the time of a block; whatever happens, nothing of it is left after.

    A single operator that ends ends the world; of several, each is started again. Where `real`
    services are given, none are simulated.
    """
    async with AsyncExitStack() as stack:
        # Before a build that takes minutes: perhaps this folder cannot be had at all.
        lock = layout.hold()
        stack.callback(os.close, lock)
        binaries = await _binaries()
        # The watcher holds the lock too: the folder is free when the last process is gone.
        leash = Leash.attach(layout.root, hold=[lock])
        stack.push_async_callback(leash.release)
        with _counted(say, _OTHERS + replicas) as told:
            plane = await stack.enter_async_context(
                running_control_plane(layout.control_plane, binaries, leash=leash)
            )
            told(f"API server      {plane.access.server}")
            install(plane.access)
            parts = Parts(plane.access, layout, leash, Ports.free(replicas))
            world = World(plane.access, parts.ports)
            stack.push_async_callback(_stop_all, world.parts)
            stack.push_async_callback(_stop_all, world.replicas)
            outside = real or await _simulated(world, parts)
            _tell_outside(outside, told)
            furnish_cluster(plane.access, outside.model_key)
            keeper = await _start(world, parts, outside, told, operator_settings or {})
        _write_environment(layout, world, outside)
        keeping = asyncio.create_task(keeper.keep())
        try:
            yield world
        finally:
            keeping.cancel()


async def _binaries() -> Binaries:
    missing = await preflight()
    if missing:
        raise WorldError(
            "these things are missing:\n" + "\n".join(f"  - {each}" for each in missing)
        )
    return await Resolver().binaries()


@contextmanager
def _counted(say: Say, total: int) -> Iterator[Say]:
    """Show how many parts are up; each line said during the block stands for one."""
    up: list[str] = []
    with Reporter().bar("starting the world", total, "parts") as bar:

        def told(line: str) -> None:
            say(line)
            up.append(line)
            bar.update(len(up))

        yield told


async def _simulated(world: World, parts: Parts) -> Outside:
    """Start the simulators, with a repository and our App in them."""
    await _until_up(world, parts.daytona(), f"{world.daytona_admin}/health")
    await _until_up(world, parts.github(), f"{world.github_admin}/app")
    hook, secret = address(world.ports.webhook, "/webhook"), secrets.token_hex(16)
    settings = {
        "DAYTONA_API_KEY": DEFAULT_KEY,
        "DAYTONA_API_URL": world.daytona_url,
        "GITHUB_API_URL": world.github_url,
        "GITHUB_WEBHOOK_SECRET": secret,
        **await furnish_github(world.github_admin, hook, secret),
    }
    return Outside(settings, MODEL_KEY)


def _tell_outside(outside: Outside, say: Say) -> None:
    kind = "real" if outside.real else "simulated"
    for name, variable in (("Daytona", "DAYTONA_API_URL"), ("GitHub", "GITHUB_API_URL")):
        say(f"{name:<16}{outside.settings.get(variable, 'at its own address')} ({kind})")


async def _start(
    world: World, parts: Parts, outside: Outside, say: Say, settings: Mapping[str, str]
) -> Keeper:
    """Start the webhook adapter and the operators."""
    webhook = parts.webhook(outside)
    keeper = Keeper(world, lambda replica: parts.operator(outside, settings, replica))
    operators = keeper.start()
    await _until_up(world, webhook, address(world.ports.webhook, "/readyz"))
    say(f"webhook         {address(world.ports.webhook)}/webhook")
    for operator, url in zip(operators, world.operator_urls, strict=True):
        await _until_up(world, operator, f"{url}/readyz", counts=len(operators) == 1)
        say(f"operator        {url}/metrics")
    return keeper


class Keeper:
    """Starts replicas that ended again, as a cluster would."""

    def __init__(self, world: World, spawn: Callable[[int], Child]) -> None:
        self._world = world
        self._spawn = spawn

    def start(self) -> list[Child]:
        """Start all replicas."""
        started = [self._spawn(each) for each in range(len(self._world.ports.operators))]
        if len(started) > 1:
            self._world.replicas.extend(started)
        return started

    async def keep(self) -> None:
        """Start again whoever has ended, until cancelled."""
        replicas = self._world.replicas
        while True:
            for index, replica in enumerate(replicas):
                if replica.returncode is not None:
                    replicas[index] = self._spawn(index)
            await asyncio.sleep(_RESTART_SECONDS)


def install(access: Access) -> None:
    """Bring the resource and the operator's rights into a cluster."""
    access.kubectl("apply", "--server-side", "-f", "-", stdin=render_crd())
    for name in ("namespace.yaml", "rbac.yaml", "settings.yaml", "webhook-rbac.yaml"):
        access.kubectl("apply", "--server-side", "-f", str(manifests() / "base" / name))
    access.kubectl("apply", "--server-side", "-f", "-", stdin=_config_maps("webhook.yaml"))
    until_served(access)


def _config_maps(name: str) -> str:
    """Return the ConfigMaps of a manifest: the local world has no nodes for the rest of it."""
    objects = yaml.safe_load_all((manifests() / "base" / name).read_text())
    return yaml.safe_dump_all(each for each in objects if each["kind"] == "ConfigMap")


def until_served(access: Access) -> None:
    """Wait until the API server serves the resource.

    Two steps, because `kubectl wait` fails on an object that has no conditions yet.
    """
    wait = ("wait", "--timeout=30s", f"crd/{CRD_NAME}")
    access.kubectl(*wait, "--for=jsonpath={.status.conditions}")
    access.kubectl(*wait, "--for=condition=Established")


async def _until_up(world: World, part: Child, url: str, *, counts: bool = True) -> None:
    """Wait until a part answers; it `counts` if the world ends with it."""
    if counts:
        world.parts.append(part)
    try:
        async with asyncio.timeout(_START_SECONDS), aiohttp.ClientSession() as session:
            while not await _answers(session, url):
                if part.returncode is not None:
                    last = "; ".join(part.last_lines(3)) or "no output"
                    raise WorldError(f"{part.name} ended at once: {last}")
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise WorldError(f"{part.name} did not come up; see {part.log}") from None


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def _stop_all(parts: list[Child]) -> None:
    for part in reversed(parts):
        await part.stop()


def _write_environment(layout: Layout, world: World, outside: Outside) -> None:
    exporting = (*world.operator_urls, world.webhook_url)
    lines = {
        "KUBECONFIG": str(world.access.kubeconfig),
        "ISSUESANDBOX_KUBECTL": str(world.access.kubectl_binary),
        "ISSUESANDBOX_METRICS": " ".join(f"{url}/metrics" for url in exporting),
    }
    if not outside.real:  # secrets that guard something are written to no file
        told = ("DAYTONA_API_URL", "DAYTONA_API_KEY", "GITHUB_API_URL", "GITHUB_WEBHOOK_SECRET")
        lines |= {name: outside.settings[name] for name in told}
        lines["ISSUESANDBOX_GITHUB_ADMIN"] = world.github_admin
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in lines.items())
    layout.environment.write_text(text)
