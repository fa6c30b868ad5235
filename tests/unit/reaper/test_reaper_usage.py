"""Commands that end many things refuse what can only be a mistake."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from issuesandbox.entry.cleanup import cleanup
from issuesandbox.entry.reap import reap


@pytest.mark.parametrize("selector", ["", "  "])
def test_cleanup_needs_a_selector_that_selects(selector: str) -> None:
    ended = CliRunner().invoke(cleanup, ["-l", selector])
    assert ended.exit_code == 2
    assert "--selector must not be empty: it would match everything." in ended.output


def test_reap_does_not_vouch_for_no_orphans() -> None:
    ended = CliRunner().invoke(reap, ["--accept-orphans", "0"])
    assert ended.exit_code == 2
    assert "0 is not in the range x>=1" in ended.output
