"""Objects made from the resource's own schema: the largest possible one, and random ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from issuesandbox.api import names
from issuesandbox.api.crd import build_schema

Schema = dict[str, Any]

_RULES = "x-kubernetes-validations"
_WIDE = "😀"
_BYTE_RULE = re.compile(r"size\(bytes\(self\)\) <= ([0-9]+)")
_MATCH_RULE = re.compile(r"(!?)self\.matches\(r'(.*)'\)")
_LONGEST_DURATION = "999999h999999m999999s999999ms"
_LONGEST_TIME = "2030-01-31T18:00:00.000000000+00:00"
_SHORT_TIMES = ("2030-01-31T18:00:00Z", "2030-01-31T18:00:00.123456Z", "1999-12-31T23:59:59Z")
# One of these, cut to the allowed length, fits every text that must have a certain form.
_FORMS = (
    "a" * 600,
    "1" * 600,
    "o" * 39 + "/" + "n" * 100,
    "https://" + "x" * 600,
    _LONGEST_DURATION,
    "999999.9999",
    "1" * 7 + ".25",
    "22:00",
)


def maximal_object() -> dict[str, Any]:
    """Return an object whose every field is as large as its schema allows."""
    schema = build_schema()["properties"]
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {
            "name": "n" * 253,
            "namespace": "s" * 63,
            "finalizers": [names.FINALIZER],
            "labels": {names.LABEL_KEEP: "true"},
            "annotations": {
                names.ANNOTATION_PAUSED: "true",
                names.ANNOTATION_FIRST_CREATE: '{"at":"2030-01-31T18:00:00Z","name":"claude-1"}',
            },
        },
        "spec": _largest(schema["spec"]),
        "status": _largest(schema["status"]),
    }


def acceptable(largest: dict[str, Any]) -> dict[str, Any]:
    """Change the few fields of the largest object that exclude each other."""
    spec = largest["spec"]
    del spec["sandbox"]["snapshot"]
    spec["sandbox"]["autoArchive"] = "720h"
    spec["sandbox"]["network"]["allowCIDRs"] = ["2001:db8::/32"] * 10
    for cleanup in (spec["cleanup"], largest["status"]["run"]["effective"]["cleanup"]):
        cleanup["window"]["end"] = "06:00"
    spec["run"]["publish"]["base"] = "b" * 200
    return largest


def random_objects() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of objects that the schema allows, with any choice of optional fields."""
    schema = build_schema()["properties"]
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just(names.API_VERSION),
            "kind": st.just(names.KIND),
            "metadata": st.fixed_dictionaries(
                {"name": st.just("a"), "managedFields": st.just([{"manager": "kubectl"}])}
            ),
            "spec": _any_of(schema["spec"]),
            "status": _any_of(schema["status"]),
        }
    )


def fields(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield each field below `schema` with its path, list items as `[]`."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
        yield from fields(each, f"{path}.{name}")
    if "items" in schema:
        yield f"{path}[]", schema["items"]
        yield from fields(schema["items"], f"{path}[]")


def refused(schema: Schema, value: Any, path: str = "") -> list[str]:
    """Return what an API server would refuse: texts, lists and numbers out of their bounds."""
    match value:
        case dict():
            known = schema.get("properties", {})
            parts = [(known[name], each, f"{path}.{name}") for name, each in value.items()]
        case list():
            long = len(value) > schema["maxItems"]
            parts = [(schema["items"], each, f"{path}[]") for each in value]
            return [path] * long + [bad for part in parts for bad in refused(*part)]
        case str():
            return [] if _is_within(value, schema) else [path]
        case _:
            return [path] if abs(int(value)) >= 2**63 else []
    return [bad for part in parts for bad in refused(*part)]


def _is_within(text: str, schema: Schema) -> bool:
    most = _byte_limit(schema)
    fits = len(text) <= schema.get("maxLength", len(text))
    fits = fits and (most is None or len(text.encode()) <= most)
    return fits and _fits(text, _forms(schema))


def _largest(schema: Schema) -> Any:
    match schema["type"]:
        case "object":
            return {name: _largest(each) for name, each in schema["properties"].items()}
        case "array":
            items = [_largest(schema["items"]) for _ in range(schema["maxItems"])]
            return _told_apart(items, schema)
        case "integer":
            return schema.get("maximum", 2**53 - 1)
        case "boolean":
            return False
    return _largest_text(schema)


def _told_apart(items: list[Any], schema: Schema) -> list[Any]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return list(schema["items"]["enum"])
    if kind == "map":
        (key,) = schema["x-kubernetes-list-map-keys"]
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        for letter, item in zip(letters, items, strict=False):
            item[key] = letter * len(item[key])
    return items


def _largest_text(schema: Schema) -> str:
    if "enum" in schema:
        return str(max(schema["enum"], key=len))
    if schema.get("format") == "date-time":
        return _LONGEST_TIME
    limit, forms = schema["maxLength"], _forms(schema)
    if forms:
        fitting = [form[:limit] for form in _FORMS if _fits(form[:limit], forms)]
        return max(fitting, key=len)
    most = _byte_limit(schema)
    return _WIDE * (most // 4) if most else _WIDE * limit


def _byte_limit(schema: Schema) -> int | None:
    found = [_BYTE_RULE.fullmatch(rule["rule"]) for rule in schema.get(_RULES, [])]
    return next((int(each.group(1)) for each in found if each), None)


def _forms(schema: Schema) -> list[tuple[bool, str]]:
    """Return the expressions a text must match, or (False, ...) must not."""
    forms = [(True, schema["pattern"])] if "pattern" in schema else []
    for rule in schema.get(_RULES, []):
        if found := _MATCH_RULE.fullmatch(rule["rule"]):
            forms.append((found.group(1) == "", found.group(2)))
    return forms


def _fits(text: str, forms: list[tuple[bool, str]]) -> bool:
    return all((re.search(pattern, text) is not None) is wanted for wanted, pattern in forms)


def _any_of(schema: Schema) -> st.SearchStrategy[Any]:
    match schema["type"]:
        case "object":
            return _any_object(schema)
        case "array":
            return _any_list(schema)
        case "integer":
            return st.integers(schema.get("minimum", -1), schema.get("maximum", 2**53 - 1))
        case "boolean":
            return st.booleans()
    return _any_text(schema)


def _any_object(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    required = set(schema.get("required", ()))
    choices = {name: _any_of(each) for name, each in schema["properties"].items()}
    return st.fixed_dictionaries(
        {name: choices[name] for name in choices if name in required},
        optional={name: choices[name] for name in choices if name not in required},
    )


def _any_list(schema: Schema) -> st.SearchStrategy[list[Any]]:
    # An empty list says what an absent one says; the models write neither.
    least, most = max(1, schema.get("minItems", 0)), min(3, schema["maxItems"])
    return st.lists(_any_of(schema["items"]), min_size=least, max_size=most)


def _any_text(schema: Schema) -> st.SearchStrategy[str]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("format") == "date-time":
        return st.sampled_from(_SHORT_TIMES)
    forms = _forms(schema)
    if not forms:
        most = (_byte_limit(schema) or schema["maxLength"]) // 4
        return st.text(min_size=schema.get("minLength", 0), max_size=min(20, most))
    fitting = [form[: schema["maxLength"]] for form in _FORMS]
    return st.sampled_from([form for form in fitting if _fits(form, forms)])
