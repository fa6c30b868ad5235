"""Secrets of the webhook adapter that change while it runs: their files are read every 3 s."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from issuesandbox.entry.logs import configure_logs
from issuesandbox.entry.webhook.settings import WebhookSettings
from issuesandbox.ports.errors import IssueSandboxError

logger = logging.getLogger(__name__)

_TICK = 3.0


class Rotation:
    """Tells of new secrets; ones that cannot be used change nothing and are told once."""

    def __init__(
        self,
        settings: WebhookSettings,
        load: Callable[[], WebhookSettings],
        adopt: Callable[[WebhookSettings], None],
    ) -> None:
        self._secrets = settings.secrets()
        self._load = load
        self._adopt = adopt
        self._problem: str | None = None

    async def run(self) -> None:
        """Look for new secrets until cancelled."""
        while True:
            await asyncio.sleep(_TICK)
            self.look()

    def look(self) -> None:
        """Look once."""
        try:
            settings = self._load()
            settings.identity  # noqa: B018 - raises if the key cannot be used
        except IssueSandboxError as error:
            if str(error) != self._problem:
                logger.error("settings refused", extra={"error": str(error)})
            self._problem = str(error)
            return
        self._problem = None
        if settings.secrets() == self._secrets:
            return
        self._secrets = settings.secrets()
        # Before anything uses them: they must not be shown.
        configure_logs(settings.log_format, settings.log_level, settings.secrets())
        self._adopt(settings)
        logger.info("secrets changed")
