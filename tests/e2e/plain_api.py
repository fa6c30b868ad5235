"""Objects made at the API server without kubectl, which is slow where hundreds of tests need it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from issuesandbox.local.control_plane.access import Access


def create(access: Access, *objects: Mapping[str, Any]) -> None:
    """Create objects as the administrator; one that is there already stays as it is."""
    trust = ssl.create_default_context(cafile=access.ca)
    headers = {"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"}
    for each in objects:
        body = json.dumps(each).encode()
        request = urllib.request.Request(access.server + _path(each), body, headers)
        try:
            urllib.request.urlopen(request, timeout=30, context=trust).close()
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 409:
                    raise AssertionError(error.read().decode()) from error


def create_namespace(access: Access, name: str) -> None:
    """Create a namespace."""
    create(access, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _path(body: Mapping[str, Any]) -> str:
    version, namespace = body["apiVersion"], body["metadata"].get("namespace")
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{base}{place}/{body['kind'].lower()}s"
