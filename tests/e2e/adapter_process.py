"""Webhook adapters as processes, under their shipped rights."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from nursery import born

from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.control_plane.ports import LOOPBACK, free_ports
from issuesandbox.local.github.server import GitHubSimulator
from issuesandbox.local.processes import Child
from issuesandbox.local.world.layout import WEBHOOK_ACCOUNT, manifests

SECRET = "the webhook secret"
_LEASES = {"lease_duration": "3s", "lease_hold": "2s", "lease_retry": "200ms"}


@dataclass
class Adapters:
    """The adapters of one test, in its namespace and at its GitHub."""

    access: Access
    namespace: str
    github: GitHubSimulator
    folder: Path
    children: list[Child] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    server: str = ""
    """Where the adapters think the API server is, if not where it is."""

    def install(self) -> None:
        """Give them their shipped rights and objects."""
        granted = []
        for name in ("webhook-rbac.yaml", "webhook.yaml"):
            for each in yaml.safe_load_all((manifests() / "base" / name).read_text()):
                if each["kind"] == "ClusterRoleBinding":
                    each["metadata"]["name"] += f"-{self.namespace}"
                if "namespace" in each["metadata"]:
                    each["metadata"]["namespace"] = self.namespace
                for subject in each.get("subjects", ()):
                    subject["namespace"] = self.namespace
                granted.append(each)
        self.access.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(granted))

    def spawn(self, **settings: str) -> Child:
        (port,) = free_ports(1)
        access = self.access
        kubeconfig = access.service_account_kubeconfig(self.namespace, WEBHOOK_ACCOUNT, self.folder)
        if self.server:
            text = kubeconfig.read_text().replace(access.server, self.server)
            kubeconfig.write_text(text)
        environment = {
            "PATH": str(Path(sys.executable).parent),
            "KUBECONFIG": str(kubeconfig),
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": self.github.url,
            "GITHUB_APP_ID": str(self.github.app_id),
            "GITHUB_APP_PRIVATE_KEY": self.github.app_private_key,
            "ISSUESANDBOX_WATCH_NAMESPACES": self.namespace,
            "ISSUESANDBOX_HTTP_HOST": LOOPBACK,
            "ISSUESANDBOX_HTTP_PORT": str(port),
            "ISSUESANDBOX_TIMINGS": json.dumps(_LEASES),
            "ISSUESANDBOX_WEBHOOK_DRAIN": "0s",
            **settings,
        }
        environment = {name: value for name, value in environment.items() if value}
        log = self.folder / "logs" / f"webhook-{len(self.urls)}.log"
        child = born("issuesandbox", "webhook", out=log, env=environment)
        self.children.append(child)
        self.urls.append(f"http://{LOOPBACK}:{port}")
        return child

    async def stop(self) -> None:
        """End those that still run, and see that they end well."""
        for child in self.children:
            if child.returncode is None:
                assert await child.stop() == 0, f"unclean end: {child.last_lines(20)}"
