"""Where the work of a run comes from and where it goes: repository, base, branch, credentials.

The operator's own credentials go to the configured GitHub alone, and only for the repository of
the issue; any other address gets what its Secret holds, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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

COMMIT = re.compile(r"[0-9a-f]{40}")
# The keys of a Secret for another repository that are no secrets themselves.
USER_NAMES = frozenset({"username", "read-username"})


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
    """May only read: a sandbox gets to know it."""
    keyless: str | None = None
    """Why a Secret gives no credential, and what to do where it takes one."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What a resource's Secret holds for its own clone address."""

    secret: str | None = None
    """The Secret's name; None: the resource names none."""
    read: Token | None = None
    """For the clone, which is made inside the sandbox."""
    write: Token | None = None
    """For the operator's own push, and for nothing else."""

    @property
    def keyless(self) -> str | None:
        """Return why there is nothing to clone with."""
        if self.secret is None or self.read is not None:
            return None
        return (
            f"Secret {self.secret} has no key `read-password`, and its `password` may write, so "
            "that one never enters a sandbox: add `read-password`, a token that may only read, "
            "and `read-username` if that is another user's."
        )


async def source_of(assignment: Assignment, outside: Outside) -> Source:
    """Return where a run gets its repository from."""
    try:
        return await _source_of(assignment, outside)
    except FINAL as error:
        raise Hopeless(
            reason_of(error, "RepositoryDenied"),
            f"What a run in {assignment.repository} needs is refused: {error}",
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
    return await _given_source(assignment, given, given.clone_url, outside)


async def _given_source(
    assignment: Assignment, given: RepositorySource, url: str, outside: Outside
) -> Source:
    """Return the source of a run in another repository than the issue's own."""
    publish = assignment.publish
    keys = await given_keys(assignment, given, outside)
    if keys.secret is None and assignment.publishes:
        raise Hopeless(
            "CredentialsMissing",
            f"Nobody may push to {url}: name a Secret in "
            "spec.repository.credentialsSecretRef, or set spec.run.publish.enabled to false.",
        )
    refs: Mapping[str, str] = {}
    if assignment.publishes:
        try:
            refs = await outside.remote.refs(url, keys.write)
        except NotFound as error:
            raise Hopeless("RepositoryNotFound", f"Nothing to clone: {error}") from None
    branch, existed = _given_branch(assignment, refs)
    if branch == publish.base:
        raise _branch_is_base(branch)
    ref, commit = (branch, None) if existed else _branch_and_commit(given.ref)
    return Source(
        url,
        ref or publish.base,
        branch,
        branch_existed=existed,
        commit=commit,
        credential=keys.read,
        keyless=keys.keyless,
    )


def _given_branch(assignment: Assignment, refs: Mapping[str, str]) -> tuple[str, bool]:
    """Return the branch for the work, and whether it is there: only one that was asked for is."""
    asked = assignment.publish.branch
    if asked is not None:
        return asked, f"refs/heads/{asked}" in refs
    for name in branch_names(assignment.resource.spec.issue.number):
        if f"refs/heads/{name}" not in refs:
            return name, False
    raise _no_free_branch()


def _branch_and_commit(ref: str | None) -> tuple[str | None, str | None]:
    """Return what a resource wants to be checked out: a branch or tag, or a commit."""
    return (None, ref) if ref is not None and COMMIT.fullmatch(ref) else (ref, None)


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
        raise _branch_is_base(branch)
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
    raise _no_free_branch()


def _branch_is_base(branch: str) -> Hopeless:
    return Hopeless(
        "BranchIsBase",
        f"{branch} is where the pull request would go: name another branch in "
        "spec.run.publish.branch, or leave it out.",
    )


def _no_free_branch() -> Hopeless:
    return Hopeless(
        "NoFreeBranch", "Every branch name for this issue is taken: delete some of them."
    )


async def given_keys(assignment: Assignment, given: RepositorySource, outside: Outside) -> Keys:
    """Return what the resource's Secret holds for its own clone address."""
    reference = given.credentials_secret_ref
    if reference is None:
        return Keys()
    name = f"{assignment.key.namespace}/{reference.name}"
    try:
        secret = await outside.ledgers.secret(assignment.key.namespace, reference.name)
    except NotFound:
        raise Hopeless(
            "SecretNotFound", f"There is no Secret {name} to clone and push with."
        ) from None
    read, write = secret.get("read-password") or None, secret.get("password") or None
    if write is None and assignment.publishes:
        raise Hopeless("SecretInvalid", f"Secret {name} has no key `password` to push with.")
    if read is not None and read == write:
        raise Hopeless(
            "SecretInvalid",
            f"Secret {name} has one value as `password` and `read-password`: what may write must "
            "not enter a sandbox, so make a token that may only read.",
        )
    user = secret.get("username") or "git"
    reader = secret.get("read-username") or user
    return Keys(name, read and Token(read, reader), write and Token(write, user))


async def destination(
    assignment: Assignment, outside: Outside, view: RepositoryView | None = None
) -> tuple[str, Token]:
    """Return where work is pushed to, and with what; `view` is the repository as seen just now."""
    given = assignment.resource.spec.repository or RepositorySource()
    github = outside.github
    if github is not None:
        view = view or await github.repository(assignment.repository)
        if is_own(given, view):
            return view.clone_url, await github.write_token(assignment.repository)
    try:
        keys = await given_keys(assignment, given, outside)
    except Hopeless as error:
        raise Denied(str(error), code=error.ending.reason) from None
    if given.clone_url is None or keys.write is None:
        raise Denied("there are no credentials to push with")
    return given.clone_url, keys.write


def is_own(given: RepositorySource, view: RepositoryView) -> bool:
    """Tell whether the clone is the issue's own repository, where our credentials may go."""
    return given.clone_url is None or _plain(given.clone_url) == _plain(view.clone_url)


def _plain(url: str) -> str:
    return url.rstrip("/").removesuffix(".git").casefold()
