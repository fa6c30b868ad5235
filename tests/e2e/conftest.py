"""One real control plane per test run and a fresh namespace per test.

Started by the same code as the product's. Without binaries the tests fail with the error that
lists the ways to get them; they never skip.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path

import aiohttp
import psutil
import pytest
import pytest_asyncio
from court import Court
from operator_stage import Stage
from plain_api import create_namespace

from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.control_plane.binaries import Binaries
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.plane import ControlPlane
from issuesandbox.local.control_plane.resolve import Resolver
from issuesandbox.local.daytona.config import DEFAULT_KEY, ApiKey, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.local.processes import Child, Leash
from issuesandbox.local.world.world import install, until_served

KEYS = (*SimulatorConfig().keys, ApiKey("other-key", "other", "other"))
CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(autouse=True)
def court() -> Iterator[Court]:
    """Fail each test that had a simulated Daytona and did not end with the checker."""
    court = Court()
    with court.in_session():
        yield court


@dataclass(frozen=True)
class Programs:
    """The binaries of this test run; the controller manager only if some test wants it."""

    binaries: Binaries
    controller_manager: Path | None


_PROGRAMS = pytest.StashKey[Programs | ControlPlaneError]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: no process is to wait for another one's last."""
    items.sort(key=lambda each: each.path.parent.name != "world")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the binaries before the first test: a build takes longer than a test may."""
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if "programs" in wanted and not session.config.option.collectonly:
        try:
            found = asyncio.run(_find("controller_manager" in wanted))
        except ControlPlaneError as error:
            session.config.stash[_PROGRAMS] = error
        else:
            session.config.stash[_PROGRAMS] = found


async def _find(with_controller_manager: bool) -> Programs:
    resolver = Resolver()
    binaries = await resolver.binaries()
    return Programs(
        binaries, await resolver.controller_manager(binaries) if with_controller_manager else None
    )


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> Programs:
    found = pytestconfig.stash[_PROGRAMS]
    if isinstance(found, ControlPlaneError):
        pytest.fail(str(found), pytrace=False)
    return found


@contextmanager
def _kept_processes(config: pytest.Config) -> Iterator[None]:
    """Let the guard against leaked processes know those that live until the end of the run."""
    # By its path: every folder's conftest has the same module name.
    guard = config.pluginmanager.get_plugin(str(Path(__file__).parents[1] / "conftest.py"))
    before = set(psutil.Process().children())
    yield
    new = {each.pid for each in set(psutil.Process().children()) - before}
    config.stash.setdefault(guard.KEPT_PROCESSES, set()).update(new)


@pytest.fixture(scope="session", autouse=True)
def nursery(pytestconfig: pytest.Config) -> None:
    """Load once what all operators and adapters of this test process are forked from."""
    with _kept_processes(pytestconfig):
        forkserver.ensure_running()


@pytest.fixture(scope="session")
def running_control_plane(
    programs: Programs, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[ControlPlane]:
    folder = tmp_path_factory.mktemp("control-plane")
    with _kept_processes(pytestconfig):
        plane = asyncio.run(ControlPlane.start(folder, programs.binaries))
    yield plane
    asyncio.run(plane.stop())


@pytest.fixture(scope="session")
def control_plane(running_control_plane: ControlPlane) -> Access:
    """The administrator's way into the control plane of this test run."""
    return running_control_plane.access


@pytest.fixture(scope="session")
def controller_manager(
    running_control_plane: ControlPlane, programs: Programs, pytestconfig: pytest.Config
) -> None:
    """Deletes namespaces and collects garbage, for the tests that ask for it."""
    assert programs.controller_manager is not None
    with _kept_processes(pytestconfig):
        running_control_plane.start_controller_manager(programs.controller_manager)


@pytest.fixture(scope="session")
def crd(control_plane: Access) -> None:
    """The IssueSandbox resource, applied and served."""
    control_plane.kubectl("apply", "--server-side", "-f", str(CRDS / "issuesandboxes.yaml"))
    until_served(control_plane)


@pytest.fixture
def namespace(control_plane: Access) -> str:
    """A namespace of its own for each test."""
    name = f"test-{secrets.token_hex(4)}"
    create_namespace(control_plane, name)
    return name


@pytest.fixture(scope="session")
def installed(control_plane: Access) -> None:
    """The resource and the shipped rights of the operator, in the control plane of this run."""
    install(control_plane)


@pytest_asyncio.fixture
async def stage(
    court: Court, control_plane: Access, namespace: str, installed: None, tmp_path: Path
) -> AsyncIterator[Stage]:
    """A world of its own for each test; at its end every promise is checked."""
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(
            Simulator(SimulatorConfig(keys=KEYS, rate_limits=None))
        )
        logs = tmp_path / "logs"
        logs.mkdir()
        leash = Leash.attach(tmp_path)
        stack.push_async_callback(leash.release)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        sources = Sources(
            installation=namespace,
            daytona_admin=simulator.admin_url,
            namespaces=frozenset({namespace}),
            logs=(logs,),
            daytona_identities=frozenset({"local/default", "other/other"}),
            secrets={"Daytona key": DEFAULT_KEY, "administrator's token": control_plane.token},
        )
        stage = Stage(control_plane, namespace, simulator, tmp_path, leash, http)
        stage.grant_rights(namespace)
        stack.push_async_callback(_stop, stage.operators)
        stage.guard = await stack.enter_async_context(
            court.judged(sources, control_plane.kubeconfig)
        )
        yield stage


async def _stop(operators: list[Child]) -> None:
    for child in operators:
        if child.returncode is None:
            assert await child.stop() == 0, f"unclean end: {child.last_lines(20)}"
