"""The caller's cluster: reads and guarded writes, and their failures in one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click
import msgspec

from issuesandbox.api.names import GROUP, KIND, PLURAL, VERSION
from issuesandbox.entry.plugin.which_cluster import which_cluster

Body = dict[str, Any]

_CHUNK = 500
_TRIES = 5
_MERGE = "application/merge-patch+json"


class MissingError(click.ClickException):
    """What was asked for does not exist."""

    exit_code = 3


@dataclass(frozen=True)
class Cluster:
    """One API server with the caller's rights."""

    namespace: str
    """The namespace of the kubeconfig's context."""

    @classmethod
    def load(cls) -> Cluster:
        """Return the cluster that the caller means."""
        from kubernetes import config
        from kubernetes.config.config_exception import ConfigException

        said = which_cluster()
        try:
            config.load_kube_config(said.kubeconfig, said.context)
            known, context = config.list_kube_config_contexts(said.kubeconfig)
        except (ConfigException, OSError) as error:
            raise click.ClickException(f"no usable cluster: {error}; set KUBECONFIG") from None
        if said.context is not None:
            context = next(each for each in known if each["name"] == said.context)
        return cls(context["context"].get("namespace") or "default")

    @cached_property
    def _resources(self) -> Any:
        from kubernetes import client

        return client.CustomObjectsApi()

    @cached_property
    def core(self) -> Any:
        """Return the client for ConfigMaps, Secrets and namespaces."""
        from kubernetes import client

        return client.CoreV1Api()

    def get(self, namespace: str, name: str) -> Body:
        """Return one resource, by its name or by its issue, such as octocat/hello-world#12."""
        if "#" in name:
            return self._of_issue(namespace, name)
        with failures(f"{KIND} {namespace}/{name}"):
            found: Body = self._resources.get_namespaced_custom_object(
                GROUP, VERSION, namespace, PLURAL, name
            )
        return found

    def _of_issue(self, namespace: str, issue: str) -> Body:
        """Return the resource that stands for an issue: the oldest, which owns it."""
        found = [body for body in self.list(namespace) if issue_of(body).lower() == issue.lower()]
        if not found:
            raise MissingError(f"there is no {KIND} for {issue} in {namespace}")
        return min(found, key=lambda body: body["metadata"]["creationTimestamp"])

    def list(self, namespace: str | None, selector: str = "") -> list[Body]:
        """Return the resources of one namespace, or of all, sorted by their place."""
        found: list[Body] = []
        query = {"label_selector": selector, "limit": _CHUNK}
        with failures(f"{KIND} resources"):
            while True:
                page = (
                    self._resources.list_cluster_custom_object(GROUP, VERSION, PLURAL, **query)
                    if namespace is None
                    else self._resources.list_namespaced_custom_object(
                        GROUP, VERSION, namespace, PLURAL, **query
                    )
                )
                found += page["items"]
                query["_continue"] = page["metadata"].get("continue")
                if not query["_continue"]:
                    return sorted(found, key=place)

    def watch(self, namespace: str | None, selector: str = "") -> Iterator[tuple[str, Body]]:
        """Yield what happens to resources, beginning with those that exist."""
        from kubernetes import watch

        api = self._resources
        place = () if namespace is None else (namespace,)
        read = (
            api.list_cluster_custom_object
            if namespace is None
            else api.list_namespaced_custom_object
        )
        stream: Any = watch.Watch().stream
        with failures(f"{KIND} resources"):
            for event in stream(read, GROUP, VERSION, *place, PLURAL, label_selector=selector):
                yield event["type"], event["object"]

    def create(self, namespace: str, body: Body) -> Body:
        """Create a resource."""
        with failures(f"{KIND} {namespace}/{body['metadata']['name']}"):
            made: Body = self._resources.create_namespaced_custom_object(
                GROUP, VERSION, namespace, PLURAL, body, field_validation="Strict"
            )
        return made

    def change(
        self, namespace: str, name: str, decide: Callable[[Body], Mapping[str, Any] | None]
    ) -> Body:
        """Patch a resource by what `decide` makes of it; None leaves it as it is.

        The patch holds only for the version that was decided on: if somebody was faster, it is
        decided anew.
        """
        from kubernetes import client

        for left in reversed(range(_TRIES)):
            body = self.get(namespace, name)
            changes = decide(body)
            if changes is None:
                return body
            version = {"resourceVersion": body["metadata"]["resourceVersion"]}
            metadata = {**changes.get("metadata", {}), **version}
            try:
                return self._patch(*place(body), {**changes, "metadata": metadata})
            except client.ApiException as error:
                if error.status != 409 or not left:
                    with failures(f"{KIND} {namespace}/{name}"):
                        raise
        raise AssertionError("the last try returns or raises")

    def _patch(self, namespace: str, name: str, body: Mapping[str, Any]) -> Body:
        changed: Body = self._resources.patch_namespaced_custom_object(
            *(GROUP, VERSION, namespace, PLURAL, name, body),
            field_validation="Strict",
            _content_type=_MERGE,
        )
        return changed

    def delete(self, body: Body) -> None:
        """Delete exactly this resource, not a namesake that took its place."""
        metadata = body["metadata"]
        conditions = {"preconditions": {"uid": metadata["uid"]}}
        with failures(f"{KIND} {metadata['namespace']}/{metadata['name']}"):
            self._resources.delete_namespaced_custom_object(
                GROUP, VERSION, metadata["namespace"], PLURAL, metadata["name"], body=conditions
            )

    def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        """Return the data of a ConfigMap, or None if there is none."""
        from kubernetes import client

        try:
            with failures(f"ConfigMap {namespace}/{name}"):
                found = self.core.read_namespaced_config_map(name, namespace)
        except MissingError:
            return None
        assert isinstance(found, client.V1ConfigMap)
        return dict(found.data or {})

    def peek(self, namespace: str, name: str) -> dict[str, str] | None:
        """Return the data of a ConfigMap, or None if there is none that the caller may read."""
        try:
            return self.config_map(namespace, name)
        except click.ClickException:
            return None


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Turn what the client raises into one line that says what to do."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        raise _in_words(error, what) from None
    except (HTTPError, OSError) as error:
        text = f"the API server cannot be reached: {error}; check KUBECONFIG"
        raise click.ClickException(text) from None


def issue_of(body: Body) -> str:
    """Return the issue as people write it."""
    issue = body["spec"]["issue"]
    return f"{issue['repository']}#{issue['number']}"


def place(body: Body) -> tuple[str, str]:
    """Return the namespace and the name of a resource."""
    return body["metadata"]["namespace"], body["metadata"]["name"]


class _Status(msgspec.Struct):
    message: str = ""


def _in_words(error: Any, what: str) -> click.ClickException:
    try:
        message = msgspec.json.decode(error.body or "{}", type=_Status).message
    except msgspec.MsgspecError:
        message = ""
    if error.status == 404 and f'{PLURAL}.{GROUP} "' not in message and what.startswith(KIND):
        text = "this cluster does not know IssueSandbox; run `kubectl apply --server-side -f crds/`"
        return click.ClickException(text)
    if error.status == 404:
        return MissingError(f"there is no {what}")
    hints = {
        401: "the API server does not know you; log in again",
        403: f"you may not do this: {message or error.reason}",
        409: f"{what} changed while this command ran; try again",
    }
    told = f"the API server answered {error.status}: {message or error.reason}"
    return click.ClickException(hints.get(error.status, told))
