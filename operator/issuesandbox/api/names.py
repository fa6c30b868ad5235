"""Names that the resource, its labels and its annotations carry in Kubernetes and in Daytona.

Knows no models and no behaviour: every other part takes these names from here.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "issuesandbox.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "issuesandbox.dev/v1alpha1"
KIND: Final = "IssueSandbox"
LIST_KIND: Final = "IssueSandboxList"
PLURAL: Final = "issuesandboxes"
SINGULAR: Final = "issuesandbox"
SHORT_NAME: Final = "isb"
CATEGORY: Final = "issuesandbox"
CRD_NAME: Final = f"{PLURAL}.{GROUP}"

# Removed from a resource only after its sandbox is confirmed gone.
FINALIZER: Final = f"{GROUP}/sandbox"

# Labels on every sandbox in Daytona: they alone prove whose it is.
LABEL_INSTALLATION: Final = f"{GROUP}/installation"
LABEL_NAMESPACE: Final = f"{GROUP}/namespace"
LABEL_RESOURCE: Final = f"{GROUP}/resource"
LABEL_UID: Final = f"{GROUP}/uid"
LABEL_REPOSITORY: Final = f"{GROUP}/repository"
LABEL_NUMBER: Final = f"{GROUP}/number"
LABEL_NAME: Final = f"{GROUP}/name"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
# The uid of the operator's namespace: tells two operators apart that were given one id.
LABEL_HOME: Final = f"{GROUP}/home"

# Label on a resource: `true` keeps it after ttlAfterFinished.
LABEL_KEEP: Final = f"{GROUP}/keep"

# Annotations on a resource.
ANNOTATION_FIRST_CREATE: Final = f"{GROUP}/first-create"
# The sandbox's name, by whoever makes the resource, together with the finalizer: the operator
# need not announce the first create any more.
ANNOTATION_ANNOUNCED: Final = f"{GROUP}/announced"
ANNOTATION_PAUSED: Final = f"{GROUP}/paused"
ANNOTATION_FORCE_FINALIZE: Final = f"{GROUP}/force-finalize"

# ConfigMaps in the operator's namespace: the settings, the switch that stops all changes (its
# existence is the switch), and what the operator thinks of its settings.
SETTINGS_MAP: Final = "issuesandbox"
FREEZE_MAP: Final = "issuesandbox-freeze"
STATUS_MAP: Final = "issuesandbox-status"
# Beside them the webhook adapter's: its policy, under one key, and how far its catch-up came.
POLICY_MAP: Final = "issuesandbox-webhook-policy"
POLICY_KEY: Final = "policy.yaml"
CURSOR_MAP: Final = "issuesandbox-webhook-cursor"
OPERATOR_NAMESPACE: Final = "issuesandbox-system"
