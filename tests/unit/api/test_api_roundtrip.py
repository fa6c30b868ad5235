"""What a resource says survives the models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError
from tests.unit.api.schema_objects import fields, maximal_object, random_objects

from issuesandbox.api.crd import build_schema
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import Status

SAMPLES = sorted((Path(__file__).parents[3] / "manifests" / "samples").glob("*.yaml"))


def test_there_are_samples() -> None:
    assert len(SAMPLES) >= 7


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_keeps_every_field(sample: Path) -> None:
    original = yaml.safe_load(sample.read_text())
    assert lost(original, IssueSandbox.model_validate(original).to_json()) == []


def test_the_full_sample_shows_every_field_of_the_spec() -> None:
    (full,) = (yaml.safe_load(path.read_text()) for path in SAMPLES if path.stem == "full")
    shown = set(paths(full["spec"]))
    known = {path for path, _ in fields(build_schema()["properties"]["spec"])}
    assert known - shown == {".sandbox.snapshot"}, "snapshot excludes image"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(original=random_objects())
def test_any_object_keeps_every_field(original: dict[str, Any]) -> None:
    read = IssueSandbox.model_validate(original)
    assert lost(original, read.to_json()) == []
    assert IssueSandbox.model_validate(read.to_json()) == read


def test_the_largest_object_keeps_every_field() -> None:
    original = maximal_object()
    for where in ("spec", "status"):
        written = IssueSandbox.model_validate(original).to_json()[where]
        assert lost(same_instants(original[where]), written) == []


def test_a_duration_keeps_the_words_of_its_author() -> None:
    read = IssueSandbox.model_validate(
        {"spec": {"issue": {"repository": "o/r", "number": 1}, "run": {"limits": {"run": "90m"}}}}
    )
    assert read.to_json()["spec"]["run"]["limits"] == {"run": "90m"}


def test_fields_may_be_given_by_either_name() -> None:
    by_alias = Status.model_validate({"observedGeneration": 3})
    assert by_alias == Status(observed_generation=3)


def test_an_empty_run_is_not_the_same_as_none() -> None:
    issue = {"repository": "o/r", "number": 1}
    without = IssueSandbox.model_validate({"spec": {"issue": issue}})
    empty = IssueSandbox.model_validate({"spec": {"issue": issue, "run": {}}})
    assert without.spec.run is None
    assert empty.spec.run is not None
    assert "run" not in without.to_json()["spec"]
    assert "run" in empty.to_json()["spec"]


def test_an_empty_status_writes_nothing() -> None:
    assert Status().to_json() == {}


def test_an_unknown_field_in_the_spec_is_a_mistake() -> None:
    issue = {"repository": "o/r", "number": 1, "nummer": 2}
    with pytest.raises(ValidationError, match="nummer"):
        IssueSandbox.model_validate({"spec": {"issue": issue}})


def test_an_unknown_field_in_the_status_is_passed_over() -> None:
    newer = {"sandbox": {"id": "x", "colour": "red"}, "mood": "good"}
    assert Status.model_validate(newer).to_json() == {"sandbox": {"id": "x"}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"issue": {"repository": "o", "number": 1}}, "repository"),
        ({"issue": {"repository": "o/r\n", "number": 1}}, "owner/name"),
        ({"run": {"trigger": "a b"}}, "63 letters"),
        ({"run": {"publish": {"branch": "-x"}}}, "git accepts"),
        ({"sandbox": {"image": "debian:12\nRUN evil"}}, "image"),
        ({"repository": {"cloneURL": "https://me:pw@example.com/o/r"}}, "user or password"),
        ({"cleanup": {"retention": "-5m"}}, "never negative"),
    ],
)
def test_the_models_refuse_what_the_server_refuses(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        IssueSandbox.model_validate({"spec": {"issue": {"repository": "o/r", "number": 1}, **spec}})


def lost(original: Any, written: Any, path: str = "") -> list[str]:
    """Return the paths of `original` that `written` lacks or says differently."""
    if isinstance(original, dict) and isinstance(written, dict):
        missing = [f"{path}.{name}" for name in original if name not in written]
        deeper = (
            lost(value, written[name], f"{path}.{name}")
            for name, value in original.items()
            if name in written
        )
        return missing + [each for found in deeper for each in found]
    if isinstance(original, list) and isinstance(written, list) and len(original) == len(written):
        pairs = enumerate(zip(original, written, strict=True))
        return [each for i, (a, b) in pairs for each in lost(a, b, f"{path}[{i}]")]
    return [] if original == written else [f"{path}: {original!r} became {written!r}"]


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each field in `value`, list items as `[]`."""
    steps = value.items() if isinstance(value, dict) else ()
    items = value if isinstance(value, list) else ()
    for each, step in [(v, f".{k}") for k, v in steps] + [(v, "[]") for v in items]:
        yield path + step
        yield from paths(each, path + step)


def same_instants(value: Any) -> Any:
    """Write the longest form of an instant as the models write it."""
    if isinstance(value, dict):
        return {name: same_instants(each) for name, each in value.items()}
    if isinstance(value, list):
        return [same_instants(each) for each in value]
    return "2030-01-31T18:00:00Z" if value == "2030-01-31T18:00:00.000000000+00:00" else value
