"""How hard the search for a counterexample is: `HYPOTHESIS_PROFILE` is `ci` or `nightly`.

A search goes in lots, each with a seed of its own: one long search would remember every example
it ever made. The seeds of `ci` are fixed; those of `nightly` are new each time and are part of
the tests' names, so that `HYPOTHESIS_SEED=<seed>` searches that lot first.
"""

from __future__ import annotations

import os
import secrets

import pytest
from hypothesis import HealthCheck, settings

LOTS = {"ci": 5, "nightly": 200}
EXAMPLES_PER_LOT = 500


@pytest.fixture
def effort() -> settings:
    return settings(
        max_examples=EXAMPLES_PER_LOT,
        stateful_step_count=40,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_configure() -> None:
    """Choose the seeds once: all processes that share the lots must know the same ones."""
    if os.environ.get("HYPOTHESIS_PROFILE", "ci") != "ci":
        os.environ.setdefault("HYPOTHESIS_SEED", str(secrets.randbelow(1_000_000) * 1_000))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "lot" in metafunc.fixturenames:
        profile = os.environ.get("HYPOTHESIS_PROFILE", "ci")
        first = int(os.environ.get("HYPOTHESIS_SEED", "0"))
        lots = range(first, first + LOTS[profile])
        metafunc.parametrize("lot", lots, ids=lambda lot: f"seed-{lot}")
