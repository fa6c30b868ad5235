"""What the state machine chooses from: places, edits, misfortunes, weather and fates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.fakes.daytona import FakeDaytona, Outage, Row, Starts, Tells
from tests.fakes.operator_process import INSTALLATION
from tests.fakes.wire import Fate

from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.api.spec import Flags
from issuesandbox.domain.naming import Identity, sandbox_name, suffixed_name

NAME = sandbox_name(7)


@dataclass(frozen=True)
class Place:
    """Where a resource may be, and the repository of its issue 7."""

    namespace: str
    name: str
    repository: str

    def spec(self, **more: Any) -> dict[str, Any]:
        """Return the spec of a resource at this place."""
        return {"issue": {"repository": self.repository, "number": 7}, **more}


# Two repositories compete for one sandbox name; two resources stand for one issue.
PLACES = (
    Place("team", "hello", "octo/hello"),
    Place("team", "other", "octo/other"),
    Place("elsewhere", "hello", "Octo/Hello"),
)

EDITS: dict[str, dict[str, Any]] = {
    "want it stopped": {"spec": {"desiredState": "Stopped"}},
    "want it running": {"spec": {"desiredState": "Running"}},
    "label it": {"metadata": {"labels": {"team": "a"}}},
    "label it anew": {"metadata": {"labels": {"team": "b"}}},
    "pause it": {"metadata": {"annotations": {ANNOTATION_PAUSED: "true"}}},
    "let it go on": {"metadata": {"annotations": {ANNOTATION_PAUSED: None}}},
    "wipe its status": {"status": None},
}

MISFORTUNES: dict[str, Callable[[FakeDaytona, Row], None]] = {
    "it is stopped": lambda daytona, row: daytona.rest(row, "stopped"),
    "it is archived": lambda daytona, row: daytona.rest(row, "archived"),
    "it vanishes": lambda daytona, row: daytona.vanish(row),
    "it breaks": lambda daytona, row: daytona.break_down(row, recoverable=False),
    "it breaks recoverably": lambda daytona, row: daytona.break_down(row, recoverable=True),
    "it hangs": lambda daytona, row: daytona.hang(row),
}


def _set(**values: Any) -> Callable[[FakeDaytona], None]:
    def change(daytona: FakeDaytona) -> None:
        for name, value in values.items():
            setattr(daytona, name, value)

    return change


WEATHER: dict[str, Callable[[FakeDaytona], None]] = {
    "it answers GETs from a cache": _set(caches_gets=True),
    "it answers GETs freshly": _set(caches_gets=False),
    "it does not know at once what it made": _set(shy=True),
    "it knows at once what it made": _set(shy=False),
    "its list lags a little": _set(list_lag=5.0),
    "its list lags a lot": _set(list_lag=30.0),
    "its list is fresh": _set(list_lag=0.0),
    "its quota is used up": _set(quota=0),
    "it has room": _set(quota=None),
    "what it makes breaks": _set(cursed=True),
    "what it makes works": _set(cursed=False),
    "what it deletes keeps its name": _set(keeps_names=True),
    "what it deleted frees its name": FakeDaytona.free_names,
    "its starts have no effect": _set(starts=Starts.IDLE),
    "it refuses to start": _set(starts=Starts.REFUSED),
    "its starts work": _set(starts=Starts.WORK),
    "its answers tell no state": _set(tells=Tells.NOTHING),
    "its answers tell a state nobody knows": _set(tells=Tells.RIDDLES),
    "its answers tell the truth": _set(tells=Tells.TRUTH),
}

# Somebody else's sandboxes: without labels, of another installation, of ours but for another
# repository's issue 7; with the name we would choose, or the one we would move to.
_STRANGERS = (
    {},
    Identity("theirs", "far", "away", "uid-x", "octo/hello", 7).labels(NAME, 1),
    Identity(INSTALLATION, "far", "away", "uid-x", "octo/third", 7).labels(NAME, 1),
)
_SUFFIXED = suffixed_name(NAME, Identity(INSTALLATION, "", "", "", PLACES[0].repository, 7))

places = st.sampled_from(PLACES)
edits = st.sampled_from(list(EDITS))
misfortunes = st.sampled_from(list(MISFORTUNES))
weather = st.sampled_from(list(WEATHER))
outages = st.sampled_from(Outage)
strangers = st.sampled_from(_STRANGERS)
contested_names = st.sampled_from([NAME, _SUFFIXED])
_verbs = st.sampled_from(
    [
        "create",
        "delete",
        "patch",
        "patch_status",
        "get",
        "start",
        "stop",
        "recover",
        "relabel",
        "list",
        "note",
        "read",
        "organization",
    ]
)
_fates = st.sampled_from([each for each in Fate if each is not Fate.ARRIVES])
# What happens to the next call of each kind.
faults = st.one_of(
    st.dictionaries(st.just("create"), _fates, min_size=1),
    st.dictionaries(_verbs, _fates, max_size=3),
)
# Some are off for a resource: that must change nothing of what the oracle judges.
flags = st.dictionaries(
    st.sampled_from([str(each.alias) for each in Flags.model_fields.values()]),
    st.booleans(),
    max_size=2,
)
numbers = st.integers(min_value=0, max_value=5)
seconds = st.sampled_from([1.0, 3.0, 10.0, 16.0, 45.0, 125.0])
