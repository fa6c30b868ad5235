"""The merge patch: applied to the old object it gives the new one, and is empty if they agree."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.engine.merge import merge_patch

_LEAVES = st.one_of(st.integers(0, 3), st.text("ab", max_size=2), st.lists(st.integers(0, 2)))
_OBJECTS = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(
        _LEAVES, lambda inner: st.dictionaries(st.sampled_from("abcd"), inner), max_leaves=8
    ),
)


def applied(target: Any, patch: Any) -> Any:
    """What an API server does with a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


@given(_OBJECTS, _OBJECTS)
def test_the_patch_turns_the_old_object_into_the_new_one(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert applied(old, merge_patch(old, new)) == new


@given(_OBJECTS)
def test_equal_objects_need_no_patch(value: dict[str, Any]) -> None:
    assert merge_patch(value, value) == {}
