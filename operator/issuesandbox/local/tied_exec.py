"""Becomes another program after tying its life to the parent's, run as a script by `spawn`.

The kernel's parent-death signal has to be set in the child between fork and exec; doing it here
instead of in a `preexec_fn` keeps Python code out of a forked, possibly threaded, parent. Knows
nothing of what it starts, and imports little because it runs before every child.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to the parent whose id comes first, then become the command after it."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the tie was made
            sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - a list from our own code, no shell
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
