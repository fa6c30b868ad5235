"""The door for deliveries: checks who sent them before it looks at what they say.

A body is read within limits of size, time and memory for all of them together, its signature is
checked over the raw bytes, and only then it is parsed. One log line per refusal, never the body.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import http_exceptions, web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from issuesandbox.domain.webhook.hints import Hint, Ignored
from issuesandbox.domain.webhook.payloads import MalformedError, read_delivery
from issuesandbox.domain.webhook.signature import is_signed
from issuesandbox.engine.inbox.reception import Answer, Result
from issuesandbox.entry.webhook.lines import Lines
from issuesandbox.entry.webhook.metrics import DeliveryNumbers
from issuesandbox.entry.webhook.replies import Reply
from issuesandbox.ports.errors import CallError

PATH = "/webhook"
_JSON = "application/json"

logger = logging.getLogger(__name__)


def _without_bytes(record: logging.LogRecord) -> bool:
    """Say of what is no HTTP only that it came: the parser's complaint quotes it."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, http_exceptions.HttpProcessingError):
        record.msg, record.exc_info = "what came from %s is no HTTP", None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


_http_logger = logging.getLogger(f"{__name__}.http")
_http_logger.addFilter(_without_bytes)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process takes in."""

    body: int = 25 * 2**20
    """GitHub sends at most 25 MB."""
    buffered: int = 64 * 2**20
    """All bodies on their way together, so that strangers cannot fill the memory."""
    at_once: int = 1000
    """Deliveries that are ours and are being handled."""
    unproven: int = 4000
    """Bodies that are waited for: anybody can send them slowly, so they take nobody's place."""
    seconds: float = 10.0
    """GitHub waits no longer for an answer."""
    work: float = 8.0
    """What takes longer is given up, while GitHub still hears that it was."""


