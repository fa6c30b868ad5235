"""The whole inbox over real HTTP, at a simulated GitHub; only the API server is a dictionary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from tests.fakes.github_stage import REPOSITORY, Stage

from issuesandbox.adapters.github.app import AppKey
from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.domain.webhook.commands import MARKER
from issuesandbox.domain.webhook.live import MANAGER
from issuesandbox.engine.inbox.catch_up import CatchUp
from issuesandbox.engine.inbox.courtesy import Courtesy
from issuesandbox.engine.inbox.desk import Desk
from issuesandbox.engine.inbox.finding import Reach
from issuesandbox.engine.inbox.index import IssueIndex
from issuesandbox.engine.inbox.people import People
from issuesandbox.engine.inbox.policies import PolicyKeeper
from issuesandbox.engine.inbox.reception import Reception, Staff
from issuesandbox.entry.webhook.server import WebhookServer
from issuesandbox.ports.errors import Conflict, Invalid, NotFound
from issuesandbox.ports.inbox import Record
from issuesandbox.ports.resources import EventNote, ResourceKey

SECRET = "secret"
_OURS = {"f:spec": {"f:issue": {"f:repository": {}}}}


@dataclass
class Cluster:
    """Resources and ConfigMaps; the index hears of every change at once."""

    index: IssueIndex
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    maps: dict[str, Record] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    """Issues whose resources are not taken."""
    triggers: dict[int, list[str]] = field(default_factory=dict)
    """Every trigger that an issue's resource ever had."""
    turn: int = 0
    notes: list[EventNote] = field(default_factory=list)
    meanwhile: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)
    """What happens between the next look at a resource and its deletion."""

    async def get(self, namespace: str, name: str) -> Mapping[str, Any]:
        if name not in self.bodies:
            raise NotFound(name)
        return self.bodies[name]

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if body["metadata"]["name"] in self.bodies:
            raise Conflict("it exists")
        return await self.apply(body)

    async def apply(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        metadata, issue = body["metadata"], body["spec"]["issue"]
        if issue.get("number") in self.refused:
            raise Invalid("the API server does not like it")
        old = self.bodies.get(metadata["name"], {})
        if old and old["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict("it changed")
        self.turn += 1
        fixed = old.get("metadata", {"uid": f"uid-{self.turn}"})
        body = {**old, **body, "metadata": {**fixed, **metadata}}
        body["metadata"] |= {
            "resourceVersion": str(self.turn),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": MANAGER, "fieldsV1": _OURS}],
        }
        self.bodies[metadata["name"]] = body
        self.index.put(body)
        had = self.triggers.setdefault(issue["number"], [])
        if had[-1:] != [body["spec"]["run"]["trigger"]]:
            had.append(body["spec"]["run"]["trigger"])
        return body

    async def delete(self, key: ResourceKey, version: str) -> None:
        if key.name not in self.bodies:
            raise NotFound(key.name)
        while self.meanwhile:
            await self.meanwhile.pop()()
        if self.bodies[key.name]["metadata"]["resourceVersion"] != version:
            raise Conflict("it changed")
        self.index.drop(self.bodies.pop(key.name))

    async def read(self, name: str) -> Record:
        return self.maps.get(name, Record({}))

    async def write(self, name: str, record: Record) -> None:
        self.turn += 1
        self.maps[name] = Record(record.data, str(self.turn))

    async def note(self, name: str, event: EventNote) -> None:
        self.notes.append(event)


class Inbox:
    """One adapter, and what tests do to it."""

    def __init__(self, stage: Stage, github: GitHubConnection, policy: str = "") -> None:
        self.stage = stage
        self.github = github
        self.index = IssueIndex(())
        self.index.replace("", [])
        self.cluster = Cluster(self.index)
        self.cluster.maps["policy"] = Record({"policy.yaml": policy}, "1")
        self.policies = PolicyKeeper(self.cluster, "policy")
        self.courtesy = Courtesy(github.client, github.forge)
        people = People(github.forge, stage.clock)
        desk = self.desk = Desk(self.cluster, self.index, github.client, github.forge, stage.clock)
        staff = Staff(desk, self.index, people, self.policies, self.courtesy, "issues")
        self.reception = Reception(staff)
        reach = Reach(github.client, github.forge, self.index, self.cluster, stage.clock)
        self.catch_up = CatchUp(reach, self.reception, "cursor", timedelta(minutes=10))
        self.server = WebhookServer(
            (SECRET.encode(),), self.reception.answer, lambda: True, CollectorRegistry()
        )

    async def open(self, stack: AsyncExitStack) -> None:
        """Let GitHub deliver here."""
        await self.policies.read()
        runner = self.server.runner()
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        stack.push_async_callback(self.courtesy.drain, 5.0)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/webhook"
        await self.listen()
        await self.catch_up.look()

    async def listen(self) -> None:
        await self.stage.admin("PUT", "/webhooks", {"urls": [self.url], "secret": SECRET})

    async def deafen(self) -> None:
        """Let GitHub deliver to nobody, without its knowing of any failure."""
        await self.stage.admin("PUT", "/webhooks", {"urls": [], "secret": SECRET})

    async def settled(self) -> None:
        """Wait until everything was delivered, reacted to and answered."""
        await self.stage.post("/webhooks/drain")
        await self.courtesy.drain(5.0)

    def later(self, seconds: float = 1.0) -> None:
        self.stage.clock.ahead += timedelta(seconds=seconds)

    async def act(self, number: int, verb: str, login: str = "owner", **body: Any) -> Any:
        """Let somebody do something a second later, and wait for what comes of it."""
        self.later()
        path = f"/repos/{REPOSITORY}/issues/{number}/{verb}"
        done = await self.stage.admin("POST", path, {"as": login, **body})
        await self.settled()
        return done

    async def say(self, number: int, text: str, login: str = "owner") -> int:
        return int((await self.act(number, "comment", login, body=text))["id"])

    async def issue(self, title: str = "It breaks", login: str = "owner", **more: Any) -> int:
        self.later()
        number = await self.stage.issue(title, **{"as": login, **more})
        await self.settled()
        return number

    def spec(self, number: int) -> dict[str, Any] | None:
        """Return the spec of an issue's resource."""
        live = self.index.owner(REPOSITORY, number)
        return self.cluster.bodies[live.name]["spec"] if live else None

    async def answers(self, number: int) -> list[str]:
        """Return what the adapter said under an issue."""
        found = await self.github.client.comments(REPOSITORY, number, MARKER)
        return [each.body for each in found]

    async def resend(self) -> None:
        """Let GitHub send every delivery once more."""
        stage = self.stage
        proof = AppKey(str(stage.sim.app_id), stage.key).assertion(stage.clock.now())
        url = f"{stage.sim.url}/app/hook/deliveries?per_page=100"
        async with stage.session.get(url, headers={"Authorization": f"Bearer {proof}"}) as answer:
            for each in await answer.json():
                await self.github.forge.redeliver(each["id"])

    async def vanish(self, number: int) -> None:
        """Let the resource of an issue be gone, as when its time is over."""
        live = self.index.owner(REPOSITORY, number)
        assert live is not None
        await self.cluster.delete(ResourceKey(live.namespace, live.name, live.uid), live.version)

    def begin_run(self, number: int, past: Any = (), **run: Any) -> None:
        """Let the operator have begun a run, after others."""
        live = self.index.owner(REPOSITORY, number)
        assert live is not None
        body = self.cluster.bodies[live.name]
        body["status"] = {"run": {"id": "r", "phase": "Executing", **run}, "history": past}
        self.index.put(body)

    async def reactions(self, comment: int) -> list[str]:
        """Return the reactions under a comment, in their order."""
        entries = await self.stage.admin("GET", "/journal?since=0")
        effects = [each for entry in entries for each in entry.get("effect") or ()]
        made = [each for each in effects if each["what"] == "reaction.created"]
        return [each["content"] for each in made if each["subject"] == comment]
