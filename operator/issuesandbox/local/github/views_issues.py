"""How issues, comments, reactions, history and pull requests look in GitHub's JSON.

Only shapes. What git knows about a pull request is handed in, because reading it takes time.
"""

from __future__ import annotations

from dataclasses import dataclass

from issuesandbox.local.github.addresses import node_id
from issuesandbox.local.github.answers import maybe_moment, moment
from issuesandbox.local.github.model import (
    Account,
    Comment,
    GlobalId,
    Issue,
    IssueEvent,
    Label,
    Pull,
    Reaction,
    Repository,
)
from issuesandbox.local.github.views import Json, Views

REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


@dataclass(frozen=True)
class PullFacts:
    """What git says about the two branches of a pull request."""

    commits: int = 0
    additions: int = 0
    deletions: int = 0
    changed_files: int = 0
    mergeable: bool | None = None


class IssueViews(Views):
    """Shapes for everything that hangs on an issue or pull request."""

    def label(self, repository: Repository, label: Label) -> Json:
        """Show a label."""
        return {
            "id": label.id,
            "node_id": node_id("LA", label.id),
            "url": f"{self.repository_url(repository)}/labels/{label.name}",
            "name": label.name,
            "color": label.color,
            "default": False,
            "description": label.description,
            "archived_at": None,
            "archived_by": None,
        }

    def labels_of(self, issue: Issue) -> list[Label]:
        """Return the labels of an issue."""
        return [self.store.labels[ident] for ident in issue.label_ids]

    def assignees_of(self, issue: Issue) -> list[Account]:
        """Return the assignees of an issue."""
        return [self.store.accounts[ident] for ident in issue.assignee_ids]

    def rollup(self, url: str, subject: GlobalId) -> Json:
        """Count the reactions to something."""
        given = [reaction.content for reaction in self.store.reactions.group(subject)]
        counts = {content: given.count(content) for content in REACTIONS}
        return {"url": f"{url}/reactions", "total_count": len(given), **counts}

    def issue_url(self, issue: Issue) -> str:
        """Return the API address of an issue."""
        repository = self.store.repositories[issue.repository_id]
        return f"{self.repository_url(repository)}/issues/{issue.number}"

    def issue_page(self, issue: Issue) -> str:
        """Return the address of an issue's or pull request's page."""
        full_name = self.store.full_name(self.store.repositories[issue.repository_id])
        kind = "issues" if issue.pull_id is None else "pull"
        return f"{self.links.web}/{full_name}/{kind}/{issue.number}"

    def issue(self, issue: Issue) -> Json:
        """Show an issue, or a pull request as the issue it also is."""
        repository = self.store.repositories[issue.repository_id]
        url = self.issue_url(issue)
        shown = {
            "id": issue.id,
            "node_id": node_id("I", issue.id),
            "url": url,
            "repository_url": self.repository_url(repository),
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "timeline_url": f"{url}/timeline",
            "html_url": self.issue_page(issue),
            "state_reason": issue.state_reason,
            **self._conversation(repository, issue),
            "comments": len(self.store.comments.group(issue.id)),
            "performed_via_github_app": self.app(self.store.app()) if issue.via_app else None,
            "reactions": self.rollup(url, issue.id),
        }
        if issue.pull_id is not None:
            shown |= self._pull_part(issue, self.store.pulls[issue.pull_id])
        return shown

    def full_issue(self, issue: Issue) -> Json:
        """Show an issue on its own; lists and webhooks leave out who closed it."""
        return {**self.issue(issue), "closed_by": self.maybe_account(issue.closed_by)}

    def _conversation(self, repository: Repository, issue: Issue) -> Json:
        """Show what issues and pull requests have in common."""
        author = self.store.accounts[issue.author_id]
        assignees = [self.account(account) for account in self.assignees_of(issue)]
        return {
            "number": issue.number,
            "state": issue.state.value,
            "locked": issue.locked,
            "active_lock_reason": issue.lock_reason,
            "title": issue.title,
            "body": issue.body,
            "user": self.account(author),
            "labels": [self.label(repository, label) for label in self.labels_of(issue)],
            "assignee": assignees[0] if assignees else None,
            "assignees": assignees,
            "milestone": None,
            "author_association": self.access.association(author, repository).value,
            "created_at": moment(issue.created_at),
            "updated_at": moment(issue.updated_at),
            "closed_at": maybe_moment(issue.closed_at),
        }

    def _pull_part(self, issue: Issue, pull: Pull) -> Json:
        page = self.issue_page(issue)
        return {
            "draft": pull.draft,
            "pull_request": {
                "url": self.issue_url(issue).replace("/issues/", "/pulls/"),
                "html_url": page,
                "diff_url": f"{page}.diff",
                "patch_url": f"{page}.patch",
                "merged_at": maybe_moment(pull.merged_at),
            },
        }

    def comment(self, comment: Comment) -> Json:
        """Show a comment."""
        issue = self.store.issues[comment.issue_id]
        repository = self.store.repositories[issue.repository_id]
        author = self.store.accounts[comment.author_id]
        url = f"{self.repository_url(repository)}/issues/comments/{comment.id}"
        return {
            "id": comment.id,
            "node_id": node_id("IC", comment.id),
            "url": url,
            "html_url": f"{self.issue_page(issue)}#issuecomment-{comment.id}",
            "issue_url": self.issue_url(issue),
            "user": self.account(author),
            "author_association": self.access.association(author, repository).value,
            "body": comment.body,
            "created_at": moment(comment.created_at),
            "updated_at": moment(comment.updated_at),
            "performed_via_github_app": self.app(self.store.app()) if comment.via_app else None,
            "reactions": self.rollup(url, comment.id),
        }

    def reaction(self, reaction: Reaction) -> Json:
        """Show a reaction."""
        return {
            "id": reaction.id,
            "node_id": node_id("REA", reaction.id),
            "user": self.maybe_account(reaction.account_id),
            "content": reaction.content,
            "created_at": moment(reaction.created_at),
        }

    def event(self, event: IssueEvent) -> Json:
        """Show an entry of an issue's history."""
        issue = self.store.issues[event.issue_id]
        repository = self.store.repositories[issue.repository_id]
        shown = {
            "id": event.id,
            "node_id": node_id("EV", event.id),
            "url": f"{self.repository_url(repository)}/issues/events/{event.id}",
            "actor": self.maybe_account(event.actor_id),
            "event": event.event,
            "commit_id": event.commit,
            "commit_url": None,
            "created_at": moment(event.created_at),
            "performed_via_github_app": None,
        }
        label = self.store.labels.get(event.label_id or 0)
        if label is not None:
            shown["label"] = {"name": label.name, "color": label.color}
        if event.assignee_id is not None:
            shown["assignee"] = self.maybe_account(event.assignee_id)
        if event.renamed_to is not None:
            shown["rename"] = {"from": event.renamed_from, "to": event.renamed_to}
        return shown

    def pull(self, issue: Issue, pull: Pull) -> Json:
        """Show a pull request as lists do."""
        repository = self.store.repositories[issue.repository_id]
        base = self.repository_url(repository)
        url = f"{base}/pulls/{issue.number}"
        addresses = {
            "issue": self.issue_url(issue),
            "commits": f"{url}/commits",
            "review_comments": f"{url}/comments",
            "review_comment": f"{base}/pulls/comments{{/number}}",
            "comments": f"{self.issue_url(issue)}/comments",
            "statuses": f"{base}/statuses/{pull.head_sha}",
        }
        page = self.issue_page(issue)
        links = {**addresses, "self": url, "html": page}
        return {
            "id": pull.id,
            "node_id": node_id("PR", pull.id),
            "url": url,
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            **{f"{name}_url": address for name, address in addresses.items()},
            **self._conversation(repository, issue),
            "draft": pull.draft,
            "merged_at": maybe_moment(pull.merged_at),
            "merge_commit_sha": pull.merge_sha,
            "requested_reviewers": [],
            "requested_teams": [],
            "head": self._branch(repository, pull.head, pull.head_sha),
            "base": self._branch(repository, pull.base, pull.base_sha),
            "_links": {name: {"href": address} for name, address in links.items()},
            "auto_merge": None,
        }

    def _branch(self, repository: Repository, branch: str, sha: str) -> Json:
        owner = self.store.accounts[repository.owner_id]
        return {
            "label": f"{owner.login}:{branch}",
            "ref": branch,
            "sha": sha,
            "user": self.account(owner),
            "repo": self.repository(repository),
        }

    def full_pull(self, issue: Issue, pull: Pull, facts: PullFacts) -> Json:
        """Show a pull request on its own, with what git says."""
        return {
            **self.pull(issue, pull),
            "merged": pull.merged_at is not None,
            "merged_by": self.maybe_account(pull.merged_by),
            "mergeable": facts.mergeable,
            "mergeable_state": {True: "clean", False: "dirty", None: "unknown"}[facts.mergeable],
            "comments": len(self.store.comments.group(issue.id)),
            "review_comments": 0,
            "maintainer_can_modify": pull.maintainer_can_modify,
            "commits": facts.commits,
            "additions": facts.additions,
            "deletions": facts.deletions,
            "changed_files": facts.changed_files,
        }
