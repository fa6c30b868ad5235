"""Free ports on the loopback address, asked from the kernel.

A port can be lost between the question and its use; whoever starts a server tries again then.
"""

from __future__ import annotations

import os
import socket

from issuesandbox.local.control_plane.errors import ControlPlaneError

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Return that many different ports that were free a moment ago."""
    sockets = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    try:
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def require_free(port: int) -> None:
    """Refuse a port that was asked for and is taken."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        raise ControlPlaneError(
            f"port {port} cannot be used ({os.strerror(error.errno or 0)}); "
            "give another with --port or leave it out for a free one"
        ) from error
