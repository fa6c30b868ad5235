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
    tree = promql_parser.parse(expression.replace("$__rate_interval", "5m"))
    return list(_uses(tree, frozenset()))


def _uses(node: Any, grouped: frozenset[str]) -> Iterator[Use]:
    """Yield each selector with its own labels, and those that are grouped by around it."""
    match node:
        case promql_parser.VectorSelector():
            filtered = {each.name for each in node.matchers.matchers}
            yield Use(str(node.name), grouped | filtered)
        case promql_parser.MatrixSelector():
            yield from _uses(node.vector_selector, grouped)
        case promql_parser.AggregateExpr():
            labels = node.modifier.labels if node.modifier is not None else ()
            yield from _uses(node.expr, grouped.union(labels))
        case promql_parser.BinaryExpr():
            yield from _uses(node.lhs, grouped)
            yield from _uses(node.rhs, grouped)
        case promql_parser.Call():
            for each in node.args:
                yield from _uses(each, grouped)
        case promql_parser.ParenExpr() | promql_parser.UnaryExpr() | promql_parser.SubqueryExpr():
            yield from _uses(node.expr, grouped)
