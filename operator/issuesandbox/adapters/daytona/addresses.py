"""Where the toolbox of each sandbox answers: every look at a sandbox tells.

Shared by the two clients of Daytona, so that a run that begins in a new sandbox need not ask again,
and a kill need not ask at all. An address that cannot be used is not kept.
"""

from __future__ import annotations

import msgspec

_MOST = 10_000


class _Told(msgspec.Struct, rename="camel"):
    id: str = ""
    toolbox_proxy_url: str = ""


class ToolboxAddresses:
    """What was told last, of the newest sandboxes."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}

    def get(self, sandbox_id: str) -> str | None:
        """Return the address for a sandbox, if it is known."""
        return self._addresses.get(sandbox_id)

    def learn(self, body: bytes) -> None:
        """Take note of what Daytona tells of a sandbox; what cannot be read tells nothing."""
        try:
            told = msgspec.json.decode(body, type=_Told)
        except msgspec.MsgspecError:
            return
        address = told.toolbox_proxy_url.rstrip("/")
        if not told.id or not address.startswith(("http://", "https://")):
            return
        if len(self._addresses) >= _MOST:
            self._addresses.clear()
        self._addresses[told.id] = address

    def forget(self, sandbox_id: str) -> None:
        """Drop an address that did not answer: the sandbox may have moved."""
        self._addresses.pop(sandbox_id, None)
