"""What goes to stdout: one JSON object per line, its ids and key order drawn from a seed.

Knows the shape of a line, not when which line is due.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256


class Seed:
    """Repeatable ids and figures: each draw depends on the seed and on the draws before it."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._drawn = 0

    def hex(self) -> str:
        """Draw 64 hexadecimal digits."""
        self._drawn += 1
        return sha256(f"{self._drawn}:{self._seed}".encode("utf-8", "replace")).hexdigest()

    def uuid(self) -> str:
        """Draw an id in the shape of a version 4 UUID."""
        digits = self.hex()
        return "-".join(
            (digits[:8], digits[8:12], "4" + digits[13:16], "8" + digits[17:20], digits[20:32])
        )

    def fraction(self) -> float:
        """Draw a number from 0 up to 1."""
        return int(self.hex()[:8], 16) / 2**32


class Stdout:
    """Bytes to a descriptor; a reader that went away does not end the run, the output is lost."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._gone = False
        self._within_line = False

    def write(self, data: bytes) -> None:
        """Write everything, or lose it if nobody reads any more."""
        view = memoryview(data)
        while view and not self._gone:
            self._within_line = True
            try:
                view = view[os.write(self._descriptor, view) :]
            except OSError:
                self._gone = True
        self._within_line = not data.endswith(b"\n")

    def finish_line(self) -> None:
        """End a line that a signal interrupted, so that the next one can be parsed."""
        if self._within_line:
            self.write(b"\n")


class Stream:
    """The lines of one run, in the chosen output format."""

    def __init__(self, stdout: Stdout, output_format: str, seed: Seed) -> None:
        self.stdout = stdout
        self.session_id = ""
        self._format = output_format
        self._seed = seed

    def emit(self, kind: str, **fields: object) -> None:
        """Print one line of a type; the plain formats print nothing but the result."""
        line = {"type": kind, **fields, "session_id": self.session_id, "uuid": self._seed.uuid()}
        if self._format == "stream-json" or (self._format == "json" and kind == "result"):
            self.stdout.write(self._encode(line))
        elif kind == "result":
            self.stdout.write(f"{fields.get('result', '')}\n".encode("utf-8", "replace"))

    def _encode(self, line: dict[str, object]) -> bytes:
        # The real CLI's key order varies, and its result line never begins with `type`.
        drawn = self._seed.hex()
        keys = sorted(line, key=lambda key: sha256(f"{drawn}{key}".encode()).digest())
        if line["type"] == "result" and keys[0] == "type":
            keys.append(keys.pop(0))
        shuffled = {key: line[key] for key in keys}
        text = json.dumps(shuffled, ensure_ascii=False, separators=(",", ":"))
        return f"{text}\n".encode("utf-8", "replace")
