"""`issuesandbox reference`: every field of the resource and every setting, as Markdown.

Made from the code, so that the documents cannot say anything else; a test compares them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import yaml

from issuesandbox.api.crd import render_crd
from issuesandbox.api.durations import Duration
from issuesandbox.domain.timings import Timings
from issuesandbox.entry.config import shown
from issuesandbox.entry.setting_fields import Settings, is_live, names


@click.command()
@click.argument("what", type=click.Choice(("resource", "settings")))
@click.option(
    "--into",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Write it into this page, between its two marks.",
)
def reference(what: str, into: Path | None) -> None:
    """Print the reference of the resource or of the settings as Markdown."""
    text = render_resource() if what == "resource" else render_settings()
    if into is None:
        click.echo(text, nl=False)
        return
    before, start, rest = into.read_text().partition(f"<!-- {what} -->\n")
    _, end, after = rest.partition(f"<!-- /{what} -->")
    if not (start and end):
        raise click.ClickException(f"{into} has no marks <!-- {what} --> and <!-- /{what} -->")
    into.write_text(f"{before}{start}{text}{end}{after}")


def render_resource() -> str:
    """Return one table for the spec and one for the status, a line for each field."""
    (version,) = yaml.safe_load(render_crd())["spec"]["versions"]
    parts = version["schema"]["openAPIV3Schema"]["properties"]
    blocks = []
    for part in ("spec", "status"):
        rows = "\n".join(_rows(parts[part], part))
        header = "| field | type | meaning |\n| --- | --- | --- |"
        blocks.append(f"## {part}\n\n{header}\n{rows}\n")
    return "\n".join(blocks)


def _rows(schema: dict[str, Any], path: str) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, each in schema.get("properties", {}).items():
        place = f"{path}.{name}"
        inner = each["items"] if each.get("type") == "array" else each
        words = " ".join(each.get("description", "").split()).replace("|", "\\|")
        must = "**Required.** " if name in required else ""
        yield f"| `{place}` | {_type(each)} | {must}{words} |"
        yield from _rows(inner, f"{place}[]" if inner is not each else place)


def _type(schema: dict[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    default = f", default `{schema['default']}`" if "default" in schema else ""
    return f"{schema['type']}{default}"


def render_settings() -> str:
    """Return the list of all settings, and that of the timings, as Markdown."""
    lines = ["| setting | default | restart | meaning |", "| --- | --- | --- | --- |"]
    for name, field in names().items():
        info = Settings.model_fields[field]
        default = "required" if info.is_required() else f"`{shown(name, info.default)}`"
        restart = "no" if is_live(field) else "yes"
        lines.append(
            f"| `{name}` | {default.replace('`-`', '-')} | {restart} | {info.description} |"
        )
    lines += ["", "| timing | default | meaning |", "| --- | --- | --- |"]
    meanings = _timing_meanings()
    for each in fields(Timings):
        assert isinstance(each.default, timedelta)
        lines.append(f"| `{each.name}` | `{Duration.of(each.default)}` | {meanings[each.name]} |")
    return "\n".join(lines) + "\n"


def _timing_meanings() -> dict[str, str]:
    """Return the text below each timing in the source: Python itself does not keep it."""
    (model,) = ast.parse(dedent(inspect.getsource(Timings))).body
    assert isinstance(model, ast.ClassDef)
    found = {}
    for field, text in pairwise(model.body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                found[name] = meaning
    return found
