"""The shape and the order of the output lines."""

from __future__ import annotations

from agent_process import HEADLESS, Claude

PARTIAL = [*HEADLESS, "--include-partial-messages", "x"]


def test_every_line_names_its_session_and_itself(claude: Claude) -> None:
    outcome = claude.run(scenario="say a\nwrite f b\nbash true\nunknown novelty")
    assert len(outcome.lines) == len(outcome.stdout.splitlines())
    assert len({line["session_id"] for line in outcome.lines}) == 1
    assert len({line["uuid"] for line in outcome.lines}) == len(outcome.lines)


def test_key_order_varies_and_the_result_never_begins_with_its_type(claude: Claude) -> None:
    first_keys = set()
    for seed in range(8):
        outcome = claude.run(scenario=f"seed {seed}\nsay a\nsay b")
        first_keys |= {next(iter(line)) for line in outcome.of("assistant")}
        assert next(iter(outcome.result)) != "type"
    assert len(first_keys) > 1


def test_init_is_not_always_the_first_line(claude: Claude) -> None:
    first = {claude.run(scenario=f"seed {seed}\nsay a").lines[0]["subtype"] for seed in range(8)}
    assert first == {"init", "ui_invalidate"}


def test_a_message_is_one_line_per_block_with_repeated_usage(claude: Claude) -> None:
    outcome = claude.run(scenario="write f b")
    text, tool = outcome.of("assistant")[:2]
    assert text["message"]["id"] == tool["message"]["id"]
    assert text["message"]["usage"] == tool["message"]["usage"]
    block = tool["message"]["content"][0]
    assert (block["type"], block["name"]) == ("tool_use", "Write")
    answer = outcome.of("user")[0]["message"]["content"][0]
    assert (answer["tool_use_id"], answer["is_error"]) == (block["id"], False)


def test_a_failed_tool_is_told_to_the_model_and_ends_nothing(claude: Claude) -> None:
    outcome = claude.run(scenario="bash echo oops; exit 4\nread nowhere\nedit nowhere a => b")
    answers = [line["message"]["content"][0] for line in outcome.of("user")]
    assert [answer["is_error"] for answer in answers] == [True, True, True]
    assert answers[0]["content"] == "Error: Exit code 4\noops\n"
    assert outcome.code == 0


def test_partial_messages_show_the_raw_events(claude: Claude) -> None:
    outcome = claude.run(*PARTIAL, scenario="say hello world")
    kinds = [
        line["event"]["type"] if line["type"] == "stream_event" else line["type"]
        for line in outcome.lines
        if line.get("subtype") not in ("init", "ui_invalidate")
    ]
    assert kinds == [
        "system",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "assistant",
        "message_delta",
        "message_stop",
        "result",
    ]
    assert outcome.of("system", "status")[0]["status"] == "requesting"
    deltas = [line["event"].get("delta", {}).get("text", "") for line in outcome.of("stream_event")]
    assert "".join(deltas) == "hello world"
    assert claude.run(scenario="say hello").of("stream_event") == []


def test_pings_are_seen_only_with_partial_messages(claude: Claude) -> None:
    script = "ping 90\nsay hello"
    pings = [
        line
        for line in claude.run(*PARTIAL, scenario=script).of("stream_event")
        if line["event"]["type"] == "ping"
    ]
    assert len(pings) == 9
    assert len(claude.run(scenario=script).lines) <= 4


def test_a_silent_model_prints_nothing_until_a_request_times_out(claude: Claude) -> None:
    quiet = claude.run(scenario="wait 90\nsay hello")
    assert quiet.of("system", "api_retry") == []
    assert quiet.result["num_turns"] == 1
    bounded = claude.run(scenario="wait 90\nsay hello", env={"API_TIMEOUT_MS": "20000"})
    retries = bounded.of("system", "api_retry")
    assert len(retries) == 4
    assert {line["error_status"] for line in retries} == {None}
    assert bounded.code == 0


def test_a_model_that_stays_silent_ends_the_run(claude: Claude) -> None:
    env = {"API_TIMEOUT_MS": "1000", "CLAUDE_CODE_MAX_RETRIES": "2"}
    outcome = claude.run(scenario="wait 900\nsay hello", env=env)
    assert (outcome.code, outcome.result["terminal_reason"]) == (1, "api_error")


def test_a_stalled_stream_shows_its_start_and_then_nothing(claude: Claude) -> None:
    process = claude.start(*PARTIAL, scenario="speed 1\nstall 300")
    assert process.stdout is not None
    lines = iter(process.stdout.readline, b"")
    assert next(line for line in lines if b"message_start" in line)
    assert process.poll() is None


def test_a_long_command_is_announced_and_gives_heartbeats(claude: Claude) -> None:
    outcome = claude.run(scenario="bash sleep 2", env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"})
    assert len(outcome.of("system", "task_started")) == 1
    beats = outcome.of("tool_progress")
    assert [beat["elapsed_time_seconds"] for beat in beats][:3] == [30, 60, 90]
    assert all(beat["heartbeat"] for beat in beats)
    assert len(outcome.of("result")) == 1


def test_a_command_past_two_minutes_moves_to_the_background(claude: Claude) -> None:
    outcome = claude.run(scenario="bash sleep 3; touch late\nsay going on")
    assert len(outcome.of("tool_progress")) == 3
    assert [line["result"] for line in outcome.of("result")] == [
        "going on",
        "The background task has ended.",
    ]
    assert (claude.work / "late").exists()


def test_a_result_is_not_the_end_while_a_background_task_runs(claude: Claude) -> None:
    outcome = claude.run(scenario="background sleep 0.3; touch late\nsay first")
    kinds = [(line["type"], line.get("subtype")) for line in outcome.lines]
    first = kinds.index(("result", "success"))
    assert ("system", "background_tasks_changed") in kinds[:first]
    assert ("system", "task_notification") in kinds[first:]
    assert kinds[-1] == ("result", "success")
    assert len(outcome.of("result")) == 2
    assert (claude.work / "late").exists()


def test_background_tasks_can_be_switched_off(claude: Claude) -> None:
    outcome = claude.run(
        scenario="background touch now\nsay first",
        env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"},
    )
    assert len(outcome.of("result")) == 1
    assert (claude.work / "now").exists()


def test_cost_is_cumulative_and_usage_is_per_result(claude: Claude) -> None:
    outcome = claude.run(scenario="cost 1\nsay a\nsay b\ndone\ncost 1\nsay c")
    first, second = outcome.of("result")
    assert 1 < first["total_cost_usd"] < 2 < second["total_cost_usd"]
    assert (first["num_turns"], second["num_turns"]) == (2, 1)
    assert second["usage"]["input_tokens"] < first["usage"]["input_tokens"]
    totals = [line["modelUsage"]["claude-scripted"] for line in (first, second)]
    assert totals[1]["inputTokens"] > totals[0]["inputTokens"]
    assert totals[1]["costUSD"] == second["total_cost_usd"]
