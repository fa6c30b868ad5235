"""`issuesandbox local up|down|shell|demo`: options and signals; the work is done elsewhere."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from issuesandbox.clock import SystemClock
from issuesandbox.local.tied_exec import PR_SET_PDEATHSIG
from issuesandbox.local.world.errors import WorldError
from issuesandbox.local.world.layout import Layout
from issuesandbox.local.world.outside import Outside, real_outside


class _ToldToEndError(WorldError):
    """A signal came. Who runs until then is content, who had something to finish is not."""


_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.1
_USUAL = Path(".world")

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=_USUAL,
    show_default=True,
    help="Folder of the world.",
)
_tied = click.option("--tied", is_flag=True, help="Stop when the calling process ends.")


_replicas = click.option(
    "--replicas",
    type=click.IntRange(1, 9),
    default=1,
    show_default=True,
    help="Replicas of the operator; of several, one that ends is started again.",
)


@click.command()
@_directory
@_replicas
@click.option(
    "--real",
    is_flag=True,
    help="Simulate neither Daytona nor GitHub: DAYTONA_* and GITHUB_* name the real ones.",
)
@_tied
def up(directory: Path, replicas: int, real: bool, tied: bool) -> None:
    """Start the whole world and tell its story until Ctrl-C."""
    outside = real_outside(os.environ) if real else None
    where = "" if directory == _USUAL else f" WORLD={shlex.quote(str(directory))}"
    click.echo(f"In another terminal:  make shell{where}     (kubectl is ready to use there)")
    with suppress(_ToldToEndError):
        _run(_up(Layout(directory.absolute()), replicas, outside), tied)


@click.command()
@_replicas
@click.option("--seconds", type=float, default=300.0, show_default=True, help="How long.")
@click.option("--every", type=float, default=20.0, show_default=True, help="Seconds between kills.")
@click.option(
    "--metrics", type=click.Path(path_type=Path), help="Keep what was exported in this file."
)
@_tied
def soak(replicas: int, seconds: float, every: float, metrics: Path | None, tied: bool) -> None:
    """Kill replicas while issues are opened and stopped; fail if any promise breaks."""
    with tempfile.TemporaryDirectory(prefix="issuesandbox-soak-") as folder:
        _run(_soak(Layout(Path(folder)), replicas, (seconds, every), metrics), tied)


@click.command()
@_tied
def demo(tied: bool) -> None:
    """Show one sandbox's life from start to end, in a world of its own."""
    with tempfile.TemporaryDirectory(prefix="issuesandbox-demo-") as folder:
        _run(_demo(Layout(Path(folder))), tied)


@click.command()
@_directory
def down(directory: Path) -> None:
    """Stop a world that runs elsewhere."""
    layout = Layout(directory.absolute())
    holder = layout.holder()
    if holder is None:
        click.echo(f"no world runs in {layout.root}")
        return
    os.kill(holder, signal.SIGTERM)
    asyncio.run(_until_free(layout))
    click.echo("stopped")


@click.command()
@_directory
def shell(directory: Path) -> None:
    """Open a shell with KUBECONFIG, kubectl and the plugin on PATH."""
    layout = Layout(directory.absolute())
    if layout.holder() is None or not layout.environment.exists():
        raise WorldError(f"no world runs in {layout.root}; start one with `make up`")
    environment = {**os.environ, **layout.read_environment()}
    kubectl = Path(environment["ISSUESANDBOX_KUBECTL"]).parent
    tools = f"{kubectl}{os.pathsep}{Path(sys.executable).parent}"
    environment["PATH"] = f"{tools}{os.pathsep}{environment.get('PATH', '')}"
    program = environment.get("SHELL") or "/bin/sh"
    try:
        os.execve(program, [program], environment)  # noqa: S606 - the user's own shell
    except OSError as error:
        raise WorldError(f"cannot start {program} ({error.strerror}); set SHELL") from None


async def _soak(
    layout: Layout, replicas: int, times: tuple[float, float], metrics: Path | None
) -> None:
    from issuesandbox.local.world.judged import judged
    from issuesandbox.local.world.soak import SETTINGS, Soak
    from issuesandbox.local.world.world import running_world

    async with running_world(layout, click.echo, SETTINGS, replicas) as world:
        async with judged(layout):
            soak = Soak(world, click.echo)
            await soak.run(*times)
        if metrics is not None:
            await asyncio.to_thread(metrics.write_text, await soak.exported())
        click.echo("Checked: no promise was broken on the way.")


async def _up(layout: Layout, replicas: int, real: Outside | None) -> None:
    from issuesandbox.local.world.story import tell
    from issuesandbox.local.world.world import running_world

    async with running_world(layout, click.echo, replicas=replicas, real=real) as world:
        click.echo("Ready. Try:           kubectl apply -f manifests/samples/sandbox-only.yaml")
        story = asyncio.create_task(tell(world.access, SystemClock(), click.echo))
        try:
            part = await world.ended()
        finally:
            story.cancel()
        raise WorldError(f"{part.name} ended by itself; see {part.log}")


async def _demo(layout: Layout) -> None:
    from issuesandbox.local.world.demo import SETTINGS, play
    from issuesandbox.local.world.judged import judged
    from issuesandbox.local.world.story import tell
    from issuesandbox.local.world.world import running_world

    async with running_world(layout, click.echo, SETTINGS) as world:
        story = asyncio.create_task(tell(world.access, SystemClock(), click.echo))
        try:
            async with judged(layout):
                await play(world, click.echo)
        finally:
            story.cancel()
        click.echo("Checked: no promise was broken on the way.")


def _run(work: Coroutine[Any, Any, None], tied: bool) -> None:
    if tied:
        _tie_to_parent()
    try:
        asyncio.run(_until_told(work))
    except subprocess.CalledProcessError as error:
        said = " / ".join(str(error.stderr).split("\n")).strip(" /")
        raise WorldError(f"kubectl refused: {said}") from None


async def _until_told(work: Coroutine[Any, Any, None]) -> None:
    """Run until the work ends or a signal asks for the end."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        raise _ToldToEndError("stopped before its end") from None


def _tie_to_parent() -> None:
    # `make` killed by SIGKILL cannot tell us; on Linux the kernel does.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == 1:
            raise WorldError("the calling process is gone")


async def _until_free(layout: Layout) -> None:
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            while layout.holder() is not None:
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise WorldError(f"the world in {layout.root} did not stop") from None
