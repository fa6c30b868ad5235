"""What an agent said of its tests."""

from __future__ import annotations

import pytest

from issuesandbox.domain.reported_tests import reported_tests


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("Changed it.\n\nTests: 12 passed, 1 skipped\n", "12 passed, 1 skipped"),
        ("- **Tests:** `make test`, all green", "`make test`, all green"),
        ("**Tests**: none", "none"),
        ("Tests run: pytest -q", "pytest -q"),
        ("## Tests\n\n- pytest: ok\n- ruff: ok\n\nMore.", "pytest: ok ruff: ok"),
        ("## Tests\n\n## Next", None),
        ("The tests: I did not look at them", None),
        ("Testsuite: none", None),
        ("", None),
        ("tests:\x00 \x1b[2Jfine", "[2Jfine"),
        ("Tests: " + "x" * 5000, "x" * 500),
    ],
)
def test_the_line_on_tests_is_found(summary: str, expected: str | None) -> None:
    # R48
    assert reported_tests(summary) == expected
