"""All rules in one list, and the one question: which of them are broken.

A rule is a function from evidence to violations; nothing else is needed to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from issuesandbox.local.checker.evidence import Evidence, Violation
from issuesandbox.local.checker.rules_bounds import (
    SILENCE_IN_TIME,
    STOP_IN_TIME,
    TIMEOUT_IN_TIME,
    silence_in_time,
    stop_in_time,
    timeout_in_time,
)
from issuesandbox.local.checker.rules_foreign import (
    all_labelled,
    foreign_comments_untouched,
    foreign_untouched,
)
from issuesandbox.local.checker.rules_paused import hands_off_while_paused
from issuesandbox.local.checker.rules_rest import (
    no_orphan,
    one_comment,
    one_pull_request,
    one_push,
)
from issuesandbox.local.checker.rules_runs import (
    gate_before_stop,
    no_pull_request_after_stop,
    no_work_saved_after_stop,
    outcome_once,
    push_through_gate,
)
from issuesandbox.local.checker.rules_sandboxes import (
    finalizer_last,
    id_before_use,
    one_live_sandbox,
)
from issuesandbox.local.checker.rules_secrets import no_secret

Rule = Callable[[Evidence], Iterator[Violation]]

ALWAYS: dict[str, Rule] = {
    "one-live-sandbox": one_live_sandbox,
    "id-before-use": id_before_use,
    "foreign-untouched": foreign_untouched,
    "foreign-comments-untouched": foreign_comments_untouched,
    "all-labelled": all_labelled,
    "finalizer-last": finalizer_last,
    "hands-off-while-paused": hands_off_while_paused,
    "outcome-once": outcome_once,
    "gate-before-stop": gate_before_stop,
    "push-through-gate": push_through_gate,
    "no-work-saved-after-stop": no_work_saved_after_stop,
    "no-pull-request-after-stop": no_pull_request_after_stop,
    "no-secret": no_secret,
}
BOUNDS: dict[str, Rule] = {
    STOP_IN_TIME: stop_in_time,
    TIMEOUT_IN_TIME: timeout_in_time,
    SILENCE_IN_TIME: silence_in_time,
}
AT_REST: dict[str, Rule] = {
    "no-orphan": no_orphan,
    "one-push": one_push,
    "one-pull-request": one_pull_request,
    "one-comment": one_comment,
}


def check(
    evidence: Evidence,
    *,
    at_rest: bool = True,
    bounds: bool = False,
    lapsed: Collection[str] = (),
) -> list[Violation]:
    """Name every violation, the oldest first.

    `bounds` asks for the bounds in time as well, except where a feature flag gives one up;
    `lapsed` names the rules that a test breaks on purpose.
    """
    rules = {**ALWAYS, **(AT_REST if at_rest else {}), **(BOUNDS if bounds else {})}
    unknown = set(lapsed) - set(ALWAYS) - set(AT_REST) - set(BOUNDS)
    if unknown:
        raise ValueError(f"no such rule: {', '.join(sorted(unknown))}")
    found = [
        violation
        for name, rule in rules.items()
        if name not in lapsed
        for violation in rule(evidence)
    ]
    return sorted(found, key=lambda violation: violation.at)
