"""What a session has used: cost over its whole life, tokens and turns per result line.

Knows figures only. The real CLI's cost is cumulative over resumes, its usage is not.
"""

from __future__ import annotations

from collections.abc import Mapping

_USD_PER_INPUT_TOKEN = 3e-6
_USD_PER_OUTPUT_TOKEN = 15e-6
_FIRST_REQUEST_TOKENS = 2_000


class Ledger:
    """The running account of one session."""

    def __init__(self, earlier: Mapping[str, object]) -> None:
        self.turns = 0
        self._usage = {"input_tokens": 0, "output_tokens": 0}
        self._cost_usd = _number(earlier.get("total_cost_usd"))
        self._input = int(_number(earlier.get("input_tokens")))
        self._output = int(_number(earlier.get("output_tokens")))

    @property
    def cost_usd(self) -> float:
        """Return the session's cost so far."""
        return round(self._cost_usd, 6)

    def charge(self, said: int) -> dict[str, int]:
        """Account for one answer of so many characters and return its usage."""
        used = {
            "input_tokens": _FIRST_REQUEST_TOKENS + self._usage["output_tokens"],
            "output_tokens": 1 + said // 4,
        }
        for name, tokens in used.items():
            self._usage[name] += tokens
        self._input += used["input_tokens"]
        self._output += used["output_tokens"]
        self.add_cost(
            used["input_tokens"] * _USD_PER_INPUT_TOKEN
            + used["output_tokens"] * _USD_PER_OUTPUT_TOKEN
        )
        return _with_cache(used)

    def add_cost(self, usd: float) -> None:
        """Account for money alone."""
        self._cost_usd += usd

    def report(self, model: str, turns_over: int) -> dict[str, object]:
        """Return the figures of a result line; turns and usage begin anew after it."""
        usage, self._usage = self._usage, {"input_tokens": 0, "output_tokens": 0}
        turns, self.turns = self.turns, 0
        totals = {
            "inputTokens": self._input,
            "outputTokens": self._output,
            "costUSD": self.cost_usd,
        }
        return {
            "num_turns": turns + turns_over,
            "total_cost_usd": self.cost_usd,
            "usage": _with_cache(usage),
            "modelUsage": {model: totals},
        }

    def entry(self) -> dict[str, object]:
        """Return what a later resume of the session has to know."""
        return {
            "total_cost_usd": self.cost_usd,
            "input_tokens": self._input,
            "output_tokens": self._output,
        }


def _with_cache(usage: Mapping[str, int]) -> dict[str, int]:
    return {**usage, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
