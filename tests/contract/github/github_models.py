"""GitHub's own model of what each call answers; every answer in these tests is read with it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from githubkit_schemas.v2026_03_10 import models as gh
from githubkit_schemas.v2026_03_10.models import (
    InstallationRepositoriesGetResponse200 as InstallationRepositories,
)

from issuesandbox.local.github.server import REST_ROUTES

# What a call answers with nothing.
EMPTY = None
# Payload and headers of a delivery are empty objects in the models, which drop what they hold;
# GraphQL has no models.
LOOSE = object()

MODELS: dict[str, Any] = {
    "apps/get-authenticated": gh.Integration,
    "apps/list-installations": list[gh.Installation],
    "apps/get-installation": gh.Installation,
    "apps/create-installation-access-token": gh.InstallationToken,
    "apps/revoke-installation-access-token": EMPTY,
    "apps/list-repos-accessible-to-installation": InstallationRepositories,
    "apps/get-repo-installation": gh.Installation,
    "apps/get-org-installation": gh.Installation,
    "apps/get-user-installation": gh.Installation,
    "apps/get-webhook-config-for-app": gh.WebhookConfig,
    "apps/update-webhook-config-for-app": gh.WebhookConfig,
    "apps/list-webhook-deliveries": list[gh.HookDeliveryItem],
    "apps/get-webhook-delivery": LOOSE,
    "apps/redeliver-webhook-delivery": gh.AppHookDeliveriesDeliveryIdAttemptsPostResponse202,
    "issues/list-comments": list[gh.IssueComment],
    "issues/create-comment": gh.IssueComment,
    "issues/list-comments-for-repo": list[gh.IssueComment],
    "issues/get-comment": gh.IssueComment,
    "issues/update-comment": gh.IssueComment,
    "issues/delete-comment": EMPTY,
    "reactions/list-for-issue": list[gh.Reaction],
    "reactions/create-for-issue": gh.Reaction,
    "reactions/delete-for-issue": EMPTY,
    "reactions/list-for-issue-comment": list[gh.Reaction],
    "reactions/create-for-issue-comment": gh.Reaction,
    "reactions/delete-for-issue-comment": EMPTY,
    "issues/list-for-repo": list[gh.Issue],
    "issues/create": gh.Issue,
    "issues/get": gh.Issue,
    "issues/update": gh.Issue,
    "issues/lock": EMPTY,
    "issues/unlock": EMPTY,
    "issues/add-assignees": gh.Issue,
    "issues/remove-assignees": gh.Issue,
    "issues/list-events": list[gh.IssueEvent],
    "issues/get-event": gh.IssueEvent,
    "issues/list-labels-for-repo": list[gh.Label],
    "issues/create-label": gh.Label,
    "issues/get-label": gh.Label,
    "issues/delete-label": EMPTY,
    "issues/list-labels-on-issue": list[gh.Label],
    "issues/add-labels": list[gh.Label],
    "issues/set-labels": list[gh.Label],
    "issues/remove-all-labels": EMPTY,
    "issues/remove-label": list[gh.Label],
    "pulls/list": list[gh.PullRequestSimple],
    "pulls/create": gh.PullRequest,
    "pulls/get": gh.PullRequest,
    "pulls/update": gh.PullRequest,
    "pulls/check-if-merged": EMPTY,
    "pulls/merge": gh.PullRequestMergeResult,
    "git/get-ref": gh.GitRef,
    "git/list-matching-refs": list[gh.GitRef],
    "git/create-ref": gh.GitRef,
    "git/update-ref": gh.GitRef,
    "git/delete-ref": EMPTY,
    "rate-limit/get": gh.RateLimitOverview,
    "users/get-authenticated": gh.PrivateUser,
    "users/get-by-username": gh.PublicUser,
    "repos/list-for-authenticated-user": list[gh.Repository],
    "repos/list-for-org": list[gh.MinimalRepository],
    "repos/list-for-user": list[gh.MinimalRepository],
    "repos/get": gh.FullRepository,
    "repos/list-activities": list[gh.Activity],
    "repos/list-branches": list[gh.ShortBranch],
    "repos/get-branch": gh.BranchWithProtection,
    "repos/get-commit": gh.Commit,
    "repos/get-collaborator-permission-level": gh.RepositoryCollaboratorPermission,
    "graphql": LOOSE,
}
REFUSAL = gh.ValidationError | gh.BasicError


class Call(NamedTuple):
    method: str
    path: re.Pattern[str]
    operation: str


@cache
def calls() -> list[Call]:
    """Return the calls that the simulator knows, with their paths as patterns."""
    return [
        Call(route.method, re.compile(_pattern(route.path)), route.operation)
        for route in REST_ROUTES
    ]


def operation(method: str, path: str) -> str | None:
    """Return GitHub's name for a request."""
    found = (
        call.operation for call in calls() if call.method == method and call.path.fullmatch(path)
    )
    return next(found, None)


def _pattern(path: str) -> str:
    parts = re.split(r"\{\w+(?::([^}]+))?\}", path)
    # Every second part is what a placeholder may hold, or None.
    return "".join(
        re.escape(part or "") if index % 2 == 0 else part or "[^/]+"
        for index, part in enumerate(parts)
    )
