"""What a pass saw and did, as far as the status cares. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from issuesandbox.api.status_sandbox import Intent
from issuesandbox.domain.model import ActionKind
from issuesandbox.domain.sandbox import SandboxId, SandboxView


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pass saw and did, as far as the status cares."""

    sandbox: SandboxView | None = None
    gone: bool = False
    done: tuple[ActionKind, ...] = ()
    failure: str | None = None
    """Why a call of this pass failed."""
    refused: bool = False
    """Whether it failed though Daytona could be asked about the sandbox."""
    not_found: bool = False
    """Whether it failed because Daytona did not know the sandbox."""
    name_taken: bool = False
    """Whether a create was answered: there is a sandbox of that name."""
    start_refused: bool = False
    start_put_off: bool = False
    """Whether a start was refused because another change is under way."""
    recovery_refused: bool = False
    replaced: bool = False
    retired_gone: SandboxId | None = None
    duplicate: SandboxView | None = None
    """Another live sandbox of this resource, beside the one that it has."""
    granted: Intent | None = None
    """The create that was sent on the word of whoever made the resource."""
    announced: bool = False
    """A deletion was announced in this very pass, and counted with that."""
