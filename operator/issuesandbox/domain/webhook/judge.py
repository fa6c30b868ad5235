"""Who may start what: from a hint, the rules and one fact about a person to an order.

Stopping needs no permission: GitHub itself lets only few people close an issue or remove a label.
Starting does, and so does the text that an agent will read: what a stranger edits after somebody
approved the issue is not taken over.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from issuesandbox.domain.webhook.commands import Command, Verb, mentions, read_command
from issuesandbox.domain.webhook.hints import (
    CommentHint,
    GoneHint,
    Happening,
    Ignored,
    IssueHint,
    PullHint,
)
from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.domain.webhook.live import Live
from issuesandbox.domain.webhook.orders import Act, Order, Refusal, StopReason
from issuesandbox.domain.webhook.policy import Rules, Source
from issuesandbox.domain.webhook.stamps import Stamp

# An issue's own time and that of what happened to it are not written at the same moment.
SLACK = timedelta(seconds=2)
STARTS = (Verb.RUN, Verb.RETRY, Verb.CONTINUE)
_TEXTS = {Happening.OPENED: Source.OPENED, Happening.EDITED: Source.EDITED}
_STOPS = {
    Happening.CLOSED: StopReason.CLOSED,
    Happening.DELETED: StopReason.GONE,
    Happening.TRANSFERRED: StopReason.GONE,
    Happening.UNLABELED: StopReason.UNLABELED,
}


def is_heard(person: Person, rules: Rules, own_login: str) -> bool:
    """Tell whether anything is done about what somebody did: bots and we ourselves are not."""
    if person.login.lower() == own_login.lower():
        return False
    return not person.is_bot or rules.trusts(person.login)


def is_permitted(person: Person, rules: Rules) -> bool | None:
    """Tell whether somebody may start runs; None: GitHub must be asked for their permission."""
    if person.may_start is not None:
        return person.may_start
    if person.is_bot:
        return rules.trusts(person.login)
    if person.standing in rules.associations:
        return True
    return None if not person.standing or rules.minimum_permission else False


def asks_for(hint: IssueHint, rules: Rules) -> tuple[Person, ...]:
    """Return all who must be permitted for the issue's event to start a run; nobody: it never does.

    An edit is as good as who made it, and the rest of the text as its author.
    """
    author, sender, happening = hint.issue.author, _author_or_sender(hint), hint.happening
    if happening in _TEXTS:
        if not _asks_by_text(hint, rules):
            return ()
        return (author,) if author == sender else (author, sender)
    if happening is Happening.LABELED and _is_label(hint, rules):
        return (sender,) if Source.LABEL in rules.on else ()
    if happening is Happening.ASSIGNED and _is_assignee(hint, rules):
        return (sender,) if Source.ASSIGNEE in rules.on else ()
    if happening is Happening.REOPENED:
        return (sender,)
    return ()


def _asks_by_text(hint: IssueHint, rules: Rules) -> bool:
    if _TEXTS[hint.happening] in rules.on:
        return True
    text = f"{hint.issue.title}\n{hint.issue.body}"
    return Source.MENTION in rules.on and mentions(text, rules.mention)


def is_stop(hint: IssueHint, rules: Rules) -> bool:
    """Tell whether an event ends what runs; that counts whoever caused it."""
    if not hint.issue.is_open:
        return True
    if hint.happening not in _STOPS:
        return False
    return hint.happening is not Happening.UNLABELED or _is_label(hint, rules)


def judge_as_told(hint: IssueHint, rules: Rules, own_login: str) -> Order | Ignored | None:
    """Return what an event asks for if it tells all that counts; None: GitHub must be asked."""
    if is_stop(hint, rules):
        return judge_issue(hint, rules, None)
    if not is_heard(hint.sender, rules, own_login):
        return Ignored(f"{hint.sender.login} is not listened to")
    if is_permitted(hint.issue.author, rules) is None:
        return None
    permitted: bool | None = None
    for person in asks_for(hint, rules):
        permitted = is_permitted(person, rules)
        if permitted is None:
            return None
        if not permitted:
            break
    return judge_issue(hint, rules, permitted)


def judge_issue(hint: IssueHint, rules: Rules, permitted: bool | None) -> Order | Ignored:
    """Return what an event of an issue asks for; `permitted` is about the person it depends on.

    None says that it depends on nobody.
    """
    issue, stamp = hint.issue, Stamp(hint.at or hint.issue.updated_at)
    if is_stop(hint, rules):
        # Whatever happens to a closed issue shows that it is closed.
        reason = _STOPS.get(hint.happening, StopReason.CLOSED)
        return Order(Act.STOP, stamp, _approved(issue, rules), reason=reason, subject=hint.subject)
    if permitted is None:
        approved = _approved(issue, rules)
        if approved is None:
            return Ignored(f"{hint.happening} by a person without permission changes nothing")
        return Order(Act.REFRESH, stamp, approved)
    if not permitted:
        return Ignored(f"{hint.happening} by a person without permission starts nothing")
    shut = _shut(issue, rules)
    if shut:
        return Ignored(shut)
    given = hint.event or stamp
    return Order(
        Act.START,
        given,
        _as_approved(issue, rules, given.at),
        trigger=event_trigger(hint.happening, hint.event.id) if hint.event else None,
        happening=hint.happening,
        subject=hint.subject,
        said=issue.trigger if hint.happening is Happening.REOPENED and not hint.event else None,
        creates=hint.happening is not Happening.REOPENED or _would_begin(issue, rules),
        is_pinned=_approved(issue, rules) is None,
        is_late=hint.at is not None or hint.event is not None,
    )


def is_obeyed(hint: CommentHint, rules: Rules) -> bool:
    """Tell whether a comment was a command before it was edited: it is obeyed once."""
    return hint.before is not None and listens_to(hint.before, rules) is not None


def listens_to(body: str, rules: Rules) -> Command | None:
    """Return the command in a comment; a mention, where it counts, is one to run."""
    command = read_command(body)
    if command is not None:
        return command if Source.COMMAND in rules.on else None
    if Source.MENTION in rules.on and mentions(body, rules.mention):
        return Command(Verb.RUN, body.strip()[:4096], "mention")
    return None


def judge_command(
    command: Command, hint: CommentHint, rules: Rules, permitted: bool
) -> Order | Refusal | Ignored | None:
    """Return what a command asks for; None: it changes nothing of the run."""
    refused = _refused(command, rules, permitted)
    if refused is not None:
        return refused
    stamp = stamp_of(hint)
    issue = None if hint.on_pull else hint.issue
    said = issue.trigger if issue is not None and not hint.is_found else None
    if command.verb is Verb.STOP:
        known = None if issue is None else _approved(issue, rules)
        reason = StopReason.COMMAND
        return Order(Act.STOP, stamp, known, reason=reason, said=said, is_late=hint.is_found)
    if command.verb not in STARTS:
        return None
    shut = _shut(hint.issue, rules, "pull request" if hint.on_pull else "issue")
    if shut:
        return Refusal(f"{shut}.")
    if issue is not None and hint.is_found:
        issue = _as_approved(issue, rules, hint.at)
    return Order(
        Act.START,
        stamp,
        issue,
        trigger=f"c{hint.comment_id}",
        prompt=command.text or None,
        keeps_prompt=command.verb is Verb.RETRY,
        said=said,
        creates=command.verb is Verb.RUN,
        is_pinned=issue is not None and _approved(issue, rules) is None,
        is_late=hint.is_found,
    )


def is_shut_behind(command: Command, owner: Live | None) -> bool:
    """Tell whether a command on a pull request would start something for a closed issue."""
    ended = owner is not None and owner.stopped_for in (StopReason.CLOSED, StopReason.GONE)
    return ended and command.verb in STARTS


def stamp_of(hint: CommentHint) -> Stamp:
    """Return the place in time of what a comment asks for."""
    return Stamp(hint.at, hint.comment_id)


def _refused(command: Command, rules: Rules, permitted: bool) -> Refusal | Ignored | None:
    if command.verb is Verb.UNKNOWN:
        if not permitted or not rules.answer_unknown:
            return Ignored(f"/{command.word} is not one of ours")
        known = ", ".join(f"`/{each}`" for each in Verb if each is not Verb.UNKNOWN)
        return Refusal(f"`/{command.word}` is not a command here. There are {known}.")
    if not permitted:
        text = "only people who may write to this repository can give commands."
        return Refusal(text, is_stranger=True)
    if command.verb is Verb.CONTINUE and not command.text:
        return Refusal("say what to continue with: `/continue text`.")
    return None


def judge_end(hint: PullHint | GoneHint) -> Order:
    """Return what the end of a pull request, or of the issue itself, asks for."""
    reason = StopReason.PULL_CLOSED if isinstance(hint, PullHint) else StopReason.GONE
    return Order(Act.STOP, Stamp(hint.at), reason=reason)


def event_trigger(happening: Happening, event_id: int) -> str:
    """Return the trigger that an entry of an issue's history stands for."""
    word = "reopen" if happening is Happening.REOPENED else str(happening)
    return f"{word}-{event_id}"


