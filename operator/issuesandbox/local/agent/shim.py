"""Puts the scripted agent on a PATH under the name of the real one.

Knows where the program lies, nothing of what it does.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

# The file and not the folder: running a folder costs 10 ms more.
PROGRAM = Path(__file__).parent / "scripted" / "__main__.py"


def agent_command() -> list[str]:
    """Return the command that starts the agent, also where this package is not installed."""
    # -I and -S keep a checked-out repository and site-packages out, and halve the start-up time.
    return [sys.executable, "-I", "-S", str(PROGRAM)]


def install_claude(bin_dir: Path) -> Path:
    """Write an executable `claude` into a folder meant for a sandbox's PATH, and return it."""
    bin_dir.mkdir(parents=True, exist_ok=True)
    shim = bin_dir / "claude"
    shim.write_text(f'#!/bin/sh\nexec {shlex.join(agent_command())} "$@"\n')
    shim.chmod(0o755)
    return shim
