"""Steps in which only the model acts: it speaks, is silent, or its service fails.

Delays and limits are those seen with the real CLI.
"""

from __future__ import annotations

from collections.abc import Callable

from .conversation import Conversation, Verdict

_NO_HEADERS_LIMIT = 360.0
_SILENT_STREAM_LIMIT = 300.0
_LONGEST_RETRY_AFTER = 60.0
_AT_ONCE = frozenset({400, 403})
_ERRORS = {
    400: "invalid_request",
    401: "authentication_failed",
    403: "authentication_failed",
    429: "rate_limit",
    500: "server_error",
    529: "overloaded",
}


def say(talk: Conversation, text: str) -> None:
    """Give one message."""
    talk.say(text)


def wait(talk: Conversation, seconds: float) -> None:
    """Be silent before any answer; a request that waits too long is asked again."""
    talk.request()
    limit = talk.material.setting("API_TIMEOUT_MS", _NO_HEADERS_LIMIT * 1000) / 1000
    attempt = 0
    while seconds > limit:
        talk.pause(limit)
        attempt += 1
        if attempt > _max_retries(talk):
            talk.fail(None, "unknown", "API Error: Request timed out.")
        seconds -= limit + _retry(talk, attempt, None)
    talk.pause(max(seconds, 0))


def stall(talk: Conversation, seconds: float) -> None:
    """Be silent inside an open stream; after 300 s the CLI asks again without streaming."""
    talk.start_answer()
    talk.pause(min(seconds, _SILENT_STREAM_LIMIT))


def ping(talk: Conversation, seconds: float, every: float = 10.0) -> None:
    """Keep the stream open with pings, which only partial messages show."""
    talk.start_answer()
    while seconds > 0:
        talk.pause(min(every, seconds))
        seconds -= every
        talk.event({"type": "ping"})


def tick(talk: Conversation, every: float, count: int, text: str) -> None:
    """Give the same message again and again."""
    for _ in range(count):
        talk.pause(every)
        talk.say(text)


def forever(talk: Conversation, every: float = 0.0) -> None:
    """Never come to an end."""
    while True:
        if every:
            tick(talk, every, 1, "Still at it.")
        else:
            talk.request()
            talk.pause(3600)


def cut(talk: Conversation, text: str) -> None:
    """Lose the stream after its start; the CLI asks again on its own and says nothing of it."""
    talk.start_answer()
    with_events, talk.partial = talk.partial, False
    talk.say(text)
    talk.partial = with_events


def api(talk: Conversation, status: str, times: int | None = None) -> None:
    """Let the model service fail: for good, or so many times before it recovers."""
    code = int(status) if status.isdigit() else None
    retries = _max_retries(talk)
    talk.request()
    if code not in _AT_ONCE:
        for attempt in range(1, min(retries, times or retries) + 1):
            _retry(talk, attempt, code)
        if times is not None and times <= retries:
            return
    reason = f"API Error: {code or 'Connection refused'}"
    talk.fail(code, _ERRORS.get(code or 0, "unknown"), reason)


def throttle(talk: Conversation, retry_after: float) -> None:
    """Answer 429 once, with a time to come back: waited out if short, fatal if long."""
    talk.request()
    if retry_after > _LONGEST_RETRY_AFTER:
        talk.fail(429, "rate_limit", "API Error: 429 rate limited")
    _announce_retry(talk, 1, 429, retry_after)
    talk.pause(retry_after)


def cost(talk: Conversation, usd: float) -> None:
    """Spend money."""
    talk.ledger.add_cost(usd)


def done(talk: Conversation) -> None:
    """Print a result line although the run goes on."""
    close(talk)
    talk.result(Verdict(text=talk.final_text))


def close(talk: Conversation) -> None:
    """Make sure that the last word is text, as the model's always is."""
    if talk.final_text is None:
        talk.say("Done.")


def _max_retries(talk: Conversation) -> int:
    return int(talk.material.setting("CLAUDE_CODE_MAX_RETRIES", 10))


def _retry(talk: Conversation, attempt: int, status: int | None) -> float:
    # Doubling from 0.5 s to 32 s, each up to a quarter longer: ten of them take 170-190 s.
    delay = min(0.5 * 2.0 ** (attempt - 1), 32.0) * (1 + talk.seed.fraction() / 4)
    _announce_retry(talk, attempt, status, delay)
    talk.pause(delay)
    return delay


def _announce_retry(talk: Conversation, attempt: int, status: int | None, delay: float) -> None:
    talk.stream.emit(
        "system",
        subtype="api_retry",
        attempt=attempt,
        max_retries=_max_retries(talk),
        retry_delay_ms=round(delay * 1000),
        error_status=status,
        error=_ERRORS.get(status or 0, "unknown"),
    )


HANDLERS: dict[str, Callable[..., None]] = {
    verb.__name__: verb
    for verb in (say, wait, stall, ping, tick, forever, cut, api, throttle, cost, done)
}
