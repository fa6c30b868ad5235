"""REST calls about comments and reactions.

Translates between HTTP and the acts in acts_comments.py; who is told is not known here.
"""

from __future__ import annotations

from issuesandbox.local.github.access import Need
from issuesandbox.local.github.acts_comments import (
    add_comment,
    delete_comment,
    edit_comment,
    react,
    unreact,
)
from issuesandbox.local.github.answers import Answer, GitHubError, invalid, not_found
from issuesandbox.local.github.bodies import query_time
from issuesandbox.local.github.calls import Call, Route
from issuesandbox.local.github.model import Comment, GlobalId, Permission
from issuesandbox.local.github.views_issues import REACTIONS


def _since(call: Call, comments: list[Comment]) -> list[Comment]:
    since = query_time(call.query, "since")
    return [row for row in comments if since is None or row.updated_at >= since]


async def list_comments(call: Call) -> Answer:
    """List the comments of an issue, oldest first."""
    found = _since(call, call.store.comments.group(call.issue.id))
    return call.page(found, call.views.comment)


async def list_all_comments(call: Call) -> Answer:
    """List the comments of all issues of a repository."""
    issues = call.store.issues.group(call.repository.id)
    found = [row for issue in issues for row in call.store.comments.group(issue.id)]
    by_update = call.query.get("sort") == "updated"
    found.sort(
        key=lambda row: (row.updated_at if by_update else row.created_at, row.id),
        reverse=call.query.get("direction") == "desc",
    )
    return call.page(_since(call, found), call.views.comment)


async def create_comment(call: Call) -> Answer:
    """Comment on an issue or pull request."""
    text = (await call.body("IssueComment")).needed("body")
    comment = add_comment(call.world, call.actor, call.issue, text)
    shown = call.views.comment(comment)
    return Answer(201, shown, {"Location": shown["url"]})


async def get_comment(call: Call) -> Answer:
    """Show a comment."""
    return Answer(200, call.views.comment(call.comment))


def _refuse_stranger(call: Call) -> None:
    """Let only the author, and whoever may write, change a comment."""
    account = call.actor.account
    if call.caller.installation is not None or account.id == call.comment.author_id:
        return
    if not call.world.access.role(account, call.repository).covers(Permission.WRITE):
        raise GitHubError(403, "Must have admin rights to Repository.")


async def update_comment(call: Call) -> Answer:
    """Change the text of a comment."""
    _refuse_stranger(call)
    text = (await call.body("IssueComment")).needed("body")
    return Answer(200, call.views.comment(edit_comment(call.world, call.actor, call.comment, text)))


async def remove_comment(call: Call) -> Answer:
    """Delete a comment."""
    _refuse_stranger(call)
    delete_comment(call.world, call.actor, call.comment)
    return Answer(204)


def _subject(call: Call) -> GlobalId:
    is_comment = "comment_id" in call.request.match_info
    return call.comment.id if is_comment else call.issue.id


async def list_reactions(call: Call) -> Answer:
    """List the reactions to an issue or comment."""
    wanted = call.query.get("content")
    found = call.store.reactions.group(_subject(call))
    return call.page([row for row in found if wanted in (None, row.content)], call.views.reaction)


async def create_reaction(call: Call) -> Answer:
    """React; repeated, it answers 200 with the first reaction."""
    content = (await call.body("Reaction")).needed("content")
    if content not in REACTIONS:
        raise invalid("Reaction", "content")
    reaction, is_new = react(call.world, call.actor, _subject(call), content)
    return Answer(201 if is_new else 200, call.views.reaction(reaction))


async def delete_reaction(call: Call) -> Answer:
    """Take a reaction back."""
    reaction = call.store.reactions.get(int(call.part("reaction_id")))
    if reaction is None or reaction.subject_id != _subject(call):
        raise not_found()
    unreact(call.world, reaction)
    return Answer(204)


_READ = Need("issues", on_pull="pull_requests")
_SAY = Need("issues", write=True, role=Permission.READ, on_pull="pull_requests")
_ISSUE = "/repos/{owner}/{repo}/issues/{number:[0-9]+}"
_COMMENTS = "/repos/{owner}/{repo}/issues/comments"
_COMMENT = f"{_COMMENTS}/{{comment_id:[0-9]+}}"
_ONE = "{reaction_id:[0-9]+}"
ROUTES = [
    Route("GET", f"{_ISSUE}/comments", "issues/list-comments", _READ, list_comments),
    Route("POST", f"{_ISSUE}/comments", "issues/create-comment", _SAY, create_comment),
    Route("GET", _COMMENTS, "issues/list-comments-for-repo", _READ, list_all_comments),
    Route("GET", _COMMENT, "issues/get-comment", _READ, get_comment),
    Route("PATCH", _COMMENT, "issues/update-comment", _SAY, update_comment),
    Route("DELETE", _COMMENT, "issues/delete-comment", _SAY, remove_comment),
    Route("GET", f"{_ISSUE}/reactions", "reactions/list-for-issue", _READ, list_reactions),
    Route("POST", f"{_ISSUE}/reactions", "reactions/create-for-issue", _SAY, create_reaction),
    Route(
        "DELETE",
        f"{_ISSUE}/reactions/{_ONE}",
        "reactions/delete-for-issue",
        _SAY,
        delete_reaction,
    ),
    Route(
        "GET", f"{_COMMENT}/reactions", "reactions/list-for-issue-comment", _READ, list_reactions
    ),
    Route(
        "POST",
        f"{_COMMENT}/reactions",
        "reactions/create-for-issue-comment",
        _SAY,
        create_reaction,
    ),
    Route(
        "DELETE",
        f"{_COMMENT}/reactions/{_ONE}",
        "reactions/delete-for-issue-comment",
        _SAY,
        delete_reaction,
    ),
]
