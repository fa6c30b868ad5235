"""What PromQL expressions name, and what the catalogue of metrics knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "manifests" / "monitoring"
_ROW = re.compile(r"^\| `(issuesandbox_\w+)` \| (\w+) \| ([^|]*)\|", re.M)
_SUFFIXES = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}
# What every Python process exports, and what Prometheus adds to every series.
_FOREIGN = {"process_resident_memory_bytes": {"job", "pod"}}


@dataclass(frozen=True)
class Use:
    """One series that an expression asks for, with the labels it filters or groups by."""

    metric: str
    labels: frozenset[str]


def catalogue() -> dict[str, set[str]]:
    """Return the series of docs/metrics.md with their labels."""
    known = {}
    for name, kind, labels in _ROW.findall((ROOT / "docs" / "metrics.md").read_text()):
        for suffix in _SUFFIXES[kind]:
            found = set(re.findall(r"`(\w+)`", labels))
            known[name + suffix] = found | ({"le"} if suffix == "_bucket" else set())
    return known | _FOREIGN


def groups() -> list[dict[str, Any]]:
    """Return the groups of rules."""
    body = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    found: list[dict[str, Any]] = body["spec"]["groups"]
    return found


def rules() -> Iterator[dict[str, Any]]:
    """Yield every rule."""
    for group in groups():
        yield from group["rules"]


def uses(expression: str) -> list[Use]:
    """Return what an expression asks for; raise ValueError if it is no PromQL."""
    found: list[Use] = []
    grouped: set[str] = set()

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            grouped.update(node.modifier.labels)
        if isinstance(node, promql_parser.MatrixSelector):
            node = node.vector_selector
        if isinstance(node, promql_parser.VectorSelector):
            filtered = frozenset(each.name for each in node.matchers.matchers)
            found.append(Use(str(node.name), filtered))

    promql_parser.walk(promql_parser.parse(expression.replace("$__rate_interval", "5m")), visit)
    return [Use(each.metric, each.labels | grouped) for each in found]
