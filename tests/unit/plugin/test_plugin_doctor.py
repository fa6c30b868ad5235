"""What `kubectl isb doctor` asks for, against what the manifests grant."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import yaml

from issuesandbox.entry.plugin.checks_rights import ADAPTERS, OPERATORS, Right
from issuesandbox.local.world.layout import manifests


@pytest.mark.parametrize(
    ("file", "asked"), [("rbac.yaml", OPERATORS), ("webhook-rbac.yaml", ADAPTERS)]
)
def test_doctor_asks_for_one_right_of_each_rule_and_for_each_name(
    file: str, asked: Sequence[Right]
) -> None:
    granted: list[set[Right]] = []
    for each in yaml.safe_load_all((manifests() / "base" / file).read_text()):
        for rule in each.get("rules", ()):
            for name in rule.get("resourceNames", [""]):
                granted.append(
                    {
                        Right(group, resource, verb, name, each["kind"] == "Role")
                        for group in rule["apiGroups"]
                        for resource in rule["resources"]
                        for verb in rule["verbs"]
                    }
                )
    for rights in granted:
        assert rights & {*asked}, f"nobody asks for any of {rights}"
    for right in asked:
        assert any(right in rights for rights in granted), f"nobody grants {right}"