class _Refused(Exception):
    """The delivery is not taken; says with which status and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class WebhookServer:
    """Serves deliveries, probes and numbers."""

    def __init__(
        self,
        secrets: tuple[bytes, ...],
        receive: Callable[[Hint], Answer | Awaitable[Answer]],
        is_ready: Callable[[], bool],
        registry: CollectorRegistry,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self._secrets = secrets
        self._receive = receive
        self._is_ready = is_ready
        self._registry = registry
        self._limits = limits
        self._numbers = DeliveryNumbers(registry)
        self._at_once = 0
        self._unproven = 0
        self._buffered = 0
        self._leaving = False
        self._pages: dict[str, Callable[[web.BaseRequest], web.Response]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
        }

    def use_secrets(self, secrets: tuple[bytes, ...]) -> None:
        """Take deliveries that are signed with any of these from now on."""
        self._secrets = secrets

    def runner(self) -> web.ServerRunner:
        """Return the server, ready to be set up and to listen."""
        # Without an application around it: its routing costs as much as a signature.
        server = Lines(
            self._serve,
            access_log=None,
            logger=_http_logger,
            # A compressed body is refused; unpacking it first would be the harm.
            auto_decompress=False,
            # Also the time that a new connection has for its first request line and headers.
            keepalive_timeout=self._limits.seconds,
            lingering_time=1.0,
        )
        return web.ServerRunner(server, shutdown_timeout=self._limits.seconds)

    def leave(self) -> None:
        """Tell the probe that no more deliveries should come; those that do are still taken."""
        self._leaving = True

    def _serve(self, request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        # Mostly it is the bare path, which needs no parsing.
        path = PATH if request.raw_path == PATH else request.path
        is_delivery = path == PATH and request.method == "POST"
        return self._deliver(request) if is_delivery else self._page(request)

    async def _page(self, request: web.BaseRequest) -> web.Response:
        if request.path == PATH:
            return _wrong("POST")
        page = self._pages.get(request.path)
        if page is None:
            return web.Response(text="not found\n", status=404)
        return page(request) if request.method in ("GET", "HEAD") else _wrong("GET, HEAD")

    async def _deliver(self, request: web.BaseRequest) -> Reply:
        began = time.perf_counter()
        event, result = "unproven", "refused"
        try:
            signature, content = _claimed(request), request.content
            is_here = content.is_eof() and content.exception() is None
            if is_here and content.total_bytes <= self._limits.body:
                body = content.read_nowait()  # nothing to wait for
            else:
                body = await self._body(request)
            if not is_signed(self._secrets, body, signature):
                raise _Refused(401, "X-Hub-Signature-256 does not match")
            event = request.headers.get("X-GitHub-Event", "")
            if self._at_once >= self._limits.at_once:
                raise _Refused(429, "too many deliveries at once")
            answer = self._heard(event, body, request)
            if not isinstance(answer, Answer):
                answer = await self._in_time(answer)
            reply, result = _said(event, answer, request), answer.result
        except _Refused as refused:
            reply = Reply(refused.status, error=refused.reason)
            _log(request, event, refused)
        self._numbers.count(event, reply.status, result, time.perf_counter() - began)
        return reply

    async def _body(self, request: web.BaseRequest) -> bytes:
        limit = self._limits.body
        if (request.content_length or 0) > limit:
            raise _Refused(413, "the body is too large")
        if self._unproven >= self._limits.unproven:
            raise _Refused(429, "too many bodies are waited for")
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # of the answer itself nothing was sent
        size = 0
        self._unproven += 1
        try:
            chunks: list[bytes] = []
            async with asyncio.timeout(self._limits.seconds):
                async for chunk in request.content.iter_any():
                    size += len(chunk)
                    self._buffered += len(chunk)
                    chunks.append(chunk)
                    if size > limit:
                        raise _Refused(413, "the body is too large")
                    if self._buffered > self._limits.buffered:
                        raise _Refused(429, "too many large deliveries at once")
            return b"".join(chunks)
        except TimeoutError:
            raise _Refused(408, "the body did not come in time") from None
        except (ConnectionError, web.PayloadAccessError, web.RequestPayloadError):
            raise _Refused(400, "the body broke off") from None
        finally:
            self._buffered -= size
            self._unproven -= 1

    def _heard(
        self, event: str, body: bytes, request: web.BaseRequest
    ) -> Answer | Awaitable[Answer]:
        if not event or not request.headers.get("X-GitHub-Delivery"):
            raise _Refused(400, "X-GitHub-Event or X-GitHub-Delivery is missing")
        try:
            hint = read_delivery(event, body)
            if isinstance(hint, Ignored):
                return Answer(Result.IGNORED, reason=hint.reason)
            if not self._is_ready():
                raise _Refused(503, "not ready yet")
            return self._receive(hint)
        except MalformedError as error:
            raise _Refused(400, str(error)) from None
        except CallError as error:
            raise _Refused(503, str(error)) from None

    async def _in_time(self, answer: Awaitable[Answer]) -> Answer:
        self._at_once += 1
        try:
            async with asyncio.timeout(self._limits.work):
                return await answer
        except TimeoutError:
            raise _Refused(503, f"not done within {self._limits.work:g} s") from None
        except CallError as error:
            raise _Refused(503, str(error)) from None
        finally:
            self._at_once -= 1

    def _healthz(self, _: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    def _readyz(self, _: web.BaseRequest) -> web.Response:
        ready = self._is_ready() and not self._leaving
        return web.Response(text="ok\n" if ready else "not ready\n", status=200 if ready else 503)

    def _metrics(self, request: web.BaseRequest) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})


def _claimed(request: web.BaseRequest) -> str:
    """Return the signature of what comes as GitHub's deliveries do."""
    headers = request.headers
    # Mostly it is the bare word, which needs no parsing.
    if headers.get("Content-Type") != _JSON and request.content_type != _JSON:
        raise _Refused(415, "the webhook's content type must be application/json")
    if headers.get("Content-Encoding", "identity") != "identity":
        raise _Refused(415, "compressed bodies are not taken")
    signature = headers.get("X-Hub-Signature-256")
    if not signature:
        raise _Refused(401, "X-Hub-Signature-256 is missing: give the webhook a secret")
    return signature


def _said(event: str, answer: Answer, request: web.BaseRequest) -> Reply:
    if answer.result is Result.IGNORED:
        return Reply(200, ignored=answer.reason)
    extra = {
        "delivery": request.headers["X-GitHub-Delivery"][:64],
        "event": event,
        "resource": answer.resource,
        "did": answer.reason,
    }
    logger.info("delivery taken", extra=extra)
    return Reply(202, resource=answer.resource, did=answer.reason)


def _wrong(allowed: str) -> web.Response:
    return web.Response(text=f"only {allowed}\n", status=405, headers={"Allow": allowed})


def _log(request: web.BaseRequest, event: str, refused: _Refused) -> None:
    extra = {
        "status": refused.status,
        "reason": refused.reason,
        "event": event[:64],
        "delivery": request.headers.get("X-GitHub-Delivery", "")[:64],
        "from": request.remote,
    }
    logger.warning("delivery refused", extra=extra)