def _would_begin(issue: IssueFacts, rules: Rules) -> bool:
    if Source.OPENED in rules.on and is_permitted(issue.author, rules):
        return True
    return Source.LABEL in rules.on and rules.label.lower() in map(str.lower, issue.labels)


def _author_or_sender(hint: IssueHint) -> Person:
    # Only of the author does an event tell what they are to the repository.
    author, sender = hint.issue.author, hint.sender
    return author if author.login.lower() == sender.login.lower() else sender


def _approved(issue: IssueFacts, rules: Rules) -> IssueFacts | None:
    return issue if is_permitted(issue.author, rules) else None


def _as_approved(issue: IssueFacts, rules: Rules, at: datetime) -> IssueFacts | None:
    """Return the text that somebody approved at that time; None: it may have been edited since."""
    if issue.updated_at <= at + SLACK:
        return issue
    return _approved(issue, rules)


def _shut(issue: IssueFacts, rules: Rules, what: str = "issue") -> str:
    if not issue.is_open:
        return f"the {what} is closed: reopen it first"
    if issue.is_locked and rules.ignore_locked:
        return f"the {what} is locked"
    return ""


def _is_label(hint: IssueHint, rules: Rules) -> bool:
    return hint.subject.lower() == rules.label.lower() and bool(rules.label)


def _is_assignee(hint: IssueHint, rules: Rules) -> bool:
    return hint.subject.lower() in {each.lower() for each in rules.assignees}
