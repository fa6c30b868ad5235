"""The numbers that are counted: their names, labels and meanings.

No label holds the name of an object, so the size never grows with the number of resources. What
is known beforehand is shown as zero from the start: a counter that appears with its first
occurrence hides exactly that one from a rate. Knows nothing of who counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

_QUICK: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_STOPS: Final = (
    0.5,
    1.0,
    2.0,
    3.0,
    4.0,
    5.0,
    7.5,
    10.0,
    15.0,
    20.0,
    30.0,
    45.0,
    60.0,
    120.0,
    300.0,
)
_STALLS: Final = (
    5.0,
    15.0,
    30.0,
    45.0,
    55.0,
    58.0,
    60.0,
    61.0,
    62.0,
    64.0,
    70.0,
    90.0,
    180.0,
    600.0,
)
_RUNS: Final = (5.0, 15.0, 30.0, 60.0, 120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1800.0, 3600.0)

OUTCOMES: Final = ("Succeeded", "Failed", "Cancelled", "TimedOut")
CALLS: Final = (
    *("get", "list", "organization", "create", "start", "stop", "recover", "delete", "archive"),
    *("relabel", "renew", "toolbox"),
)
OK: Final = "ok"


@dataclass(frozen=True, slots=True)
class Family:
    """A counter, or a histogram where it has bounds."""

    name: str
    text: str
    labels: tuple[str, ...] = ()
    known: tuple[tuple[str, ...], ...] = ((),)
    """Values of the labels that are there from the start."""
    bounds: tuple[float, ...] = ()


def _counter(name: str, text: str, **labels: tuple[str, ...]) -> Family:
    return Family(name, text, tuple(labels), tuple(product(*labels.values())))


def _spread(name: str, text: str, bounds: tuple[float, ...], **labels: tuple[str, ...]) -> Family:
    return Family(name, text, tuple(labels), tuple(product(*labels.values())), bounds)


QUEUE_WAIT: Final = _spread("queue_wait_seconds", "How long a due pass waited.", _QUICK)
PASS_TIME: Final = _spread("pass_seconds", "How long a pass took.", _QUICK)
PASSES: Final = _counter(
    "passes", "Passes by result.", result=("ok", "conflict", "not_in_charge", "gone", "error")
)
CALLS_MADE: Final = _counter(
    "daytona_calls",
    "Calls to Daytona; `result` is `ok` or the kind of failure.",
    call=CALLS,
    result=(OK,),
)
CALL_TIME: Final = _spread("daytona_call_seconds", "How long they took.", _QUICK, call=CALLS)
CREATES: Final = _counter(
    "creates", "Sandboxes asked for: `ok` or the kind of failure.", result=(OK,)
)
ATTEMPTS: Final = _counter(
    "attempts",
    "Sandboxes that a resource got: its `first`, or `another` one.",
    attempt=("first", "another"),
)
RECOVERIES: Final = _counter(
    "recoveries",
    "Steps of the recovery ladder: `start`, `recover`, `replace`.",
    rung=("start", "recover", "replace"),
    result=(OK, "failed"),
)
WORK: Final = _counter(
    "work",
    "Unpublished work before a sandbox was given up: `saved`, `lost`.",
    result=("saved", "lost"),
)
RUNS: Final = Family(
    "runs", "Finished runs.", ("outcome", "reason"), (("Succeeded", "PullRequest"),)
)
RUN_TIME: Final = _spread(
    "run_seconds", "How long they took, from Preparing.", _RUNS, outcome=OUTCOMES
)
LIMITS: Final = _counter(
    "limits_hit",
    "Runs ended by a limit: `inactivity`, `agent`, `run`.",
    limit=("inactivity", "agent", "run"),
)
STALLS: Final = _spread(
    "stall_detection_seconds", "From the last output to the end of a silent agent.", _STALLS
)
FALSE_STALLS: Final = _counter(
    "inactivity_doubts",
    "Runs that succeeded right after one that inactivity had ended: it may have been too early.",
)
PROBES: Final = _counter(
    "health_probes",
    "Probes of a sandbox before use: `healthy`, `unhealthy`.",
    result=("healthy", "unhealthy"),
)
RESUMES: Final = _counter(
    "session_resumes", "Sessions of the agent taken up again: `ok`, `lost`.", result=(OK, "lost")
)
INSTALLS: Final = _counter(
    "cli_installs",
    "Installations of a missing agent: `ok`, `failed`, `again`.",
    result=(OK, "failed", "again"),
)
STOPS: Final = _counter(
    "stops",
    "Stops asked for: `confirmed`, `failed`, `too_late`, `not_asked`.",
    result=("confirmed", "failed", "too_late", "not_asked"),
)
CROSS_STOPS: Final = _counter(
    "cross_process_stops",
    "Stops of runs that another process began: `confirmed`, `failed`.",
    result=("confirmed", "failed"),
)
STOP_LOOKUP: Final = _spread(
    "stop_lookup_seconds", "From the request to the moment it is noticed.", _STOPS
)
STOP_RESPONSE: Final = _spread(
    "stop_response_seconds", "From the request to the end of the agent.", _STOPS
)
STOP_CONFIRM: Final = _spread(
    "stop_confirm_seconds", "From the request to a sandbox confirmed not running.", _STOPS
)
TIMEOUT_CLEANUPS: Final = _counter(
    "timeout_cleanups",
    "Sandboxes of runs out of time: `confirmed`, `failed`.",
    result=("confirmed", "failed"),
)
TIMEOUT_CLEANUP_TIME: Final = _spread(
    "timeout_cleanup_seconds", "From the time-out to a sandbox confirmed not running.", _STOPS
)
LATE_RESULTS: Final = _counter(
    "late_results",
    "Results after the end of their run: `ignored` (saved, never published), `taken` (a fault).",
    result=("ignored", "taken"),
)
PUBLISHES: Final = _counter(
    "publishes",
    "Pushes and pull requests by result.",
    result=("pull_request", "pushed", "too_late", "moved", "no_pull_request", "failed"),
)
DELETIONS: Final = _counter(
    "sandbox_deletions",
    "Deletions after a run: `deleted`, `gone`, `skipped`, `failed`.",
    result=("deleted", "gone", "skipped", "failed"),
)
DELETION_RETRIES: Final = _counter(
    "sandbox_deletion_retries", "Further tries of deletions after a run."
)
DELETION_TIME: Final = _spread(
    "sandbox_deletion_seconds", "From the first try to a sandbox confirmed gone.", _STOPS
)
AUDITS: Final = _counter(
    "push_audits",
    "Stopped or timed-out runs whose branch the auditor looked at on the remote: `clean`, "
    "`pushed`, or `unknown` where the remote did not tell.",
    result=("clean", "pushed", "unknown"),
)
PUSH_AFTER_STOP: Final = _counter(
    "push_after_stop",
    "Pushes later than the stop of their run, found by the auditor. Must stay 0.",
)
PUSH_AFTER_TIMEOUT: Final = _counter(
    "push_after_timeout", "Pushes later than the time-out of their run. Must stay 0."
)

FAMILIES: Final = (
    *(QUEUE_WAIT, PASS_TIME, PASSES, CALLS_MADE, CALL_TIME, CREATES, ATTEMPTS, RECOVERIES, WORK),
    *(
        RUNS,
        RUN_TIME,
        LIMITS,
        STALLS,
        FALSE_STALLS,
        PROBES,
        RESUMES,
        INSTALLS,
        STOPS,
        CROSS_STOPS,
        STOP_LOOKUP,
    ),
    *(STOP_RESPONSE, STOP_CONFIRM, TIMEOUT_CLEANUPS, TIMEOUT_CLEANUP_TIME, LATE_RESULTS),
    *(PUBLISHES, DELETIONS, DELETION_RETRIES, DELETION_TIME),
    *(AUDITS, PUSH_AFTER_STOP, PUSH_AFTER_TIMEOUT),
)
