"""Small value types that several parts of the spec share. Knows no field that uses them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from issuesandbox.api.constraints import Excludes, Matches, MaxBytes
from issuesandbox.api.model import SpecModel

ObjectName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    Matches(
        r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?",
        "must be the name of a Kubernetes object: lower case letters, digits, '-' and '.'",
    ),
]

# What `git check-ref-format --branch` refuses; a leading '-' would be read as an option.
GitRef = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200),
    Excludes(
        r"^[-/.]|[\x00-\x20\x7f~^:?*\[\\]|[.][.]|//|/[.]|@[{]|[./]$|[.]lock(/|$)|^@$",
        "must be a name that git accepts for a branch: no spaces, no '..', none of ~ ^ : ? * [ \\, "
        "not starting with '-', '/' or '.', not ending in '/', '.' or '.lock'",
    ),
]

WebAddress = Annotated[
    str,
    StringConstraints(min_length=1, max_length=512),
    Matches(r"https?://[^\x00-\x20\x7f]+", "must be an http:// or https:// address"),
    Excludes(
        r"^https?://[^/?#]*@",
        "must not contain a user or password: put them in a Secret and refer to it",
    ),
]

EnvName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128),
    Matches(
        r"[A-Za-z_][A-Za-z0-9_]*",
        "must be the name of an environment variable: letters, digits and '_', no leading digit",
    ),
]

Argument = Annotated[str, MaxBytes(256)]


class EnvVar(SpecModel):
    """One environment variable."""

    name: EnvName = Field(description="Name of the variable, such as `NODE_ENV`.")
    value: Annotated[str, MaxBytes(1024)] = Field(
        description=(
            "Value as plain text, at most 1024 bytes. Anybody who may read the resource sees it: "
            "put secrets into a Secret and name it in `envFrom`."
        )
    )


class SecretRef(SpecModel):
    """A Secret in the namespace of the resource."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the resource.")


class EnvSource(SpecModel):
    """A Secret whose keys become environment variables."""

    secret_ref: SecretRef = Field(
        description="Secret whose every key becomes an environment variable of that name."
    )


MAX_ENV = 20
MAX_ENV_FROM = 8
EnvList = tuple[EnvVar, ...]
EnvSources = tuple[EnvSource, ...]
