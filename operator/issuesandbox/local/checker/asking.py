"""Asks those who know something for the evidence; without an answer nothing can be judged."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import aiohttp


class CollectError(Exception):
    """A source that did not tell what it knows; without it nothing can be judged."""


@dataclass(frozen=True)
class Asking:
    """Asks over one connection."""

    session: aiohttp.ClientSession

    async def text(self, url: str, *, missing: str | None = None, **request: Any) -> str:
        """Return an answer; `missing` is what a 404 stands for."""
        method = "POST" if "json" in request else "GET"
        try:
            async with self.session.request(method, url, **request) as response:
                text = await response.text()
        except aiohttp.ClientError as error:
            raise CollectError(f"{url} does not answer: {error}") from error
        if response.status == 404 and missing is not None:
            return missing
        if response.status != 200:
            raise CollectError(f"{url} answered {response.status}: clear all faults before the end")
        return text

    async def json(self, url: str, **request: Any) -> Any:
        """Return an answer that is JSON."""
        return json.loads(await self.text(url, **request))

    async def text_if_up(self, url: str) -> str:
        """Return an answer, empty if nobody is there any more."""
        try:
            return await self.text(url)
        except CollectError:
            return ""
