"""Every answer parses strictly with the models made from GitHub's own API description.

What is read here once more is read in every test: the clients of these tests judge each answer by
the table of models.
"""

from __future__ import annotations

import json

import pytest
from github_judge import Api, Drain, Reply, strictly
from github_models import MODELS, operation
from githubkit_schemas.v2026_03_10 import models as gh
from pydantic import ValidationError

from issuesandbox.local.github.server import REST_ROUTES


def test_every_call_has_its_model() -> None:
    assert set(MODELS) == {route.operation for route in REST_ROUTES}
    assert operation("GET", "/repos/a/b/issues/7/comments") == "issues/list-comments"
    assert operation("GET", "/repos/a/b/issues/comments/7") == "issues/get-comment"
    assert operation("PATCH", "/repos/a/b/git/refs/heads/x/y") == "git/update-ref"


async def test_an_answer_that_does_not_fit_its_model_is_seen(root: Api, repo: str) -> None:
    shown = await root.get(f"/repos/{repo}")
    root.judge("GET", f"{root.base}/repos/{repo}", Reply(200, {}, shown))
    with pytest.raises(ValidationError):
        root.judge("GET", f"{root.base}/repos/{repo}", Reply(200, {}, {**shown, "id": "7"}))
    with pytest.raises(AssertionError, match="novelty"):
        root.judge("GET", f"{root.base}/repos/{repo}", Reply(200, {}, {**shown, "novelty": 1}))
    with pytest.raises(ValidationError):
        root.judge("GET", f"{root.base}/repos/{repo}", Reply(404, {}, {"message": 7}))


async def test_repositories_and_accounts(root: Api, repo: str) -> None:
    shown = strictly(gh.FullRepository, await root.get(f"/repos/{repo}"))
    assert shown.default_branch == "main"
    assert shown.clone_url == f"{root.base}/{repo}.git"
    strictly(list[gh.MinimalRepository], await root.get("/orgs/acme/repos"))
    strictly(list[gh.Repository], await root.get("/user/repos"))
    strictly(gh.PublicUser, await root.get("/users/acme"))
    strictly(gh.PrivateUser, await root.get("/user"))
    strictly(gh.RateLimitOverview, await root.get("/rate_limit"))


async def test_branches_commits_and_refs(root: Api, repo: str) -> None:
    branch = strictly(gh.BranchWithProtection, await root.get(f"/repos/{repo}/branches/main"))
    strictly(list[gh.ShortBranch], await root.get(f"/repos/{repo}/branches"))
    strictly(gh.Commit, await root.get(f"/repos/{repo}/commits/main"))
    ref = strictly(gh.GitRef, await root.get(f"/repos/{repo}/git/ref/heads/main"))
    assert ref.object_.sha == branch.commit.sha
    body = {"ref": "refs/heads/other", "sha": ref.object_.sha}
    strictly(gh.GitRef, await root.post(f"/repos/{repo}/git/refs", body))
    strictly(list[gh.GitRef], await root.get(f"/repos/{repo}/git/matching-refs/heads/"))
    moved = strictly(list[gh.Activity], await root.get(f"/repos/{repo}/activity?ref={body['ref']}"))
    assert [(each.after, each.activity_type) for each in moved] == [
        (ref.object_.sha, "branch_creation")
    ]


async def test_issues_with_everything_on_them(root: Api, repo: str) -> None:
    body = {"title": "Bug", "body": "It fails", "labels": ["agent"], "assignees": ["root"]}
    issue = strictly(gh.Issue, await root.post(f"/repos/{repo}/issues", body))
    path = f"/repos/{repo}/issues/{issue.number}"
    strictly(gh.Issue, await root.get(path))
    strictly(list[gh.Issue], await root.get(f"/repos/{repo}/issues"))
    strictly(gh.Issue, await root.call("PATCH", path, {"state": "closed", "title": "Bugs"}))
    strictly(list[gh.Label], await root.get(f"{path}/labels"))
    strictly(list[gh.Label], await root.get(f"/repos/{repo}/labels"))
    strictly(gh.Label, await root.get(f"/repos/{repo}/labels/agent"))
    strictly(gh.Label, await root.post(f"/repos/{repo}/labels", {"name": "x", "color": "ff0000"}))
    events = strictly(list[gh.IssueEvent], await root.get(f"{path}/events"))
    assert [event.event for event in events] == ["labeled", "assigned", "renamed", "closed"]
    strictly(gh.IssueEvent, await root.get(f"/repos/{repo}/issues/events/{events[-1].id}"))
    await root.call("DELETE", f"{path}/labels", status=204)


