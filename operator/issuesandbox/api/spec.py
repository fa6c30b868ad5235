"""The declared truth: what an issue should have. Knows nothing of what it has."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from issuesandbox.api.constraints import rule, rules
from issuesandbox.api.model import SpecModel
from issuesandbox.api.spec_cleanup import Cleanup, Recovery
from issuesandbox.api.spec_common import GitRef, SecretRef, WebAddress
from issuesandbox.api.spec_issue import Issue
from issuesandbox.api.spec_run import Run
from issuesandbox.api.spec_sandbox import Sandbox

# The host is the operator's to judge: only it knows the configured GitHub address.
_OWN_CREDENTIALS = (
    "!has(self.repository) || !has(self.repository.cloneURL)"
    " || has(self.repository.credentialsSecretRef)"
    " || self.repository.cloneURL.lowerAscii().endsWith('/' + self.issue.repository.lowerAscii())"
    " || self.repository.cloneURL.lowerAscii()"
    ".endsWith('/' + self.issue.repository.lowerAscii() + '.git')"
)


class DesiredState(StrEnum):
    """Whether the resource may do anything but rest."""

    RUNNING = "Running"
    STOPPED = "Stopped"


class DeletionPolicy(StrEnum):
    """What the deletion of the resource does to its sandbox."""

    DELETE = "Delete"
    ORPHAN = "Orphan"


class RepositorySource(SpecModel):
    """What is cloned into the sandbox."""

    clone_url: WebAddress | None = Field(
        default=None,
        alias="cloneURL",
        description=(
            "Address to clone from, http or https, without credentials. Default: the issue's "
            "repository at the configured GitHub address. Any other repository needs "
            "`credentialsSecretRef`: the operator's own credentials never go there."
        ),
    )
    ref: GitRef | None = Field(
        default=None,
        description=(
            "Branch, tag or commit to check out. Default: `run.publish.base`, else the default "
            "branch."
        ),
    )
    credentials_secret_ref: SecretRef | None = Field(
        default=None,
        description=(
            "Secret with the keys for `cloneURL`. `read-password` and `read-username` are for the "
            "clone and reach the sandbox: a token that may only read. Without `read-password` the "
            "clone is tried without a credential. `password` and `username` are for the push alone "
            "and never enter a sandbox. `read-username` defaults to `username`, that to `git`. "
            "Default: the operator's own short-lived token, for the issue's repository only."
        ),
    )


class Flags(SpecModel):
    """Overrides of the operator's feature flags for this resource alone."""

    db_backed_stop: bool | None = Field(
        default=None,
        description=(
            "Stop from the stored state, by any replica. Default: the operator's flag "
            "ENABLE_DB_BACKED_STOP."
        ),
    )
    cancellation_checks: bool | None = Field(
        default=None,
        description=(
            "Look for a stop at every tick of a run. Default: the operator's flag "
            "ENABLE_CANCELLATION_CHECKS."
        ),
    )
    health_probe: bool | None = Field(
        default=None,
        description=(
            "Probe a sandbox before it is used again. Default: the operator's flag "
            "ENABLE_HEALTH_PROBE."
        ),
    )
    inactivity_timeout: bool | None = Field(
        default=None,
        description=(
            "End an agent that shows no sign of life. Default: the operator's flag "
            "ENABLE_INACTIVITY_TIMEOUT."
        ),
    )
    authoritative_timeout: bool | None = Field(
        default=None,
        description=(
            "Stop the sandbox of a run that is out of time. Default: the operator's flag "
            "ENABLE_AUTHORITATIVE_TIMEOUT."
        ),
    )


class Spec(SpecModel):
    """What the issue should have; only `issue.repository` and `issue.number` are required."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                _OWN_CREDENTIALS,
                "repository.cloneURL is not the issue's repository: name a Secret in "
                "repository.credentialsSecretRef",
            )
        )
    )

    issue: Issue = Field(description="The GitHub issue this resource stands for.")
    desired_state: DesiredState = Field(
        default=DesiredState.RUNNING,
        description=(
            "`Running`: have a sandbox and run what is asked. `Stopped`: end the run and stop the "
            "sandbox; back to Running does not repeat the run without a new trigger. Default: "
            "Running."
        ),
    )
    run: Run | None = Field(
        default=None,
        description="The agent's run. `{}` is one run with defaults; absent means a sandbox only.",
    )
    sandbox: Sandbox | None = Field(
        default=None,
        description="The Daytona sandbox. A change takes effect with the next sandbox or run.",
    )
    repository: RepositorySource | None = Field(
        default=None, description="What is cloned. Default: the issue's repository."
    )
    cleanup: Cleanup | None = Field(
        default=None,
        description="What happens to the sandbox after a run, by its outcome.",
    )
    recovery: Recovery | None = Field(
        default=None, description="What is tried before a run is given up."
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.DELETE,
        description=(
            "When the resource is deleted: `Delete` its sandbox, or `Orphan` it, leaving it to "
            "Daytona's own limits. Default: Delete."
        ),
    )
    flags: Flags | None = Field(
        default=None, description="Overrides of the operator's feature flags for this resource."
    )
