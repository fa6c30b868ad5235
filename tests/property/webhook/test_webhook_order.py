"""Whatever the order, however often, whatever is lost: the adapter ends where GitHub is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from webhook_model import Model, shuffled

from issuesandbox.domain.webhook.commands import Verb

ACTS = ("edit", "label", "close", "reopen", "run", "stop", "ask", "withdraw")
STEPS = st.lists(st.tuples(st.sampled_from(ACTS), st.booleans()), min_size=1, max_size=8)


@dataclass
class Life:
    """An issue's life, and what somebody who saw all of it in its order would want."""

    model: Model = field(default_factory=Model)
    runs: bool = True
    trigger: str = ""
    also: set[str] = field(default_factory=set)
    """Triggers that are as good: a label asks for any run of the text, and may be heard first."""

    def __post_init__(self) -> None:
        self.trigger = self.model.issue.trigger

    def edit(self, text: str) -> None:
        self.model.edit(text)
        if self.model.issue.is_open:
            self._begin(self.model.issue.trigger)

    def label(self, text: str) -> None:
        self.model.label(text)

    def ask(self, _: str) -> None:
        if "agent" not in self.model.issue.labels:
            self.model.label("agent")
            own = f"labeled-{self.model.next_id}"
            if self.model.issue.is_open and not self.runs:
                self._begin(own)
            self.also |= {self.model.issue.trigger, own}

    def withdraw(self, _: str) -> None:
        if "agent" in self.model.issue.labels:
            self.model.unlabel("agent")
            self.runs = False

    def close(self, _: str) -> None:
        if self.model.issue.is_open:
            self.model.close()
            self.runs = False

    def reopen(self, _: str) -> None:
        if not self.model.issue.is_open:
            self.model.reopen()
            self._begin(f"reopen-{self.model.next_id}")

    def run(self, _: str) -> None:
        if self.model.issue.is_open:
            self.model.comment(Verb.RUN)
            self._begin(f"c{self.model.next_id}")

    def stop(self, _: str) -> None:
        self.model.comment(Verb.STOP)
        self.runs = False

    def _begin(self, trigger: str) -> None:
        self.runs, self.trigger, self.also = True, trigger, set()


def _live(steps: list[tuple[str, bool]], *, shares_seconds: bool) -> tuple[Model, Life]:
    life = Life()
    for turn, (act, same_second) in enumerate(steps):
        if not (shares_seconds and same_second):
            life.model.wait()
        getattr(life, act)(f"text {turn}")
    return life.model, life


def _play(model: Model, chance: random.Random, loss: float) -> None:
    for each in shuffled(model, chance, loss):
        model.receive(each)


@given(STEPS, st.randoms(use_true_random=False))
def test_shuffled_and_repeated_deliveries_end_as_in_order(
    steps: list[tuple[str, bool]], chance: random.Random
) -> None:
    model, wanted = _live(steps, shares_seconds=False)
    _play(model, chance, 0)
    model.catch_up()
    if model.live is None:
        assert not model.issue.is_open  # closed before anything of it arrived
        return
    assert model.live.is_running == wanted.runs
    assert not wanted.runs or model.live.trigger in {wanted.trigger, *wanted.also}
    assert len(set(model.triggers)) == len(model.triggers), "a run came back"


@given(STEPS, st.randoms(use_true_random=False), st.booleans())
def test_after_losses_nothing_runs_twice_and_nothing_closed_runs(
    steps: list[tuple[str, bool]], chance: random.Random, shares_seconds: bool
) -> None:
    model, _ = _live(steps, shares_seconds=shares_seconds)
    _play(model, chance, 0.3)
    model.catch_up()
    caught = list(model.triggers)
    model.catch_up()
    assert model.triggers == caught, "a second catch-up found what the first had handled"
    assert len(set(caught)) == len(caught), "a run came back"
    if not model.issue.is_open:
        assert model.live is None or not model.live.is_running
    else:
        assert model.live is not None
        assert model.live.text == model.issue.trigger, "an edit was missed"