async def test_comments_and_reactions(root: Api, repo: str) -> None:
    path = f"/repos/{repo}/issues/1"
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    comment = strictly(gh.IssueComment, await root.post(f"{path}/comments", {"body": "hi"}))
    own = f"/repos/{repo}/issues/comments/{comment.id}"
    strictly(gh.IssueComment, await root.call("PATCH", own, {"body": "hello"}))
    strictly(list[gh.IssueComment], await root.get(f"{path}/comments"))
    strictly(list[gh.IssueComment], await root.get(f"/repos/{repo}/issues/comments"))
    for subject in (path, own):
        eyes = strictly(gh.Reaction, await root.post(f"{subject}/reactions", {"content": "eyes"}))
        strictly(list[gh.Reaction], await root.get(f"{subject}/reactions"))
    shown = strictly(gh.IssueComment, await root.get(own))
    assert shown.reactions.eyes == 1
    await root.call("DELETE", f"{own}/reactions/{eyes.id}", status=204)


async def test_pull_requests(root: Api, admin: Api, repo: str) -> None:
    await admin.post(f"/repos/{repo}/push", {"branch": "fix", "files": {"a": "1\n"}}, status=200)
    body = {"title": "Fix", "head": "fix", "base": "main", "body": "text"}
    pull = strictly(gh.PullRequest, await root.post(f"/repos/{repo}/pulls", body))
    assert (pull.commits, pull.additions, pull.changed_files, pull.mergeable) == (1, 1, 1, True)
    path = f"/repos/{repo}/pulls/{pull.number}"
    strictly(gh.PullRequest, await root.get(path))
    strictly(list[gh.PullRequestSimple], await root.get(f"/repos/{repo}/pulls"))
    strictly(gh.Issue, await root.get(f"/repos/{repo}/issues/{pull.number}"))
    strictly(gh.PullRequest, await root.call("PATCH", path, {"title": "Better"}))
    strictly(gh.PullRequestMergeResult, await root.call("PUT", f"{path}/merge"))
    strictly(gh.PullRequest, await root.get(path))


async def test_roles(root: Api, admin: Api, repo: str) -> None:
    await admin.call("PUT", f"/repos/{repo}/members/mia", {"permission": "maintain"})
    path = f"/repos/{repo}/collaborators/mia/permission"
    shown = strictly(gh.RepositoryCollaboratorPermission, await root.get(path))
    assert (shown.permission, shown.role_name) == ("write", "maintain")


async def test_the_app_its_installations_and_tokens(app: Api, installation: int, repo: str) -> None:
    strictly(gh.Integration, await app.get("/app"))
    strictly(list[gh.Installation], await app.get("/app/installations"))
    strictly(gh.Installation, await app.get(f"/app/installations/{installation}"))
    strictly(gh.Installation, await app.get(f"/repos/{repo}/installation"))
    strictly(gh.Installation, await app.get("/orgs/acme/installation"))
    body = {"repositories": ["app"], "permissions": {"contents": "read"}}
    path = f"/app/installations/{installation}/access_tokens"
    token = strictly(gh.InstallationToken, await app.post(path, body))
    assert token.expires_at.endswith("Z")
    strictly(gh.WebhookConfig, await app.get("/app/hook/config"))
    strictly(gh.WebhookConfig, await app.call("PATCH", "/app/hook/config", {"secret": "another"}))


async def test_an_account_of_a_person(app: Api, admin: Api, root: Api) -> None:
    await admin.call("PUT", "/users/mia", {"kind": "User"})
    await admin.post("/repos", {"repository": "mia/notes", "files": {"a": "b"}}, status=200)
    await admin.post("/installations", {"account": "mia"}, status=200)
    strictly(gh.Installation, await app.get("/users/mia/installation"))
    strictly(list[gh.MinimalRepository], await root.get("/users/mia/repos"))


async def test_deliveries(app: Api, root: Api, repo: str, drained: Drain) -> None:
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    await drained()
    listed = strictly(list[gh.HookDeliveryItem], await app.get("/app/hook/deliveries"))
    newest = await app.get(f"/app/hook/deliveries/{listed[0].id}")
    assert newest["request"]["payload"]["issue"]["title"] == "Bug"
    # The models of payload and headers are empty objects that drop what they hold.
    gh.HookDelivery.model_validate_json(json.dumps(newest), strict=True)
