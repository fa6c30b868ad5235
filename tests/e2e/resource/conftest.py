"""The resource on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubernetes import client, config
from tests.e2e.resource.resource_access import Resources

from issuesandbox.local.control_plane.access import Access


@pytest.fixture(scope="session")
def custom_objects(control_plane: Access, crd: None) -> Iterator[client.CustomObjectsApi]:
    with config.new_client_from_config(str(control_plane.kubeconfig)) as connection:
        yield client.CustomObjectsApi(connection)


@pytest.fixture
def resources(custom_objects: client.CustomObjectsApi, namespace: str) -> Resources:
    return Resources(custom_objects, namespace)


@pytest.fixture(scope="session")
def dry_resources(custom_objects: client.CustomObjectsApi) -> Resources:
    """Resources that are only ever tried out, so that all tests may share a namespace."""
    return Resources(custom_objects, "default")
