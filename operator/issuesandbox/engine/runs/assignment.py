"""What an errand is told: the resource as it was when the errand was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DesiredState
from issuesandbox.api.spec_run import Publish, Run
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import RunStatus
from issuesandbox.domain.defaults import RecoveryPolicy
from issuesandbox.domain.flags import ALL_ON, FlagSet
from issuesandbox.domain.naming import transcript_name
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.ports.remote import ZERO
from issuesandbox.ports.resources import ResourceKey


@dataclass(frozen=True, slots=True)
class Assignment:
    """One step of one run, and all that is known about it."""

    key: ResourceKey
    resource: IssueSandbox
    status: Status
    """What the pass goes on from, with the ends of the limits in force."""
    sandbox_id: str
    limits: RunLimits
    flags: FlagSet = ALL_ON
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)

    @property
    def run(self) -> RunStatus:
        """Return the run."""
        assert self.status.run is not None, "an assignment is about a run that began"
        return self.status.run

    @property
    def asked(self) -> Run:
        """Return what the spec asks of the run."""
        return self.resource.spec.run or Run()

    @property
    def repository(self) -> str:
        """Return the repository of the issue."""
        return self.resource.spec.issue.repository

    @property
    def deleting(self) -> bool:
        """Tell whether the resource is being deleted."""
        return self.resource.metadata.deletion_timestamp is not None

    @property
    def stop_asked(self) -> bool:
        """Tell whether somebody asked for the end of the run, as far as was known."""
        asked = self.deleting or self.resource.spec.desired_state is DesiredState.STOPPED
        return asked or self.status.stop_requested_at is not None

    @property
    def publish(self) -> Publish:
        """Return where the work goes."""
        return self.asked.publish or Publish()

    @property
    def publishes(self) -> bool:
        """Tell whether the work is pushed at all."""
        return self.publish.enabled

    @property
    def earlier_costs(self) -> tuple[str | None, ...]:
        """Return what earlier runs of the same agent session cost."""
        session = self.run.session_id
        same = (each for each in self.status.history if each.session_id == session)
        return tuple(each.cost_usd for each in same) if session is not None else ()

    @property
    def transcript_name(self) -> str:
        """Return the ConfigMap of what the agent printed."""
        return transcript_name(self.key.name, self.run.id)

    @property
    def old_tip(self) -> str:
        """Return where the branch must be for the push: as it was in Preparing."""
        parent = self.run.parent
        return parent.commit if parent is not None and parent.branch_existed else ZERO
