"""`issuesandbox local control-plane`: a Kubernetes API on this machine, usable alone.

Only reads options and signals; the work is done by the other modules.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
from contextlib import suppress
from pathlib import Path

import click


@click.command("control-plane")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="Folder for all state; made if missing, reused if it is a control plane's.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the API server; default: free."
)
@click.option(
    "--with-controller-manager",
    is_flag=True,
    help="Also delete namespaces and collect garbage; slower the first time.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Use your own cluster instead and start nothing.",
)
def control_plane(
    directory: Path | None,
    port: int | None,
    with_controller_manager: bool,
    kubeconfig: Path | None,
) -> None:
    """Run a real kube-apiserver and etcd until Ctrl-C."""
    if directory is not None and kubeconfig is None:
        asyncio.run(_run(directory, port, with_controller_manager))
    elif kubeconfig is not None and directory is None:
        _use(kubeconfig)
    else:
        raise click.UsageError("Give either --dir or --kubeconfig.")


def _use(kubeconfig: Path) -> None:
    from issuesandbox.local.control_plane.cluster import check_kubeconfig

    server = check_kubeconfig(kubeconfig)
    click.echo(f"your own cluster at {server}; nothing is started", err=True)
    _show(kubeconfig.absolute())


async def _run(directory: Path, port: int | None, with_controller_manager: bool) -> None:
    from issuesandbox.local.control_plane.errors import ControlPlaneError
    from issuesandbox.local.control_plane.plane import running_control_plane
    from issuesandbox.local.control_plane.ports import require_free
    from issuesandbox.local.control_plane.resolve import Resolver

    _cancel_on_signals()
    if port is not None:
        require_free(port)  # before a build that takes minutes
    resolver = Resolver(instead="give your own cluster with --kubeconfig")
    try:
        binaries = await resolver.binaries()
        controllers = (
            await resolver.controller_manager(binaries) if with_controller_manager else None
        )
    except asyncio.CancelledError:
        raise click.Abort from None
    with suppress(asyncio.CancelledError):
        async with running_control_plane(directory, binaries, port=port) as plane:
            if controllers:
                plane.start_controller_manager(controllers)
            _show(plane.access.kubeconfig)
            ended = await plane.ended()
            raise ControlPlaneError(
                f"{ended.name} ended with {ended.returncode}; see {ended.log}, then start again"
            )


def _cancel_on_signals() -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _show(kubeconfig: Path) -> None:
    click.echo(f"export KUBECONFIG={shlex.quote(str(kubeconfig))}")
