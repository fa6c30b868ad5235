"""Puts the simulated GitHub together and serves it, in any event loop.

The only place that knows all parts.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from issuesandbox.clock import Clock, SystemClock
from issuesandbox.local.github import (
    admin_chaos,
    admin_people,
    admin_setup,
    graphql,
    rest_apps,
    rest_comments,
    rest_issues,
    rest_labels,
    rest_pulls,
    rest_refs,
    rest_repositories,
)
from issuesandbox.local.github.acts_repositories import ensure_account
from issuesandbox.local.github.addresses import Links
from issuesandbox.local.github.admin import ADMIN_PREFIX, add_admin_routes
from issuesandbox.local.github.answers import not_found
from issuesandbox.local.github.calls import add_routes
from issuesandbox.local.github.errors import SimulatorError, StateDamagedError
from issuesandbox.local.github.gate import Exchange, Gate
from issuesandbox.local.github.git_http import GitHttp
from issuesandbox.local.github.model import AccountKind, App
from issuesandbox.local.github.pages import add_pages
from issuesandbox.local.github.store import StateFolder, Store
from issuesandbox.local.github.tokens import Scope, new_private_key, public_key_of
from issuesandbox.local.github.world import World

# Every call that GitHub's own clients can make here.
REST_ROUTES = (
    *graphql.ROUTES,
    *rest_apps.ROUTES,
    *rest_repositories.ROUTES,
    *rest_refs.ROUTES,
    *rest_comments.ROUTES,
    *rest_issues.ROUTES,
    *rest_labels.ROUTES,
    *rest_pulls.ROUTES,
)
APP_SLUG = "issuesandbox"
KEY_FILE = "app.private-key.pem"
_PERMISSIONS = {
    "contents": "write",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
}
_EVENTS = ("issues", "issue_comment", "pull_request", "push")
_LONGEST_BODY = 10 * 1024 * 1024


@dataclass(frozen=True)
class GitHubConfig:
    """How a simulator is started; tokens map a value to the login of an administrator."""

    host: str = "127.0.0.1"
    port: int = 0
    state: Path | None = None
    tokens: Mapping[str, str] = field(default_factory=dict)
    webhook_urls: tuple[str, ...] = ()
    webhook_secret: str = ""
    webhook_timeout: float = 10.0
    admin: bool = True
    app_private_key: str | None = None


class GitHubSimulator:
    """A GitHub for as long as the `async with` block runs."""

    def __init__(self, config: GitHubConfig, clock: Clock | None = None) -> None:
        self._config = config
        self._clock = clock or SystemClock()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._folder: StateFolder | None = None
        self._runner: web.AppRunner | None = None
        self._git: GitHttp | None = None
        self.world: World
        self.url = ""

    @property
    def admin_url(self) -> str:
        """Return the address of the admin API."""
        return self.url + ADMIN_PREFIX

    @property
    def app_id(self) -> int:
        """Return the App's id, for GITHUB_APP_ID."""
        return self.world.store.app().id

    @property
    def app_private_key(self) -> str:
        """Return the App's private key, for GITHUB_APP_PRIVATE_KEY."""
        return self.key_file.read_text()

    @property
    def key_file(self) -> Path:
        """Return where the App's private key lies."""
        return self.world.store.folder.path / KEY_FILE

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    async def _start(self) -> None:
        path = self._config.state
        if path is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="issuesandbox-github-")
            path = Path(self._temporary.name)
        try:
            self._folder = StateFolder(path.resolve())
        except OSError as error:
            raise SimulatorError(f"state folder {path} cannot be used: {error.strerror}") from error
        store = Store(self._folder)
        self.world = World(store, self._clock, Links("", ""), self._config.webhook_timeout)
        self._check_repositories()
        gate = Gate(self.world)
        app = self._application(gate)

        async def drop_held(_: web.Application) -> None:
            await gate.faults.close()

        app.on_shutdown.append(drop_held)
        self._furnish()
        await self._listen(app)

    def _check_repositories(self) -> None:
        for repository in self.world.store.repositories:
            if not (self.world.git.path(repository.id) / "HEAD").exists():
                name = self.world.store.full_name(repository)
                raise StateDamagedError(
                    f"state folder {self.world.store.folder.path} has lost the git data of {name}: "
                    "restore it, or move it away to start afresh; nothing was changed"
                )

    def _application(self, gate: Gate) -> web.Application:
        app = web.Application(client_max_size=_LONGEST_BODY)
        if self._config.admin:
            for admin in (admin_setup, admin_people, admin_chaos):
                add_admin_routes(app, gate, admin.ROUTES)
            add_pages(app, self.world)
        add_routes(app, gate, REST_ROUTES)
        self._git = GitHttp(gate)
        self._git.add_routes(app)

        async def unknown(_: Exchange) -> web.StreamResponse:
            raise not_found()

        app.router.add_route("*", "/{tail:.*}", gate.handler("unknown", unknown))
        return app

    def _furnish(self) -> None:
        """Make the App once, and apply what the command line says each time."""
        config, store = self._config, self.world.store
        if not list(store.apps):
            self._make_app()
        elif config.app_private_key is not None:
            store.apps.put(replace(store.app(), public_key=self._keep_key(config.app_private_key)))
        if config.webhook_urls:
            store.apps.put(
                replace(
                    store.app(),
                    webhook_urls=config.webhook_urls,
                    webhook_secret=config.webhook_secret,
                )
            )
        for value, login in config.tokens.items():
            account = ensure_account(self.world, login, site_admin=True)
            self.world.tokens.for_user(account, Scope(), value)

    def _keep_key(self, private: str) -> str:
        """Write the App's private key where only its owner reads it; return the public half."""
        descriptor = os.open(self.key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(private)
        return public_key_of(private)

    def _make_app(self) -> None:
        public = self._keep_key(self._config.app_private_key or new_private_key())
        store = self.world.store
        owner = ensure_account(self.world, "issuesandbox-team", AccountKind.ORGANIZATION)
        bot = ensure_account(self.world, f"{APP_SLUG}[bot]", AccountKind.BOT)
        store.apps.put(
            App(
                id=store.new_id(),
                slug=APP_SLUG,
                owner_id=owner.id,
                bot_id=bot.id,
                public_key=public,
                permissions=_PERMISSIONS,
                events=_EVENTS,
                created_at=self.world.now(),
            )
        )

    async def _listen(self, app: web.Application) -> None:
        config = self._config
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, config.host, config.port)
        try:
            await site.start()
        except OSError as error:
            raise SimulatorError(
                f"cannot listen on {config.host}:{config.port} ({error.strerror}): "
                "choose another port"
            ) from error
        port = self._runner.addresses[0][1]
        self.url = f"http://{config.host}:{port}"
        self.world.links = Links(self.url, self.url)

    async def _stop(self) -> None:
        if self._git is not None:
            self._git.close()
        if self._runner is not None:
            await self._runner.cleanup()
        if hasattr(self, "world"):
            await self.world.webhooks.close()
        if self._folder is not None:
            self._folder.close()
        if self._temporary is not None:
            await asyncio.to_thread(self._temporary.cleanup)
