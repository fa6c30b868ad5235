"""The parts of a world, each a process of its own on one leash."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from issuesandbox.local.agent.shim import install_claude
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.control_plane.ports import LOOPBACK, free_ports
from issuesandbox.local.processes import Child, Leash, spawn
from issuesandbox.local.world.layout import NAMESPACE, SERVICE_ACCOUNT, WEBHOOK_ACCOUNT, Layout
from issuesandbox.local.world.outside import Outside


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the parts listen."""

    daytona: int
    github: int
    webhook: int
    operators: tuple[int, ...]
    """One for each replica."""

    @classmethod
    def free(cls, replicas: int = 1) -> Ports:
        """Return ports that nobody uses right now."""
        daytona, github, webhook, *operators = free_ports(3 + replicas)
        return cls(daytona, github, webhook, tuple(operators))


def address(port: int, path: str = "") -> str:
    """Return an address on this machine."""
    return f"http://{LOOPBACK}:{port}{path}"


@dataclass(frozen=True, slots=True)
class Parts:
    """Starts the parts of one world."""

    access: Access
    layout: Layout
    leash: Leash
    ports: Ports

    def daytona(self) -> Child:
        """Start the simulated Daytona, with the scripted agent on the PATH of its sandboxes."""
        tools = install_claude(self.layout.tools).parent
        environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
        port, state = str(self.ports.daytona), str(self.layout.daytona)
        command = ["local", "daytona", "--port", port, "--state", state]
        return self._spawn("daytona", command, environment)

    def github(self) -> Child:
        """Start the simulated GitHub."""
        port, state = str(self.ports.github), str(self.layout.github)
        return self._spawn("github", ["local", "github", "--port", port, "--state", state], None)

    def operator(self, outside: Outside, settings: Mapping[str, str], replica: int = 0) -> Child:
        """Start a replica of the operator under its own ServiceAccount: a missing right shows."""
        environment = {
            **self._common(SERVICE_ACCOUNT, self.ports.operators[replica]),
            **outside.for_operator(),
            **settings,
        }
        name = "operator" if replica == 0 else f"operator-{replica}"
        return self._spawn(name, ["run"], environment)

    def webhook(self, outside: Outside) -> Child:
        """Start the webhook adapter under its own ServiceAccount."""
        environment = {
            **self._common(WEBHOOK_ACCOUNT, self.ports.webhook),
            **outside.for_webhook(),
            "ISSUESANDBOX_WEBHOOK_NAMESPACE": "default",
        }
        return self._spawn("webhook", ["webhook"], environment)

    def _common(self, account: str, port: int) -> dict[str, str]:
        kubeconfig = self.access.service_account_kubeconfig(NAMESPACE, account, self.layout.root)
        return {
            "PATH": str(Path(sys.executable).parent),
            "KUBECONFIG": str(kubeconfig),
            "ISSUESANDBOX_HTTP_HOST": LOOPBACK,
            "ISSUESANDBOX_HTTP_PORT": str(port),
        }

    def _spawn(
        self, name: str, arguments: list[str], environment: Mapping[str, str] | None
    ) -> Child:
        # -P: a folder called like a module in the working directory must not be imported.
        command = [sys.executable, "-P", "-m", "issuesandbox", *arguments]
        log = self.layout.logs / f"{name}.log"
        return spawn(
            name, command, leash=self.leash, log=log, env=environment, cwd=self.layout.root
        )
