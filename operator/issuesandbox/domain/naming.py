"""The names and labels by which a sandbox is found again, and the rule of who owns one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from issuesandbox.api.names import (
    LABEL_ATTEMPT,
    LABEL_HOME,
    LABEL_INSTALLATION,
    LABEL_NAME,
    LABEL_NAMESPACE,
    LABEL_NUMBER,
    LABEL_REPOSITORY,
    LABEL_RESOURCE,
    LABEL_UID,
)


class Ownership(StrEnum):
    """Whose sandbox the labels show."""

    OURS = "ours"
    KIN = "of another resource for the same issue"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a resource is, for Daytona: everything its sandbox's labels are made of."""

    installation: str
    namespace: str
    resource: str
    uid: str
    repository: str
    number: int
    home: str = ""
    """Where the operator lives; empty if that is not known."""

    def labels(self, name: str, attempt: int) -> dict[str, str]:
        """Return the labels of this resource's sandbox."""
        home = {LABEL_HOME: self.home} if self.home else {}
        return {
            **home,
            LABEL_INSTALLATION: self.installation,
            LABEL_NAMESPACE: self.namespace,
            LABEL_RESOURCE: self.resource,
            LABEL_UID: self.uid,
            LABEL_REPOSITORY: self.repository.lower(),
            LABEL_NUMBER: str(self.number),
            LABEL_NAME: name,
            LABEL_ATTEMPT: str(attempt),
        }

    def ownership(self, labels: Mapping[str, str]) -> Ownership:
        """Tell whose sandbox the labels show; a name alone proves nothing."""
        own = self.labels("", 0)
        identity = (LABEL_INSTALLATION, LABEL_REPOSITORY, LABEL_NUMBER)
        if any(labels.get(key) != own[key] for key in identity):
            return Ownership.FOREIGN
        if labels.get(LABEL_UID) == self.uid:
            return Ownership.OURS
        return Ownership.FOREIGN if is_from_elsewhere(labels, self.home) else Ownership.KIN

    def is_stripped(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels of ours were taken off, and none of somebody else put on."""
        own = self.labels("", 0)
        identity = (LABEL_INSTALLATION, LABEL_REPOSITORY, LABEL_NUMBER, LABEL_UID)
        shown = [(labels.get(key), own[key]) for key in identity]
        taken = any(found is None for found, _ in shown)
        return taken and all(found in (None, ours) for found, ours in shown)


def is_from_elsewhere(labels: Mapping[str, str], home: str) -> bool:
    """Tell whether a sandbox was made by another operator, though it may have our id."""
    return bool(home) and labels.get(LABEL_HOME, home) != home


def disowned(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a sandbox that is ours no more; nobody reaps or adopts it."""
    return {name: value for name, value in labels.items() if name != LABEL_INSTALLATION}


def installation_labels(installation: str) -> dict[str, str]:
    """Return the labels that every sandbox of an installation has."""
    return {LABEL_INSTALLATION: installation}


def sandbox_name(number: int) -> str:
    """Return the sandbox name of an issue; the same for every attempt."""
    return f"claude-issue-{number}"


def generation_name(name: str) -> str:
    """Return the name to use when our own undeletable sandbox holds `name`: `-g2`, then `-g3`."""
    stem, mark, number = name.rpartition("-g")
    if mark and number.isdigit():
        return f"{stem}-g{int(number) + 1}"
    return f"{name}-g2"


def generation(name: str) -> int:
    """Return which generation of a name it is, from 1."""
    _, mark, number = name.rpartition("-g")
    return int(number) if mark and number.isdigit() else 1


def attempt_of(labels: Mapping[str, str], default: int | None) -> int:
    """Return which attempt a sandbox is, by its own label if it has one."""
    label = labels.get(LABEL_ATTEMPT, "")
    return int(label) if label.isdigit() else default or 1


def suffixed_name(name: str, identity: Identity) -> str:
    """Return the name to use when `name` belongs to somebody else."""
    origin = f"{identity.installation}/{identity.repository.lower()}".encode()
    return f"{name}-{hashlib.sha256(origin).hexdigest()[:6]}"


def transcript_name(resource: str, run_id: str) -> str:
    """Return the ConfigMap that holds what the agent of a run printed."""
    return f"{resource[:200]}-{run_id}"
