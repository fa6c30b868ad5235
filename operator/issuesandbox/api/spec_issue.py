"""Which GitHub issue a resource stands for. Knows nothing of sandboxes or runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from issuesandbox.api.constraints import Excludes, Matches, MaxBytes, rule, rules
from issuesandbox.api.model import SpecModel
from issuesandbox.api.spec_common import WebAddress

# An integer that JSON readers of every language keep exactly.
MAX_INTEGER = 2**53 - 1
_OWNER = "[A-Za-z0-9][A-Za-z0-9_-]{0,38}"
_NAME = "[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*"

Repository = Annotated[
    str,
    StringConstraints(min_length=3, max_length=140),
    Matches(
        f"{_OWNER}/{_NAME}", 'must be "owner/name" as on GitHub, such as "octocat/hello-world"'
    ),
    Excludes(r"[.]git$", 'must not end in ".git": write "owner/name"'),
]

Login = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64),
    Matches(
        r"[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?",
        'must be a GitHub login, such as "octocat" or "renovate[bot]"',
    ),
]


class Issue(SpecModel):
    """The GitHub issue: who it is never changes, its text may."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.repository == oldSelf.repository",
                "repository cannot be changed: delete this resource and create one for the other "
                "issue",
            ),
            rule(
                "self.number == oldSelf.number",
                "number cannot be changed: delete this resource and create one for the other issue",
            ),
            rule(
                "has(self.id) == has(oldSelf.id)",
                "id cannot be added or removed later: the name of the sandbox was chosen from it",
            ),
            rule(
                "!has(self.id) || !has(oldSelf.id) || self.id == oldSelf.id",
                "id cannot be changed: the name of the sandbox was chosen from it",
            ),
        )
    )

    repository: Repository = Field(
        description=(
            "Repository of the issue as `owner/name`. Cannot be changed. GitHub ignores case here, "
            "and so does the operator when it looks for a second resource of the same issue."
        )
    )
    number: int = Field(
        ge=1,
        le=2**31 - 1,
        description="Number of the issue in its repository, as in `#12`. Cannot be changed.",
    )
    id: int | None = Field(
        default=None,
        ge=1,
        le=MAX_INTEGER,
        description=(
            "Number that names the sandbox: `claude-issue-{id}`. Default: `number`. The webhook "
            "adapter fills in GitHub's global id where the operator's setting `naming` is "
            "`GlobalId`. Cannot be changed, added or removed later."
        ),
    )
    title: str | None = Field(
        default=None,
        max_length=256,
        description="Title of the issue. Default: read from GitHub when a run begins.",
    )
    body: Annotated[str, MaxBytes(65536)] | None = Field(
        default=None,
        description=(
            "Text of the issue, at most 64 KiB. It reaches the agent as data in a file. Default: "
            "read from GitHub when a run begins."
        ),
    )
    labels: tuple[Annotated[str, StringConstraints(min_length=1, max_length=50)], ...] | None = (
        Field(
            default=None,
            max_length=100,
            description="Labels of the issue on GitHub. Default: read from GitHub.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        )
    )
    author: Login | None = Field(
        default=None, description="GitHub login of the issue's author. Default: read from GitHub."
    )
    url: WebAddress | None = Field(
        default=None, description="Web address of the issue, for people. Nothing is read from it."
    )
