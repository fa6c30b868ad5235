"""What a pass writes: only what is new, and nothing that the API server would refuse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from issuesandbox.api.status import Status
from issuesandbox.clock import SystemClock
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.books import Books
from issuesandbox.engine.writing import Writer
from issuesandbox.ports.resources import ResourceKey

KEY = ResourceKey("team", "one", "u-1")
RUN = {"id": "r1", "phase": "Executing", "startedAt": "2030-01-01T00:00:00Z"}


class Kube:
    """Takes every patch of a status."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    async def patch_status(self, _: ResourceKey, __: str, patch: Any) -> dict[str, Any]:
        self.patches.append(patch)
        return {}


@pytest.mark.parametrize("letter", ["é", "━", "😀"])
async def test_a_message_that_is_too_long_is_cut_and_then_no_news(letter: str) -> None:
    kube: Any = Kube()
    ignored: Any = SimpleNamespace(put=lambda *_, **__: None)
    books = Books(Timings())
    writer = Writer(kube, ignored, SystemClock(), books, lambda _: None)
    before = Status.model_validate({"run": RUN})
    assert before.run is not None
    wordy = before.run.model_copy(update={"message": letter * 400})
    status = before.model_copy(update={"run": wordy})
    for known in (before, status.fitted()):
        reading: Any = SimpleNamespace(version="1", resource=SimpleNamespace(status=known))
        await writer.write_status(KEY, reading, status)
    (patch,) = kube.patches
    assert 512 - 4 < len(patch["run"]["message"].encode()) <= 512
