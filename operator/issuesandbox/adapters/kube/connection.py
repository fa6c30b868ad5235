"""How to reach the API server: address, trust and credentials, from the usual places.

The `kubernetes` package loads them (in a pod, from KUBECONFIG, from exec plugins); requests
go over aiohttp, which costs a third of its time and a tenth of its memory.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from issuesandbox.adapters.proxies import behind_proxy
from issuesandbox.ports.errors import IssueSandboxError

_IN_CLUSTER_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


_TOKEN_SECONDS = 10.0


# A peer that is gone without a word is noticed within nine seconds.
_KEEPALIVE = {
    "TCP_KEEPIDLE": 5,
    "TCP_KEEPINTVL": 2,
    "TCP_KEEPCNT": 2,
    "TCP_USER_TIMEOUT": 9000,
}


class NoClusterError(IssueSandboxError):
    """There is no usable way to an API server."""


class _Bearer:
    """Adds the token to the requests of one session; it is read afresh every few seconds."""

    def __init__(self, configuration: client.Configuration) -> None:
        self._configuration = configuration
        self._token: str | None = None
        self._until = float("-inf")

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request with the token."""
        now = asyncio.get_running_loop().time()
        if self._until <= now:
            # Pod tokens rotate: the configuration's hook re-reads the file once a minute. It also
            # walks through the whole environment each time, so it is not asked for every request.
            name, other = "BearerToken", "authorization"
            self._token = self._configuration.get_api_key_with_prefix(name, other)
            self._until = now + _TOKEN_SECONDS
        if self._token:
            request.headers["Authorization"] = self._token
        return await handler(request)


class _Answer(aiohttp.ClientResponse):
    """An answer that parses JSON faster: a page of a list has a megabyte of it."""

    async def json(self, **_: Any) -> Any:
        """Return what the answer holds."""
        return await super().json(loads=_parsed)


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # Whoever reads answers knows the errors of the standard library alone.
        return json.loads(text)


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and the right to speak with it."""

    server: str
    namespace: str
    configuration: client.Configuration

    def session(self, *, limit: int) -> aiohttp.ClientSession:
        """Return a new HTTP session; its credentials are read afresh every few seconds."""
        connector = aiohttp.TCPConnector(
            limit=limit, ssl=self._trust(), socket_factory=_alert_socket
        )
        return aiohttp.ClientSession(
            connector=connector,
            middlewares=(_Bearer(self.configuration),),
            headers={"User-Agent": "issuesandbox"},
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_Answer,
            # Whoever sends a request bounds its time; a second clock would only cost.
            timeout=aiohttp.ClientTimeout(total=None),
            # Proxies and CA settings of the environment are honoured, as kubectl does.
            trust_env=behind_proxy(self.server),
        )

    def _trust(self) -> ssl.SSLContext | bool:
        if not self.server.startswith("https"):
            return True
        context = ssl.create_default_context(cafile=self.configuration.ssl_ca_cert)
        if self.configuration.cert_file:
            context.load_cert_chain(self.configuration.cert_file, self.configuration.key_file)
        if not self.configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _alert_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket that asks for a sign of life: a watch would wait on a dead one for long."""
    family, kind, protocol = address[:3]
    found = socket.socket(family, kind, protocol)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not every system has each of them
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return found


def load_connection(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Return the way to the API server: from the pod, else from the kubeconfig."""
    configuration = client.Configuration()
    try:
        if _IN_CLUSTER_NAMESPACE.exists():
            config.load_incluster_config(client_configuration=configuration)
            namespace = _IN_CLUSTER_NAMESPACE.read_text().strip()
        else:
            config.load_kube_config(kubeconfig, context, configuration)
            _, current = config.list_kube_config_contexts(kubeconfig)
            namespace = current["context"].get("namespace", "default")
    except (ConfigException, OSError, ValueError) as error:
        raise NoClusterError(
            f"no usable Kubernetes credentials: {error}. "
            "Set KUBECONFIG to a kubeconfig file, or run in a pod with a service account."
        ) from error
    return Connection(configuration.host.rstrip("/"), namespace, configuration)
