"""Resources on a real API server, reached with the client library."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kubernetes import client

from issuesandbox.api import names

Json = dict[str, Any]


@dataclass(frozen=True)
class Resources:
    """IssueSandboxes of one namespace; every request is validated strictly."""

    api: client.CustomObjectsApi
    namespace: str

    def create(self, body: Json, *, dry_run: bool = False) -> Json:
        """Create the resource and return it as the server stores it."""
        extra: dict[str, Any] = {"dry_run": "All"} if dry_run else {}
        created: Any = self.api.create_namespaced_custom_object(
            names.GROUP,
            names.VERSION,
            self.namespace,
            names.PLURAL,
            body,
            field_validation="Strict",
            **extra,
        )
        return dict(created)

    def replace(self, body: Json) -> Json:
        """Write the whole resource, as `kubectl replace` does."""
        replaced: Any = self.api.replace_namespaced_custom_object(
            names.GROUP,
            names.VERSION,
            self.namespace,
            names.PLURAL,
            body["metadata"]["name"],
            body,
            field_validation="Strict",
        )
        return dict(replaced)

    def write_status(self, body: Json) -> Json:
        """Write the status of the resource and nothing else."""
        written: Any = self.api.replace_namespaced_custom_object_status(
            names.GROUP,
            names.VERSION,
            self.namespace,
            names.PLURAL,
            body["metadata"]["name"],
            body,
        )
        return dict(written)

    def refusal(self, body: Json) -> str:
        """Return the server's words for refusing to create the resource, or an empty text."""
        try:
            self.create(body, dry_run=True)
        except client.ApiException as error:
            return words_of(error)
        return ""


def words_of(refusal: client.ApiException) -> str:
    """Return the server's words for refusing a request."""
    return str(json.loads(refusal.body or "{}")["message"])


def resource(name: str = "one", **spec: Any) -> Json:
    """Return a small valid resource, with parts of its spec replaced."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {"issue": {"repository": "octocat/hello-world", "number": 12}, **spec},
    }
