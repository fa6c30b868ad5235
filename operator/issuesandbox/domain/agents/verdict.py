"""Whether an agent did its job: its own word and its exit code, taken together.

An exit code alone is no verdict (an interrupted `claude` ends with 0), nor is a `subtype` (API
failures say `success`). Only asked when the process has ended: a result line is not the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from issuesandbox.api.status_run import Outcome
from issuesandbox.domain.agents.facts import AgentFacts
from issuesandbox.domain.supervision import EndedBy

LONGEST_SAID: Final = 20_000
_ENDED: Final = {
    EndedBy.INACTIVITY: (
        Outcome.TIMED_OUT,
        "InactivityTimeout",
        "The agent gave no sign of life for longer than limits.inactivity and was ended.",
    ),
    EndedBy.AGENT: (
        Outcome.TIMED_OUT,
        "AgentTimeout",
        "The agent ran for longer than limits.agent and was ended.",
    ),
    EndedBy.RUN: (
        Outcome.TIMED_OUT,
        "RunTimeout",
        "The run took longer than limits.run, so the agent was ended.",
    ),
    EndedBy.STOP: (Outcome.CANCELLED, "StopRequested", "The agent was stopped as asked."),
}
_BY_SUBTYPE: Final = {
    "error_max_turns": (
        "MaxTurnsReached",
        "The agent used up its turns before it was done; raise agent.maxTurns.",
    ),
    "error_max_budget_usd": (
        "BudgetExceeded",
        "The agent used up its budget before it was done; raise agent.maxBudgetUSD.",
    ),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the run comes to with its agent, why in one word, and the same for people."""

    outcome: Outcome
    reason: str
    message: str

    @property
    def ok(self) -> bool:
        """Tell whether the agent did its job."""
        return self.outcome is Outcome.SUCCEEDED


def judge(facts: AgentFacts, exit_code: int | None, ended_by: EndedBy | None) -> Verdict:
    """Return the verdict on an agent whose process has ended."""
    succeeded = exit_code == 0 and not facts.is_error and ended_by is None
    if succeeded and (facts.result_seen or not facts.needs_result):
        words = "The agent ended by itself and reported success."
        return Verdict(Outcome.SUCCEEDED, "AgentCompleted", words)
    if facts.unauthorized:
        return _failed(
            "AgentUnauthorized",
            "The model's service refuses the agent's key; put a valid one into its Secret.",
            "",
        )
    if ended_by is not None:
        return Verdict(*_ENDED[ended_by])
    if exit_code is None:
        return _failed("AgentLost", "The agent's end was not recorded.", "")
    return _by_own_word(facts) or _by_exit_code(facts, exit_code)


def _by_own_word(facts: AgentFacts) -> Verdict | None:
    if not facts.result_seen or not facts.is_error:
        return None
    if facts.subtype in _BY_SUBTYPE:
        return _failed(*_BY_SUBTYPE[facts.subtype], "")
    if facts.terminal_reason == "blocking_limit":
        return _failed("PromptTooLong", "The prompt does not fit the model's context.", "")
    if "no conversation found" in facts.final_text.lower():
        return _failed("SessionNotFound", "The agent has no session to resume.", facts.final_text)
    if facts.terminal_reason == "api_error":
        return _failed("ModelUnavailable", "The model's service failed.", facts.final_text)
    return _failed("AgentFailed", "The agent reported a failure.", facts.final_text)


def _by_exit_code(facts: AgentFacts, exit_code: int) -> Verdict:
    words = facts.last_words
    if exit_code == 0:
        return _failed("AgentNoResult", "The agent ended without a result.", words)
    if exit_code == 127 and not facts.result_seen:
        return _failed("CliMissing", "The sandbox has no such program.", words)
    if "already in use" in words.lower():
        return _failed("SessionInUse", "The agent refuses the id of the session.", words)
    if exit_code > 128:
        return _failed("AgentKilled", f"The agent was killed by signal {exit_code - 128}.", words)
    return _failed("AgentFailed", f"The agent ended with exit code {exit_code}.", words)


def _failed(reason: str, message: str, words: str) -> Verdict:
    # Whoever shows it hides secrets first and cuts then: half a secret would not be found.
    said = " ".join(words[:LONGEST_SAID].split())
    return Verdict(Outcome.FAILED, reason, f"{message} It said: {said}" if said else message)
