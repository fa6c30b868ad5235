"""Judges each ref of a push inside `git receive-pack`, as its proc-receive hook.

Runs as a child of git with the standard library alone, so it imports nothing of this package
when executed. Git asks it about every ref after the objects arrived and before any ref moves;
only this hook can give a reason per ref, which is how GitHub refuses. What it accepts it hands
back to git, whose own compare-and-swap then moves the ref.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import BinaryIO

ACCEPTED = "ISSUESANDBOX_ACCEPTED"
REFUSED = "ISSUESANDBOX_REFUSED"
PROTECTED = "ISSUESANDBOX_PROTECTED"
WORKFLOW_REASON = "ISSUESANDBOX_WORKFLOW_REASON"

_WORKFLOWS = ".github/workflows"
_ZERO = "0" * 40


def _read_packets(stream: BinaryIO) -> list[str]:
    packets: list[str] = []
    while True:
        size = int(stream.read(4), 16)
        if size == 0:
            return packets
        packets.append(stream.read(size - 4).decode().rstrip("\n"))


def _write_packets(stream: BinaryIO, *packets: str) -> None:
    for packet in packets:
        data = packet.encode()
        stream.write(f"{len(data) + 4:04x}".encode() + data)
    stream.write(b"0000")
    stream.flush()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    return done.stdout.decode(errors="replace")


def _changed_workflow(new: str) -> str:
    # Only commits that no ref has yet are the pusher's own doing.
    names = _git(
        *("log", "-m", "--format=", "--name-only", "-z", "--no-renames"),
        *(new, "--not", "--all", "--", _WORKFLOWS),
    )
    return next((name for name in names.split("\0") if name.strip()), "").strip("\n")


def _refusal(old: str, new: str, ref: str) -> str:
    """Return why GitHub would refuse this update, or nothing."""
    if ref in os.environ.get(PROTECTED, "").split("\n"):
        sys.stderr.write(
            f"error: GH006: Protected branch update failed for {ref}.\n"
            "error: Changes must be made through a pull request.\n"
        )
        return "protected branch hook declined"
    now = _git("rev-parse", "--verify", "--quiet", ref).strip() or _ZERO
    if now != old:
        if old == _ZERO:
            return f"cannot lock ref '{ref}': reference already exists"
        if now == _ZERO:
            return f"cannot lock ref '{ref}': unable to resolve reference '{ref}'"
        return f"cannot lock ref '{ref}': is at {now} but expected {old}"
    reason = os.environ.get(WORKFLOW_REASON, "")
    workflow = _changed_workflow(new) if reason and new != _ZERO else ""
    return reason.replace("{workflow}", workflow) if workflow else ""


def main() -> None:
    """Speak git's proc-receive protocol on standard input and output."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    _read_packets(source)
    _write_packets(target, "version=1\0")
    report = []
    for command in _read_packets(source):
        old, new, ref = command.split(" ", 2)
        reason = _refusal(old, new, ref)
        if reason:
            report.append(f"ng {ref} {reason}")
            with open(os.environ[REFUSED], "a", encoding="utf-8") as refused:
                refused.write(f"{ref} {reason}\n")
        else:
            report += [f"ok {ref}", "option fall-through"]
    _write_packets(target, *report)


if __name__ == "__main__":
    main()
