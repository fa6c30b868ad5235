"""Takes a hint, judges it by the policy and has it carried out. Knows nothing of HTTP."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from issuesandbox.domain.webhook import answers
from issuesandbox.domain.webhook.commands import Command, Verb
from issuesandbox.domain.webhook.hints import (
    AccessHint,
    CommentHint,
    GoneHint,
    Hint,
    Ignored,
    IssueHint,
    PullHint,
)
from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.domain.webhook.judge import (
    STARTS,
    asks_for,
    is_heard,
    is_obeyed,
    is_permitted,
    is_shut_behind,
    is_stop,
    judge_as_told,
    judge_command,
    judge_end,
    listens_to,
    stamp_of,
)
from issuesandbox.domain.webhook.live import Live
from issuesandbox.domain.webhook.orders import Order, Refusal
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.engine.inbox.courtesy import Courtesy
from issuesandbox.engine.inbox.desk import Desk, Done, Effect, Place
from issuesandbox.engine.inbox.index import IssueIndex
from issuesandbox.engine.inbox.people import People
from issuesandbox.engine.inbox.policies import PolicyKeeper
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.github import Reaction

logger = logging.getLogger(__name__)


class Result(StrEnum):
    """What became of a hint."""

    CREATED = Effect.CREATED.value
    CHANGED = Effect.CHANGED.value
    UNCHANGED = Effect.UNCHANGED.value
    IGNORED = "ignored"


class Answer(Struct, frozen=True):
    """What is said to whoever brought the hint."""

    result: Result
    resource: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Staff:
    """Those who help the reception."""

    desk: Desk
    index: IssueIndex
    people: People
    policies: PolicyKeeper
    courtesy: Courtesy
    namespace: str
    """Where resources are made if the policy does not say."""


class Reception:
    """One door for deliveries and for what the catch-up finds."""

    def __init__(self, staff: Staff) -> None:
        self._staff = staff

    def answer(self, hint: Hint) -> Answer | Awaitable[Answer]:
        """Answer what is known already at once; what must be looked at is `receive`d."""
        return self._at_once(hint) or self.receive(hint)

    async def receive(self, hint: Hint) -> Answer:
        """Do what a hint asks for; raise a CallError if that cannot be done now."""
        if isinstance(hint, AccessHint):
            return _ignored("noted")
        repository = hint.repository
        rules = self.rules_for(repository)
        if rules is None:
            return _ignored(f"{repository} is not in the policy")
        if isinstance(hint, (IssueHint, CommentHint)):
            self._arrived(hint)
        if isinstance(hint, IssueHint):
            return await self._issue(hint, rules)
        if isinstance(hint, PullHint):
            return await self._pull(hint, rules)
        if isinstance(hint, GoneHint):
            return await self._end(hint, hint.number, rules)
        return await self._comment(hint, rules)

    def rules_for(self, repository: str) -> Rules | None:
        """Return what holds for a repository."""
        policy = self._staff.policies.policy
        if policy is None:
            problem = self._staff.policies.problem or "it was not read yet"
            raise Unavailable(f"there is no usable policy: {problem}")
        return policy.rules_for(repository)

    def _at_once(self, hint: Hint) -> Answer | None:
        """Answer an issue's event if nobody must be asked and nothing is to be written."""
        own_login = self._staff.people.known_login
        if not isinstance(hint, IssueHint) or not own_login:
            return None
        rules = self.rules_for(hint.repository)
        order = None if rules is None else judge_as_told(hint, rules, own_login)
        if rules is None or order is None:
            return None
        self._arrived(hint)
        if isinstance(order, Ignored):
            return _ignored(order.reason)
        known = self._staff.desk.known(order, self._place(hint, hint.issue.number, rules))
        return None if known is None else _said(known)

    def _arrived(self, hint: IssueHint | CommentHint) -> None:
        if hint.installation:
            self._staff.people.reached(hint.repository, hint.installation)

    async def _issue(self, hint: IssueHint, rules: Rules) -> Answer:
        own_login = "" if is_stop(hint, rules) else await self._staff.people.own_login()
        order = judge_as_told(hint, rules, own_login)
        if order is None:
            order = judge_as_told(await self._asked(hint, rules), rules, own_login)
        assert order is not None
        if isinstance(order, Ignored):
            return _ignored(order.reason)
        place = self._place(hint, hint.issue.number, rules)
        return _said(await self._staff.desk.carry_out(order, place))

    async def _asked(self, hint: IssueHint, rules: Rules) -> IssueHint:
        """Return the hint with what GitHub says of those whom it depends on."""
        hint = replace(hint, issue=await self._vouched(hint.issue, rules))
        for person in asks_for(hint, rules):
            told = is_permitted(person, rules)
            if told is None:
                # Of the author all is known by now.
                told = await self._staff.people.may_start(person, rules, hint.repository)
                hint = replace(hint, sender=replace(person, may_start=told))
            if not told:
                break
        return hint

    async def _pull(self, hint: PullHint, rules: Rules) -> Answer:
        owner = self._staff.index.owner_of_pull(hint.repository, hint.number)
        if owner is None:
            return _ignored("the pull request is not one of ours")
        return await self._end(hint, owner.number, rules)

    async def _end(self, hint: PullHint | GoneHint, number: int, rules: Rules) -> Answer:
        place = self._place(hint, number, rules)
        return _said(await self._staff.desk.carry_out(judge_end(hint), place))

    async def _comment(self, hint: CommentHint, rules: Rules) -> Answer:
        command = listens_to(hint.body, rules)
        if command is None:
            return _ignored("the comment has no command")
        if is_obeyed(hint, rules):
            return _ignored("a command is obeyed once, however often it is edited")
        if not await self._is_heard(hint.author, rules):
            return _ignored(f"{hint.author.login} is not listened to")
        owner = self._owner(hint)
        if owner is None and hint.on_pull:
            return _ignored("the pull request is not one of ours")
        repository = hint.issue.repository
        permitted = await self._staff.people.may_start(hint.author, rules, repository)
        if permitted and command.verb in STARTS and not hint.on_pull:
            hint = replace(hint, issue=await self._vouched(hint.issue, rules))
        judged = judge_command(command, hint, rules, permitted)
        if isinstance(judged, Order) and is_shut_behind(command, owner):
            judged = Refusal("the issue behind it is closed: reopen that first.")
        if isinstance(judged, Refusal):
            self._turn_down(hint, judged)
        if isinstance(judged, Refusal | Ignored):
            return _ignored(judged.text if isinstance(judged, Refusal) else judged.reason)
        number = owner.number if owner is not None else hint.issue.number
        return await self._obey(command, judged, hint, self._place(hint, number, rules))

    def _owner(self, hint: CommentHint) -> Live | None:
        if not hint.on_pull:
            return None
        return self._staff.index.owner_of_pull(hint.issue.repository, hint.issue.number)

    async def _vouched(self, issue: IssueFacts, rules: Rules) -> IssueFacts:
        """Return the issue with what GitHub says of its author, where the event does not tell."""
        author = issue.author
        if is_permitted(author, rules) is not None:
            return issue
        may = await self._staff.people.may_start(author, rules, issue.repository)
        return replace(issue, author=replace(author, may_start=may))

    async def _is_heard(self, person: Person, rules: Rules) -> bool:
        return is_heard(person, rules, await self._staff.people.own_login())

    async def _obey(
        self, command: Command, order: Order | None, hint: CommentHint, place: Place
    ) -> Answer:
        self._staff.courtesy.react(place.repository, hint.comment_id, Reaction.EYES)
        marker = answers.answer_marker(hint.comment_id)
        if command.verb is Verb.DELETE:
            marker = answers.deleted_marker(stamp_of(hint))
        done = await self._carry_out(command, order, hint, place, marker)
        if done.effect is Effect.ABSENT:
            # Heard late, these may have been obeyed while there was a resource.
            is_late = hint.is_found or self._staff.desk.is_late(stamp_of(hint))
            if not is_late or command.verb not in (Verb.KEEP, Verb.STATUS):
                self._refuse(hint, answers.nothing_text(command.verb, is_late=is_late), marker)
        elif done.held:
            where = f"`{done.namespace}/{done.name}`"
            self._refuse(hint, answers.held_text(done.held, where), marker)
        else:
            self._staff.courtesy.react(place.repository, hint.comment_id, Reaction.ROCKET)
        return _said(done)

    async def _carry_out(
        self, command: Command, order: Order | None, hint: CommentHint, place: Place, marker: str
    ) -> Done:
        desk = self._staff.desk
        if order is not None:
            return await desk.carry_out(order, place)
        if command.verb is Verb.KEEP:
            return await desk.keep(place)
        if command.verb is Verb.DELETE:
            done = await desk.delete(place, stamp_of(hint))
            if done.effect is Effect.CHANGED:
                text = answers.deleted_text(done.name)
                self._staff.courtesy.answer(place.repository, hint.issue.number, text, marker)
            return done
        body = await desk.find(place)
        if body is None:
            return Done(Effect.ABSENT)
        text, metadata = answers.status_text(body), body["metadata"]
        self._staff.courtesy.answer(place.repository, hint.issue.number, text, marker)
        return Done(Effect.UNCHANGED, metadata["name"], metadata["namespace"])

    def _turn_down(self, hint: CommentHint, refusal: Refusal) -> None:
        repository = hint.issue.repository
        if not refusal.is_stranger:
            self._refuse(hint, refusal.text, answers.answer_marker(hint.comment_id))
        elif self._staff.people.may_be_told(hint.author, repository):
            # In words once, and by a sign each time.
            self._staff.courtesy.react(repository, hint.comment_id, Reaction.CONFUSED)
            self._refuse(hint, refusal.text, answers.stranger_marker(hint.author.login))

    def _refuse(self, hint: CommentHint, text: str, marker: str) -> None:
        repository, number = hint.issue.repository, hint.issue.number
        said = f"@{hint.author.login}: {text}"
        self._staff.courtesy.answer(repository, number, said, marker, hint.comment_id)

    def _place(
        self, hint: IssueHint | CommentHint | PullHint | GoneHint, number: int, rules: Rules
    ) -> Place:
        namespace = rules.namespace or self._staff.namespace
        return Place(hint.repository, number, namespace, rules.template)


def _ignored(reason: str) -> Answer:
    return Answer(Result.IGNORED, reason=reason)


def _said(done: Done) -> Answer:
    if done.effect is Effect.ABSENT:
        return _ignored(done.reason or "there is no resource for it")
    name = f"{done.namespace}/{done.name}"
    if done.held:
        fields = ", ".join(".".join(path) for path in done.held)
        # Nobody who could be answered asked for it; whoever set the field must find out why.
        logger.warning("field held", extra={"resource": name, "fields": fields})
        return Answer(
            Result(done.effect), name, f"{done.effect}, but somebody set {fields} by hand"
        )
    return Answer(Result(done.effect), name, done.reason or done.effect.value)
