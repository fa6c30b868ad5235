"""Every client of ours asks the server to refuse fields it does not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "operator" / "issuesandbox"
WRITES = ("create_", "patch_", "replace_")


def writes() -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of the client library that write resources, each with its place."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.func.attr
                if name.startswith(WRITES) and "custom_object" in name:
                    yield f"{path.name}:{node.lineno}", node


def test_each_write_of_a_resource_is_validated_strictly() -> None:
    found = dict(writes())
    assert found
    lax = [
        place
        for place, call in found.items()
        if "Strict" not in [ast.literal_eval(each.value) for each in _validations(call)]
    ]
    assert lax == []


def _validations(call: ast.Call) -> list[ast.keyword]:
    return [each for each in call.keywords if each.arg == "field_validation"]
