"""The Daytona sandbox a resource asks for. Knows nothing of runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from issuesandbox.api.constraints import Matches, add_rule, merged_by, rule, rules
from issuesandbox.api.durations import Duration, within
from issuesandbox.api.model import SpecModel
from issuesandbox.api.spec_common import MAX_ENV, MAX_ENV_FROM, EnvList, EnvSources

# Daytona's longest interval before an idle sandbox is archived.
LONGEST_ARCHIVE = "720h"

# One line without blanks: the image becomes the FROM line of a build.
Image = Annotated[
    str,
    StringConstraints(min_length=1, max_length=256),
    Matches(
        r"[A-Za-z0-9][A-Za-z0-9._/:@-]*",
        'must be the name of an image, such as "debian:12" or "registry.example.com/team/tool:1.4"',
    ),
]

SnapshotName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=256),
    Matches(
        r"[A-Za-z0-9][A-Za-z0-9._/:@-]*",
        "must be the name or id of a Daytona snapshot: letters, digits and . _ / : @ -",
    ),
]

Target = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64),
    Matches(
        r"[A-Za-z0-9][A-Za-z0-9._-]*", 'must be the name of a Daytona target, such as "us" or "eu"'
    ),
]

LinuxUser = Annotated[
    str,
    StringConstraints(min_length=1, max_length=32),
    Matches(
        r"[a-z_][a-z0-9_-]*",
        'must be a Linux user name, such as "daytona": lower case letters, digits, _ and -',
    ),
]

Domain = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    Matches(
        r"([*][.])?[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*",
        'must be a domain, such as "example.com" or "*.example.com"',
    ),
]


def _is_cidr(schema: dict[str, object]) -> None:
    add_rule(schema, "isCIDR(self)", 'must be a network in CIDR notation, such as "10.0.0.0/8"')


Cidr = Annotated[
    str, StringConstraints(min_length=1, max_length=64), Field(json_schema_extra=_is_cidr)
]


class NameCollisionPolicy(StrEnum):
    """What to do when the sandbox's name is taken by something that is not ours."""

    SUFFIX = "Suffix"
    FAIL = "Fail"


class Resources(SpecModel):
    """Size of the sandbox."""

    cpu: int | None = Field(
        default=None, ge=1, le=512, description="CPU cores. Default: Daytona's default."
    )
    memory: int | None = Field(
        default=None, ge=1, le=4096, description="Memory in GiB. Default: Daytona's default."
    )
    disk: int | None = Field(
        default=None, ge=1, le=65536, description="Disk in GiB. Default: Daytona's default."
    )
    gpu: int | None = Field(default=None, ge=0, le=64, description="GPUs. Default: none.")


class Network(SpecModel):
    """What the sandbox may reach."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!self.blockAll || !(has(self.allowCIDRs) || has(self.allowDomains))",
                "blockAll leaves nothing to allow: remove allowCIDRs and allowDomains or set "
                "blockAll to false",
            )
        )
    )

    block_all: bool = Field(
        default=False,
        description=(
            "Block all network access; the agent then cannot reach its model. Default: false."
        ),
    )
    allow_cidrs: tuple[Cidr, ...] | None = Field(
        default=None,
        alias="allowCIDRs",
        min_length=1,
        max_length=10,
        description=(
            "Networks the sandbox may reach, such as `10.0.0.0/8`; all others are blocked. "
            "Default: no limit."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    allow_domains: tuple[Domain, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=20,
        description=(
            "Domains the sandbox may reach, such as `*.example.com`; all others are blocked. "
            "Default: no limit."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class Sandbox(SpecModel):
    """The sandbox; a change takes effect with the next sandbox or run."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(has(self.snapshot) && has(self.image))",
                "give at most one of snapshot and image",
            ),
            rule(
                "!(has(self.snapshot) && has(self.resources))",
                "resources cannot be given with a snapshot: Daytona takes the size from the "
                "snapshot; use an image instead",
            ),
            within("startTimeout", "1s", None, "startTimeout must be at least 1s"),
            within(
                "autoArchive",
                None,
                LONGEST_ARCHIVE,
                f"autoArchive must be at most {LONGEST_ARCHIVE}, Daytona's longest interval",
            ),
        )
    )

    snapshot: SnapshotName | None = Field(
        default=None,
        description=(
            "Daytona snapshot to create the sandbox from. Default: the operator's setting, else "
            "Daytona's default snapshot. Not together with `image`."
        ),
    )
    image: Image | None = Field(
        default=None,
        description=(
            "Container image to build the sandbox from, such as `debian:12`; slower than a "
            "snapshot. Not together with `snapshot`."
        ),
    )
    target: Target | None = Field(
        default=None,
        description=(
            "Daytona target (region), such as `us` or `eu`. Default: the operator's setting."
        ),
    )
    user: LinuxUser | None = Field(
        default=None, description="Linux user inside the sandbox. Default: Daytona's default."
    )
    resources: Resources | None = Field(
        default=None,
        description="Size of a sandbox made from an image; a snapshot brings its own.",
    )
    env: EnvList | None = Field(
        default=None,
        max_length=MAX_ENV,
        description="Environment variables of every process in the sandbox. Not for secrets.",
        json_schema_extra=merged_by("name"),
    )
    env_from: EnvSources | None = Field(
        default=None,
        max_length=MAX_ENV_FROM,
        description=(
            "Secrets whose keys become environment variables of every process in the sandbox, "
            "later ones winning. Daytona stores them: the model key belongs in "
            "`run.agent.envFrom`."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    auto_stop: Duration | None = Field(
        default=None,
        description=(
            "Daytona stops the sandbox after this time without traffic, also when the operator is "
            "gone. Rounded up to minutes; `0s` is never. Default: the operator's setting (60m)."
        ),
    )
    auto_archive: Duration | None = Field(
        default=None,
        description=(
            "Daytona archives the sandbox when stopped for this long. Rounded up to minutes; at "
            "most 720h, which `0s` means too. Default: the operator's setting (24h)."
        ),
    )
    auto_delete: Duration | None = Field(
        default=None,
        description=(
            "Daytona deletes the sandbox when stopped for this long. Rounded up to minutes; `0s` "
            "is never. Default: the operator's setting (72h)."
        ),
    )
    ttl: Duration | None = Field(
        default=None,
        description=(
            "Daytona deletes the sandbox this long after its creation, whatever it does. Rounded "
            "up to minutes; `0s` is never. Default: the operator's setting (168h)."
        ),
    )
    network: Network | None = Field(
        default=None, description="What the sandbox may reach. Default: Daytona's default."
    )
    name_collision_policy: NameCollisionPolicy = Field(
        default=NameCollisionPolicy.SUFFIX,
        description=(
            "When the name is taken by a sandbox that is not ours: `Suffix` appends six characters "
            "to it, `Fail` ends with NameCollision. The other sandbox is never touched. Default: "
            "Suffix."
        ),
    )
    start_timeout: Duration | None = Field(
        default=None,
        description=(
            "A sandbox that does not run this long after its start counts as broken. Default: the "
            "operator's setting (180s)."
        ),
    )
