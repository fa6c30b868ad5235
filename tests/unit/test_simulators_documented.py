"""docs/simulators.md names every call and every switch that the simulators have, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from issuesandbox.local.daytona.admin_sandboxes import AdminSandboxCalls
from issuesandbox.local.daytona.admin_world import AdminWorldCalls
from issuesandbox.local.daytona.faults import FaultSpec, Name
from issuesandbox.local.github import admin_chaos, admin_people, admin_setup
from issuesandbox.local.github.admin import ADMIN_PREFIX

PAGE = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text()
DAYTONA, GITHUB = PAGE.split("\n## GitHub\n")


def documented(text: str) -> set[str]:
    return set(re.findall(r"^\| `([A-Z]+ /_sim[^`]*)` \|", text, re.MULTILINE))


def test_the_calls_of_daytonas_administrator() -> None:
    nobody: Any = SimpleNamespace(timeline=None)
    routes = [*AdminWorldCalls(nobody).routes(), *AdminSandboxCalls(nobody).routes()]
    assert documented(DAYTONA) == {f"{route.method} {route.path}" for route in routes}


def test_the_calls_of_githubs_administrator() -> None:
    routes = [*admin_chaos.ROUTES, *admin_people.ROUTES, *admin_setup.ROUTES]
    plain = {
        re.sub(r":[^{}]+}", "}", f"{each.method} {ADMIN_PREFIX}{each.path}") for each in routes
    }
    assert documented(GITHUB) == plain


def test_the_switches_and_what_they_take() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", DAYTONA, re.MULTILINE)) == set(Name)
    fields = {each.name for each in msgspec.structs.fields(FaultSpec)} - {"fault"}
    assert [name for name in fields if f"`{name}`" not in DAYTONA] == []
