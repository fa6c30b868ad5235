"""Sends signed webhooks, and loses, repeats, reorders or delays them when told to.

Events of one issue are sent one after the other, those of different issues side by side. Knows
nothing of what an event means.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

import aiohttp

from issuesandbox.clock import Clock
from issuesandbox.local.github.deliveries import Attempt, DeliveryLog, Message
from issuesandbox.local.github.journal import Journal
from issuesandbox.local.github.model import App
from issuesandbox.local.github.store import Store

_LONGEST_ANSWER = 64 * 1024


class Twist(StrEnum):
    """What can go wrong with a delivery on its way."""

    LOSE = "lose"
    REPEAT = "repeat"
    REORDER = "reorder"
    DELAY = "delay"


@dataclass
class Rule:
    """A twist for the next deliveries whose event matches."""

    kind: Twist
    count: int = 1
    event: str = "*"
    times: int = 1
    seconds: float = 0.0
    # A lost delivery that GitHub knows of is in its log as failed; one that a proxy swallowed
    # after accepting it is there as delivered.
    noticed: bool = True
    seed: int | None = None
    held: list[Message] = field(default_factory=list)


class Webhooks:
    """The way of every event from the simulator to the receiver."""

    def __init__(self, store: Store, clock: Clock, journal: Journal, timeout: float) -> None:
        self.log = DeliveryLog(store.folder.db)
        self.rules: list[Rule] = []
        self._store, self._clock, self._journal = store, clock, journal
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_of: dict[tuple[int | None, int | None], asyncio.Task[None]] = {}
        self._turn = 0

    def publish(self, message: Message) -> None:
        """Send an event to the App's webhook, subject to the rules."""
        if not self._store.app().webhook_urls:
            return
        rule = next((rule for rule in self.rules if fnmatchcase(message.event, rule.event)), None)
        if rule is None:
            self._in_order(message)
            return
        rule.count -= 1
        if rule.count <= 0:
            self.rules.remove(rule)
        self._twisted(rule, message)

    def redeliver(self, message: Message) -> None:
        """Send a message again with its old guid."""
        self._start(self._send(message, redelivery=True))

    async def send_to(self, url: str, secret: str, message: Message) -> Attempt:
        """Send one message to any address and return how it went."""
        return await self._attempt(url, secret, message)

    async def drain(self) -> None:
        """Send what is held back, and wait until nothing is on its way."""
        for rule in [rule for rule in self.rules if rule.held]:
            self.rules.remove(rule)
            self._release(rule)
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def close(self) -> None:
        """Stop sending."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    @property
    def pending(self) -> int:
        """Return how many deliveries are on their way or held back."""
        return len(self._tasks) + sum(len(rule.held) for rule in self.rules)

    def _twisted(self, rule: Rule, message: Message) -> None:
        if rule.kind is Twist.LOSE:
            self._lose(message, noticed=rule.noticed)
        elif rule.kind is Twist.REPEAT:
            for _ in range(1 + rule.times):
                self._in_order(message)
        elif rule.kind is Twist.DELAY:
            self._start(self._send_later(message, rule.seconds))
        else:
            rule.held.append(message)
            if rule.count <= 0:
                self._release(rule)

    def _release(self, rule: Rule) -> None:
        if rule.seed is None:
            rule.held.reverse()
        else:
            random.Random(rule.seed).shuffle(rule.held)  # noqa: S311 - repeatable on purpose
        self._start(self._send_all(list(rule.held)))
        rule.held.clear()

    def _lose(self, message: Message, *, noticed: bool) -> None:
        app = self._store.app()
        status = ("failed to connect to host", 0) if noticed else ("OK", 200)
        headers = self._headers(app, app.webhook_secret, message)
        attempt = Attempt(
            app.webhook_urls[0], self._clock.now(), 0.0, *status, headers, {}, response_body=""
        )
        self._record(message, attempt, lost=True)

    def _in_order(self, message: Message) -> None:
        key = (message.repository_id, message.number)
        task = self._start(self._send_after(self._last_of.get(key), message))
        self._last_of[key] = task

        def forget(done: asyncio.Task[None]) -> None:
            if self._last_of.get(key) is done:
                del self._last_of[key]

        task.add_done_callback(forget)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send_after(self, earlier: asyncio.Task[None] | None, message: Message) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        await self._send(message)

    async def _send_later(self, message: Message, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._send(message)

    async def _send_all(self, messages: list[Message]) -> None:
        for message in messages:
            await self._send(message)

    async def _send(self, message: Message, *, redelivery: bool = False) -> None:
        app = self._store.app()
        if not app.webhook_urls:
            return
        url = app.webhook_urls[self._turn % len(app.webhook_urls)]
        self._turn += 1
        attempt = await self._attempt(url, app.webhook_secret, message, redelivery=redelivery)
        self._record(message, attempt)

    async def _attempt(
        self, url: str, secret: str, message: Message, *, redelivery: bool = False
    ) -> Attempt:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        headers = self._headers(self._store.app(), secret, message)
        at, started = self._clock.now(), self._clock.monotonic()

        def ended(status: str, code: int, got: dict[str, str], body: str) -> Attempt:
            duration = round(self._clock.monotonic() - started, 3)
            return Attempt(url, at, duration, status, code, headers, got, body, redelivery)

        return await _post(self._session, url, headers, message.body, ended)

    def _headers(self, app: App, secret: str, message: Message) -> dict[str, str]:
        headers = {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/simulator",
            "X-GitHub-Delivery": message.guid,
            "X-GitHub-Event": message.event,
            "X-GitHub-Hook-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
        }
        if secret:
            digest = hmac.new(secret.encode(), message.body, hashlib.sha256).hexdigest()
            headers["X-Hub-Signature-256"] = f"sha256={digest}"
        return headers

    def _record(self, message: Message, attempt: Attempt, *, lost: bool = False) -> None:
        number = self.log.attempts(message.guid) + 1
        self.log.add(self._store.new_id(), message, attempt)
        entry = {
            "guid": message.guid,
            "event": message.event,
            "action": message.action,
            "number": message.number,
            "status": attempt.status_code,
            "attempt": number,
            "lost": lost,
        }
        self._journal.append("delivery", attempt.at, entry)


async def _post(
    session: aiohttp.ClientSession,
    url: str,
    headers: dict[str, str],
    body: bytes,
    ended: Callable[[str, int, dict[str, str], str], Attempt],
) -> Attempt:
    try:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            text = (await response.content.read(_LONGEST_ANSWER)).decode(errors="replace")
            good = 200 <= response.status < 300
            status = "OK" if good else f"Invalid HTTP Response: {response.status}"
            return ended(status, response.status, dict(response.headers), text)
    except TimeoutError:
        return ended("timed out", 0, {}, "")
    except (aiohttp.ClientError, OSError, ValueError):
        return ended("failed to connect to host", 0, {}, "")
