"""Where the work of a run comes from and where it goes: repository, base, branch, credentials.

The operator's own credentials go to the configured GitHub alone, and only for the repository of
the issue; any other address gets what its Secret holds, or nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from issuesandbox.api.spec import RepositorySource
from issuesandbox.api.status_run import Outcome
from issuesandbox.domain.publication import branch_names
from issuesandbox.domain.runs.chapters import Ending
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.patience import FINAL
from issuesandbox.ports.errors import CallError, Denied, NotFound
from issuesandbox.ports.github import GitHub, RepositoryView, Token

_COMMIT = re.compile(r"[0-9a-f]{40}")


class Hopeless(Exception):
    """The run cannot go on, whatever is tried again."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.ending = Ending(Outcome.FAILED, reason, message)


def reason_of(error: CallError, default: str) -> str:
    """Return the word for a failure: its own if it says more than its kind."""
    return default if error.code == type(error).__name__ else error.code


@dataclass(frozen=True, slots=True)
class Source:
    """What is cloned, and the branch that the work will go to."""

    url: str
    checkout: str | None
    """Branch or tag to check out; None: the remote's default."""
    branch: str
    branch_existed: bool
    commit: str | None = None
    """Commit to check out, in the history of `checkout`."""
    credential: Token | None = None


async def source_of(assignment: Assignment, outside: Outside) -> Source:
    """Return where a run gets its repository from."""
    try:
        return await _source_of(assignment, outside)
    except FINAL as error:
        raise Hopeless(
            reason_of(error, "RepositoryDenied"),
            f"GitHub refuses what a run in {assignment.repository} needs: {error}",
        ) from None


async def _source_of(assignment: Assignment, outside: Outside) -> Source:
    given = assignment.resource.spec.repository or RepositorySource()
    github = outside.github
    if github is not None:
        view = await _repository(assignment, github)
        if is_own(given, view):
            return await _own_source(assignment, given, github, view)
    if given.clone_url is None:
        raise Hopeless(
            "GitHubNotConfigured",
            "The operator has no credentials for GitHub: set GITHUB_APP_ID or GITHUB_TOKEN, or "
            "give spec.repository.cloneURL.",
        )
    number = assignment.resource.spec.issue.number
    branch = assignment.publish.branch or next(iter(branch_names(number)))
    credential = await given_credential(assignment, given, outside)
    if credential is None and assignment.publishes:
        raise Hopeless(
            "CredentialsMissing",
            f"Nobody may push to {given.clone_url}: name a Secret in "
            "spec.repository.credentialsSecretRef, or set spec.run.publish.enabled to false.",
        )
    ref, commit = _branch_and_commit(given.ref)
    return Source(
        given.clone_url,
        ref or assignment.publish.base,
        branch,
        branch_existed=False,
        commit=commit,
        credential=credential,
    )


def _branch_and_commit(ref: str | None) -> tuple[str | None, str | None]:
    """Return what a resource wants to be checked out: a branch or tag, or a commit."""
    return (None, ref) if ref is not None and _COMMIT.fullmatch(ref) else (ref, None)


async def _repository(assignment: Assignment, github: GitHub) -> RepositoryView:
    name = assignment.repository
    try:
        return await github.repository(name)
    except NotFound:
        raise Hopeless(
            "RepositoryNotFound",
            f"GitHub does not show {name}: it does not exist, or the App is not installed there.",
        ) from None


async def _own_source(
    assignment: Assignment, given: RepositorySource, github: GitHub, view: RepositoryView
) -> Source:
    repository, publish = assignment.repository, assignment.publish
    branch, tip = await _branch(assignment, github)
    if branch == (publish.base or view.default_branch):
        raise Hopeless(
            "BranchIsBase",
            f"{branch} is where the pull request would go: name another branch in "
            "spec.run.publish.branch, or leave it out.",
        )
    token = await github.read_token(repository)
    if token is None and view.private:
        raise Hopeless(
            "ReadTokenMissing",
            f"{repository} is private, and the operator's own token must not enter a sandbox: "
            "set GITHUB_READ_TOKEN to one that may only read, or use a GitHub App.",
        )
    if tip is not None:
        return Source(view.clone_url, branch, branch, branch_existed=True, credential=token)
    ref, commit = _branch_and_commit(given.ref)
    base = ref or publish.base or view.default_branch
    if ref is None and await github.branch_tip(repository, base) is None:
        raise Hopeless(
            "BaseNotFound",
            f"{repository} has no branch {base}: it is empty, or spec.run.publish.base is wrong.",
        )
    return Source(
        view.clone_url, base, branch, branch_existed=False, commit=commit, credential=token
    )


async def _branch(assignment: Assignment, github: GitHub) -> tuple[str, str | None]:
    """Return the branch for the work, and its tip if an open pull request uses it."""
    repository, asked = assignment.repository, assignment.publish.branch
    if asked is not None:
        return asked, await github.branch_tip(repository, asked)
    for name in branch_names(assignment.resource.spec.issue.number):
        tip = await github.branch_tip(repository, name)
        if tip is None:
            return name, None
        if await github.open_pull(repository, name) is not None:
            return name, tip
    raise Hopeless(
        "NoFreeBranch", "Every branch name for this issue is taken: delete some of them."
    )


async def given_credential(
    assignment: Assignment, given: RepositorySource, outside: Outside
) -> Token | None:
    """Return what the resource's Secret holds for its own clone address."""
    reference = given.credentials_secret_ref
    if reference is None:
        return None
    namespace = assignment.key.namespace
    try:
        secret = await outside.ledgers.secret(namespace, reference.name)
    except NotFound:
        raise Hopeless(
            "SecretNotFound", f"There is no Secret {namespace}/{reference.name} to clone with."
        ) from None
    if "password" not in secret:
        raise Hopeless(
            "SecretInvalid", f"Secret {namespace}/{reference.name} has no key `password`."
        )
    return Token(secret["password"], secret.get("username", "git"))


async def destination(assignment: Assignment, outside: Outside) -> tuple[str, Token]:
    """Return where work is pushed to, and with what."""
    given = assignment.resource.spec.repository or RepositorySource()
    github = outside.github
    if github is not None:
        view = await github.repository(assignment.repository)
        if is_own(given, view):
            return view.clone_url, await github.write_token(assignment.repository)
    try:
        credential = await given_credential(assignment, given, outside)
    except Hopeless as error:
        raise Denied(str(error), code=error.ending.reason) from None
    if given.clone_url is None or credential is None:
        raise Denied("there are no credentials to push with")
    return given.clone_url, credential


def is_own(given: RepositorySource, view: RepositoryView) -> bool:
    """Tell whether the clone is the issue's own repository, where our credentials may go."""
    return given.clone_url is None or _plain(given.clone_url) == _plain(view.clone_url)


def _plain(url: str) -> str:
    return url.rstrip("/").removesuffix(".git").casefold()
