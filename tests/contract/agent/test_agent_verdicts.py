"""Which end of a run gives which result line and which exit code."""

from __future__ import annotations

import pytest
from agent_process import HEADLESS, Claude, Outcome

FAST = {"ISSUESANDBOX_AGENT_SPEED": "2000"}


def verdict(outcome: Outcome) -> tuple[int, str, bool, str]:
    result = outcome.result
    return outcome.code, result["subtype"], result["is_error"], result["terminal_reason"]


def test_a_finished_run_succeeds(claude: Claude) -> None:
    outcome = claude.run(scenario="say I looked.\nsay I give up.")
    assert verdict(outcome) == (0, "success", False, "completed")
    assert outcome.result["result"] == "I give up."
    assert outcome.result["num_turns"] == 2


def test_a_denied_tool_is_a_success(claude: Claude) -> None:
    outcome = claude.run(scenario="deny WebFetch")
    assert verdict(outcome) == (0, "success", False, "completed")
    assert outcome.result["permission_denials"][0]["tool_name"] == "WebFetch"


def test_too_many_turns_end_the_run(claude: Claude) -> None:
    outcome = claude.run(*HEADLESS, "--max-turns", "2", "x", scenario="write a 1\nwrite b 2")
    assert verdict(outcome) == (1, "error_max_turns", True, "max_turns")
    assert outcome.result["num_turns"] == 3
    assert outcome.result["errors"]
    assert "result" not in outcome.result


def test_a_run_that_needs_all_its_turns_succeeds(claude: Claude) -> None:
    outcome = claude.run(*HEADLESS, "--max-turns", "2", "x", scenario="write a 1\nsay done")
    assert (outcome.code, outcome.result["num_turns"]) == (0, 2)


def test_a_spent_budget_ends_the_run(claude: Claude) -> None:
    script = "cost 0.6\nsay one\ncost 0.6\nsay two\nsay three"
    outcome = claude.run(*HEADLESS, "--max-budget-usd", "1", "x", scenario=script)
    assert outcome.code == 1
    assert outcome.result["subtype"] == "error_max_budget_usd"
    assert outcome.result["total_cost_usd"] >= 1.2
    assert outcome.result["num_turns"] == 2


@pytest.mark.parametrize("status", [400, 403])
def test_a_refused_request_fails_at_once_and_says_success(claude: Claude, status: int) -> None:
    outcome = claude.run(scenario=f"api {status}")
    assert verdict(outcome) == (1, "success", True, "api_error")
    assert outcome.result["api_error_status"] == status
    assert outcome.of("system", "api_retry") == []
    told = outcome.of("assistant")[0]
    assert (told["is_api_error_message"], told["api_error_status"]) == (True, status)
    assert told["message"]["model"] == "<synthetic>"


@pytest.mark.parametrize("status", ["401", "429", "500", "529", "refused"])
def test_other_failures_are_retried_ten_times_first(claude: Claude, status: str) -> None:
    outcome = claude.run(scenario=f"api {status}", env=FAST)
    assert verdict(outcome) == (1, "success", True, "api_error")
    retries = outcome.of("system", "api_retry")
    assert [line["attempt"] for line in retries] == list(range(1, 11))
    assert {line["max_retries"] for line in retries} == {10}
    code = None if status == "refused" else int(status)
    assert {line["error_status"] for line in retries} == {code}
    delays = [line["retry_delay_ms"] / 1000 for line in retries]
    assert 0.5 <= delays[0] < 1
    assert 30 <= max(delays) <= 40
    assert 160 <= sum(delays) <= 195


def test_the_number_of_retries_can_be_set(claude: Claude) -> None:
    two = claude.run(scenario="api 529", env={**FAST, "CLAUDE_CODE_MAX_RETRIES": "2"})
    assert len(two.of("system", "api_retry")) == 2
    none = claude.run(scenario="api 401", env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert (none.code, none.of("system", "api_retry")) == (1, [])


def test_a_service_that_recovers_costs_only_its_retries(claude: Claude) -> None:
    outcome = claude.run(scenario="api 529 3\nsay Back again.", env=FAST)
    assert verdict(outcome) == (0, "success", False, "completed")
    assert len(outcome.of("system", "api_retry")) == 3
    assert outcome.result["num_turns"] == 1


def test_a_short_retry_after_is_waited_out_and_a_long_one_is_fatal(claude: Claude) -> None:
    short = claude.run(scenario="throttle 3\nsay Here I am.")
    assert short.code == 0
    assert short.of("system", "api_retry")[0]["retry_delay_ms"] == 3000
    long = claude.run(scenario="throttle 600\nsay Never said.")
    assert verdict(long) == (1, "success", True, "api_error")
    assert long.result["api_error_status"] == 429


def test_a_cut_stream_is_not_told(claude: Claude) -> None:
    outcome = claude.run(*HEADLESS, "--include-partial-messages", "x", scenario="cut All well.")
    assert (outcome.code, outcome.result["result"]) == (0, "All well.")
    assert [line["event"]["type"] for line in outcome.of("stream_event")] == ["message_start"]
    assert outcome.result["num_turns"] == 1


def test_a_missing_key_fails_at_once(claude: Claude) -> None:
    outcome = claude.run(env={"ANTHROPIC_API_KEY": None})
    assert (outcome.code, outcome.result["is_error"]) == (1, True)
    assert "Not logged in" in outcome.result["result"]
    assert outcome.init["apiKeySource"] == "none"


def test_a_prompt_over_the_context_is_never_sent(claude: Claude) -> None:
    outcome = claude.run(*HEADLESS, stdin=b"word " * 1_000_000)
    assert verdict(outcome) == (1, "success", True, "blocking_limit")
    assert outcome.result["num_turns"] == 0
    assert claude.run(*HEADLESS, stdin=b"word " * 200_000).code == 0


@pytest.mark.parametrize("code", [0, 3, 255])
def test_a_scripted_exit_has_its_code_and_no_result(claude: Claude, code: int) -> None:
    outcome = claude.run(scenario=f"say hello\nexit {code}")
    assert outcome.code == code
    assert outcome.of("assistant")
    assert outcome.of("result") == []


def test_a_result_and_a_bad_exit_code_can_disagree(claude: Claude) -> None:
    outcome = claude.run(scenario="say hello\ndone\nexit 3")
    assert (outcome.code, outcome.result["is_error"]) == (3, False)


def test_a_crash_is_a_kill_without_result(claude: Claude) -> None:
    outcome = claude.run(scenario="say hello\ncrash")
    assert outcome.code == -9
    assert outcome.of("result") == []
