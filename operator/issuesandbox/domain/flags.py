"""The five feature flags: for which issues each is on.

A flag is on for a share of all issues, so that a change can be tried on a few first. The share
is taken by a hash of the issue, the same for all flags: an issue in a small canary is in every
larger one, so that what a flag builds on is on where it is. Knows nothing of where a value comes
from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status_run import RunPhase

_WORDS = {"true": 100, "on": 100, "1": 100, "false": 0, "off": 0, "0": 0}


class Flag(StrEnum):
    """The flags, by the name of their setting."""

    DB_BACKED_STOP = "ENABLE_DB_BACKED_STOP"
    CANCELLATION_CHECKS = "ENABLE_CANCELLATION_CHECKS"
    HEALTH_PROBE = "ENABLE_HEALTH_PROBE"
    INACTIVITY_TIMEOUT = "ENABLE_INACTIVITY_TIMEOUT"
    AUTHORITATIVE_TIMEOUT = "ENABLE_AUTHORITATIVE_TIMEOUT"


NEEDS: Mapping[Flag, tuple[Flag, ...]] = {
    Flag.CANCELLATION_CHECKS: (Flag.DB_BACKED_STOP,),
    Flag.HEALTH_PROBE: (Flag.DB_BACKED_STOP,),
    Flag.INACTIVITY_TIMEOUT: (Flag.CANCELLATION_CHECKS,),
    Flag.AUTHORITATIVE_TIMEOUT: (Flag.DB_BACKED_STOP, Flag.CANCELLATION_CHECKS),
}
"""What each flag builds on. Without it the flag stays as set, with a warning: it is for people
to decide which half of a fix they want back."""


@dataclass(frozen=True, slots=True)
class FlagSet:
    """What is on for one resource."""

    db_backed_stop: bool = True
    cancellation_checks: bool = True
    health_probe: bool = True
    inactivity_timeout: bool = True
    authoritative_timeout: bool = True


ALL_ON = FlagSet()


@dataclass(frozen=True, slots=True)
class Flags:
    """The operator's flags: the percentage of issues for which each is on."""

    percent: Mapping[Flag, int] = field(default_factory=dict)

    def of(self, resource: IssueSandbox) -> FlagSet:
        """Return what is on for a resource: its own word first, then the canary's."""
        issue, own = resource.spec.issue, resource.spec.flags
        if own is None and all(share >= 100 for share in self.percent.values()):
            return ALL_ON
        place = place_of(issue.repository, issue.number)
        on = {}
        for flag in Flag:
            name = flag.name.lower()
            said = getattr(own, name) if own is not None else None
            on[name] = place < self._share(flag) if said is None else bool(said)
        return FlagSet(**on)

    def warnings(self) -> tuple[str, ...]:
        """Return one line for each flag that is on where what it builds on is not."""
        return tuple(
            f"{flag} is on for {self._share(flag)}% of issues, but {needed}, which it builds on, "
            f"for {self._share(needed)}% only"
            for flag, needs in NEEDS.items()
            for needed in needs
            if self._share(flag) > self._share(needed)
        )

    def _share(self, flag: Flag) -> int:
        return self.percent.get(flag, 100)


def unmet(flags: FlagSet) -> tuple[str, ...]:
    """Return one line for each flag that is on for a resource while what it builds on is not."""

    def is_on(flag: Flag) -> bool:
        return bool(getattr(flags, flag.name.lower()))

    return tuple(
        f"{flag} is on for this resource, but {needed}, which it builds on, is not"
        for flag, needs in NEEDS.items()
        for needed in needs
        if is_on(flag) and not is_on(needed)
    )


def is_deaf(flags: FlagSet, resource: IssueSandbox, *, begun_here: bool) -> bool:
    """Tell whether the present run hears no stop, as before the fixes: until its agent has ended.

    Without cancellation checks no run does; without stored stops only the process that began a
    run can stop it. A deletion is always heard, and a stop that is being carried out goes on.
    """
    status, run = resource.status, resource.status.run
    if resource.metadata.deletion_timestamp is not None or status.stop_requested_at is not None:
        return False
    if run is None or run.outcome is not None:
        return False
    if run.phase not in (RunPhase.PREPARING, RunPhase.EXECUTING):
        return False
    return not flags.cancellation_checks or not (flags.db_backed_stop or begun_here)


def place_of(repository: str, number: int) -> int:
    """Return the issue's place in every canary, from 0 (in all) to 99 (in the full one only)."""
    digest = hashlib.sha256(f"{repository.lower()}#{number}".encode()).digest()
    return int.from_bytes(digest[:8]) % 100


def parse_share(text: str) -> int:
    """Return the percentage that `true`, `false` or a text such as `10%` stands for."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    match = re.fullmatch(r"(\d{1,3})%", word)
    if match is None or int(match[1]) > 100:
        raise ValueError("must be true, false or a percentage from 0% to 100%")
    return int(match[1])
