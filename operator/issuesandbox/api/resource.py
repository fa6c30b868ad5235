"""The IssueSandbox object as a whole. Knows nothing of where it comes from."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from issuesandbox.api.constraints import Timestamp
from issuesandbox.api.model import ApiModel, is_empty
from issuesandbox.api.names import API_VERSION, KIND
from issuesandbox.api.spec import Spec
from issuesandbox.api.status import Status


class Metadata(ApiModel):
    """The metadata the operator reads; what it does not read is kept as it is."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    finalizers: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    labels: dict[str, str] = Field(default_factory=dict, exclude_if=is_empty)
    annotations: dict[str, str] = Field(default_factory=dict, exclude_if=is_empty)


class IssueSandbox(ApiModel):
    """One GitHub issue, one sandbox: what it should have and what it has."""

    api_version: Literal["issuesandbox.dev/v1alpha1"] = API_VERSION
    kind: Literal["IssueSandbox"] = KIND
    metadata: Metadata = Field(default_factory=Metadata)
    spec: Spec
    status: Status = Field(default_factory=Status)
