"""Whether the environment sends an address through a proxy. Asked once per session.

aiohttp would ask the environment again for every request, in a thread: that costs as much as the
request itself. Knows nothing of who is called.
"""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def behind_proxy(address: str) -> bool:
    """Tell whether the usual variables name a proxy for an address and do not exempt its host."""
    parts = urlsplit(address)
    return parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")
