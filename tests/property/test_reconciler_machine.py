"""Whatever the world does to the operator, nothing forbidden happens and all comes to rest."""

from __future__ import annotations

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.property.reconciler_machine import ReconcilerMachine


@pytest.mark.timeout(600)
def test_nothing_forbidden_happens_and_all_comes_to_rest(lot: int, effort: settings) -> None:
    # R5, R10, R11, R12, R18
    machine = seed(lot)(type("Machine", (ReconcilerMachine,), {}))
    run_state_machine_as_test(machine, settings=effort)  # type: ignore[no-untyped-call]
