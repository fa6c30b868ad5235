"""One run's talk with a model that is not there: requests, messages, limits and the result line.

Knows in which order the real CLI prints what. What a step of the script wants is not its concern.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from .flags import Invocation
from .ledger import Ledger
from .sessions import Transcript
from .stream import Seed, Stream

if TYPE_CHECKING:
    from .shell import Task

Block = dict[str, object]


class Verdict(NamedTuple):
    """How a run ended. `subtype` alone does not tell: API failures say `success`."""

    subtype: str = "success"
    exit_code: int = 0
    terminal_reason: str = "completed"
    is_error: bool = False
    text: str | None = None
    errors: tuple[str, ...] = ()
    api_error_status: int | None = None
    turns_over: int = 0

    @classmethod
    def failure(cls, subtype: str, reason: str, error: str, *, turns_over: int = 0) -> Verdict:
        """Return the verdict of a run that gave no text, with exit code 1."""
        return cls(subtype, 1, reason, is_error=True, errors=(error,), turns_over=turns_over)

    @classmethod
    def refused(cls, reason: str, text: str, status: int | None = None) -> Verdict:
        """Return the verdict of a run whose request was refused: `success`, and yet an error."""
        return cls("success", 1, reason, is_error=True, text=text, api_error_status=status)


class Ended(Exception):
    """The run cannot go on; the verdict says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.subtype)
        self.verdict = verdict


class Left(Exception):
    """The process ends here and now, without a result line."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Material(NamedTuple):
    """What the run was given: prompt, the files it names, environment and pace."""

    prompt: str
    files: tuple[str, ...]
    env: Mapping[str, str]
    speed: float

    def setting(self, name: str, default: float) -> float:
        """Return a number from the environment; one that cannot be read does not count."""
        try:
            return float(self.env[name])
        except (KeyError, ValueError):
            return default


class Conversation:
    """The state of one run between two lines of output."""

    def __init__(
        self,
        invocation: Invocation,
        material: Material,
        stream: Stream,
        transcript: Transcript,
        seed: Seed,
    ) -> None:
        self.invocation = invocation
        self.material = material
        self.stream = stream
        self.transcript = transcript
        self.seed = seed
        self.ledger = Ledger(transcript.account)
        self.model = invocation.value("--model") or "claude-scripted"
        self.partial = invocation.has("--include-partial-messages")
        self.denials: list[Block] = []
        self.tasks: list[Task] = []
        self.in_tool = False
        self.final_text: str | None = None
        self._elapsed = 0.0
        self._message_id: str | None = None  # of the answer that is under way
        self._streaming = False

    def pause(self, seconds: float) -> None:
        """Let time pass, at the scenario's speed."""
        time.sleep(seconds / self.material.speed)
        self.note_elapsed(seconds)

    def note_elapsed(self, seconds: float) -> None:
        """Count scripted time; measured time would make two equal runs differ."""
        self._elapsed += seconds

    def request(self) -> None:
        """Ask the model for its next answer, unless that is under way; limits are checked here."""
        if self._message_id is not None:
            return
        limit = self.invocation.max_turns
        if limit is not None and self.ledger.turns >= limit:
            error = f"Reached maximum number of turns ({limit})"
            raise Ended(Verdict.failure("error_max_turns", "max_turns", error, turns_over=1))
        self.ledger.turns += 1
        self._message_id = f"msg_{self.seed.hex()[:24]}"
        self._streaming = False
        self.note_elapsed(0.5)
        if self.partial:
            self.stream.emit("system", subtype="status", status="requesting")

    def start_answer(self) -> None:
        """Let the answer's stream begin, unless it has."""
        self.request()
        if not self._streaming:
            self._streaming = True
            self.event({"type": "message_start", "message": self._envelope([], {})})

    def answer(self, *blocks: Block) -> None:
        """Give one whole answer: a line per content block, all with the same message id."""
        self.start_answer()
        said = sum(len(str(block.get("text", block.get("input", "")))) for block in blocks)
        usage = self.ledger.charge(said)
        for index, block in enumerate(blocks):
            self._stream_block(index, block)
            message = self._envelope([block], usage)
            self.stream.emit("assistant", message=message, parent_tool_use_id=None)
            self.transcript.append({"type": "assistant", "message": message})
        self.event({"type": "message_delta", "delta": {}, "usage": usage})
        self.event({"type": "message_stop"})
        self._message_id = None
        self._check_budget()

    def say(self, text: str) -> None:
        """Answer with text alone; the last such text is the final one."""
        self.answer({"type": "text", "text": text})
        self.final_text = text

    def event(self, event: Block) -> None:
        """Print one raw event of the answer's stream, where partial messages were asked for."""
        if self.partial:
            self.stream.emit("stream_event", event=event, parent_tool_use_id=None)

    def fail(self, status: int | None, error: str, text: str) -> NoReturn:
        """End with an API failure: a synthetic message, then `success` with is_error."""
        message = {
            "id": self.seed.uuid(),
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": text}],
        }
        self.stream.emit(
            "assistant",
            message=message,
            error=error,
            is_api_error_message=True,
            api_error_status=status,
            parent_tool_use_id=None,
        )
        raise Ended(Verdict.refused("api_error", text, status))

    def result(self, verdict: Verdict) -> None:
        """Print the result line and save what a resume has to know."""
        figures = self.ledger.report(self.model, verdict.turns_over)
        outcome: dict[str, object] = (
            {"errors": list(verdict.errors)} if verdict.errors else {"result": verdict.text or ""}
        )
        self.stream.emit(
            "result",
            subtype=verdict.subtype,
            is_error=verdict.is_error,
            terminal_reason=verdict.terminal_reason,
            api_error_status=verdict.api_error_status,
            duration_ms=round(self._elapsed * 1000),
            duration_api_ms=round(self._elapsed * 1000),
            permission_denials=self.denials,
            **figures,
            **outcome,
        )
        self.save_account()

    def save_account(self) -> None:
        """Keep the session's cost; a run killed by SIGKILL never gets here and loses its own."""
        self.transcript.append({"type": "account", **self.ledger.entry()})

    def _stream_block(self, index: int, block: Block) -> None:
        text = str(block.get("text", ""))
        empty = {**block, "text": ""} if "text" in block else {**block, "input": {}}
        self.event({"type": "content_block_start", "index": index, "content_block": empty})
        half = len(text) // 2
        for part in (text[:half], text[half:]):
            if part:
                delta = {"type": "text_delta", "text": part}
                self.event({"type": "content_block_delta", "index": index, "delta": delta})
        self.event({"type": "content_block_stop", "index": index})

    def _envelope(self, content: list[Block], usage: Mapping[str, int]) -> Block:
        return {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "usage": dict(usage),
        }

    def _check_budget(self) -> None:
        budget = self.invocation.max_budget_usd
        if budget is not None and self.ledger.cost_usd >= budget:
            error = f"Reached maximum budget (${budget:g})"
            raise Ended(Verdict.failure("error_max_budget_usd", "max_budget_usd", error))
