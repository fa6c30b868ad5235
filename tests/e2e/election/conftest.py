"""Leases on the real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from kubernetes import client, config

from issuesandbox.adapters.kube.connection import Connection
from issuesandbox.adapters.kube.leases import KubeLeases
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.local.control_plane.access import Access


@pytest_asyncio.fixture
async def leases(control_plane: Access, namespace: str) -> AsyncIterator[KubeLeases]:
    """The leases of the test's namespace, as the administrator sees them."""
    configuration = client.Configuration()
    config.load_kube_config(str(control_plane.kubeconfig), client_configuration=configuration)
    connection = Connection(control_plane.server, namespace, configuration)
    requests = KubeRequests(connection.server, connection.session(limit=20), 10)
    yield KubeLeases(requests, namespace, "election")
    await requests.close()
