"""Verbs over many resources: each has its own result, by the settings in force."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from issuesandbox.entry import config as config_command
from issuesandbox.entry.plugin.acts import stop
from issuesandbox.entry.plugin.cluster import Body, Cluster
from issuesandbox.entry.plugin.removal import cleanup, uninstall
from issuesandbox.entry.plugin.settings_status import in_force
from issuesandbox.entry.stored import InForce, judged

DONE = {"id": "r1", "phase": "Finished", "outcome": "Succeeded", "trigger": "1"}
STARTED = {"startedAt": "2030-01-01T00:00:00Z"}
GOING = {"id": "r2", "phase": "Executing", "trigger": "1", **STARTED}
REFUSED = {
    "settings": json.dumps({"valid": False, "message": "ENABLE_HEALTH_PROBE: maybe"}),
    "accepted": json.dumps({"ENABLE_CANCELLATION_CHECKS": "false"}),
}


def resource(name: str, run: dict[str, Any], **spec: Any) -> Body:
    issue = {"repository": "octo/hello", "number": int(name[-1])}
    return {
        "apiVersion": "issuesandbox.dev/v1alpha1",
        "kind": "IssueSandbox",
        "metadata": {"namespace": "team", "name": name, "uid": name},
        "spec": {"issue": issue, "run": {"trigger": "1"}, **spec},
        "status": {"run": run},
    }


class Bodies(Cluster):
    """Resources that can be deleted or changed, but for one that nobody may touch."""

    bodies: dict[str, Body]
    maps: dict[str, dict[str, str]]

    def __init__(self, bodies: list[Body], **maps: dict[str, str]) -> None:
        super().__init__("team")
        object.__setattr__(self, "bodies", {each["metadata"]["name"]: each for each in bodies})
        object.__setattr__(self, "maps", maps)

    def list(self, namespace: str | None, selector: str = "") -> list[Body]:
        return [*self.bodies.values()]

    def delete(self, body: Body) -> None:
        self._touch(body["metadata"]["name"])
        del self.bodies[body["metadata"]["name"]]

    def change(self, namespace: str, name: str, decide: Callable[[Body], Any]) -> Body:
        self._touch(name)
        decide(self.bodies[name])
        return self.bodies[name]

    def peek(self, namespace: str, name: str) -> dict[str, str] | None:
        return self.maps.get(name.removeprefix("issuesandbox").removeprefix("-") or "settings")

    def _touch(self, name: str) -> None:
        if name == "issue-2":
            raise click.ClickException("you may not do this")


Say = Callable[..., Result]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    def run(cluster: Cluster, command: click.Command, *words: str) -> Result:
        monkeypatch.setattr(Cluster, "load", lambda: cluster)
        return CliRunner().invoke(command, [*words, "-o", "json"])

    return run


@pytest.mark.parametrize(
    ("command", "words"), [(cleanup, ("-l", "team=a", "--yes")), (uninstall, ("--yes",))]
)
def test_one_resource_that_cannot_be_deleted_does_not_keep_the_others(
    say: Say, command: click.Command, words: tuple[str, ...]
) -> None:  # R99
    cluster = Bodies([resource(f"issue-{each}", DONE) for each in (1, 2, 3)])
    said = say(cluster, command, *words)
    rows = {each["name"]: each for each in json.loads(said.stdout)}
    assert {name: each.get("result", each.get("error")) for name, each in rows.items()} == {
        "issue-1": "deleted",
        "issue-2": "you may not do this",
        "issue-3": "deleted",
    }
    assert said.exit_code == 1
    assert "1 of 3 failed." in said.stderr
    assert [*cluster.bodies] == ["issue-2"]


def test_stop_says_which_runs_may_not_hear_it(say: Say) -> None:
    own = {"flags": {"cancellationChecks": False}}
    bodies = [
        resource("issue-1", GOING),
        resource("issue-3", GOING, **own),
        resource("issue-4", DONE),
    ]
    said = say(Bodies(bodies), stop, "--all", "-A")
    results = [each["result"] for each in json.loads(said.stdout)]
    assert [results[0], results[2]] == ["told to stop", "told to stop"]
    assert "ENABLE_CANCELLATION_CHECKS (by spec.flags) is off" in results[1]
    everywhere = Bodies(bodies, settings={"ENABLE_DB_BACKED_STOP": "false"})
    results = [each["result"] for each in json.loads(say(everywhere, stop, "--all", "-A").stdout)]
    assert ["but its run may hear it only" in each for each in results] == [True, True, False]


def test_refused_settings_are_not_those_in_force() -> None:
    stored = {"ENABLE_HEALTH_PROBE": "maybe"}
    fine = in_force(Bodies([], settings=stored), "home")
    assert (fine.settings, fine.problem) == (stored, None)
    refused = in_force(Bodies([], settings=stored, status=REFUSED), "home")
    assert refused.settings == {"ENABLE_CANCELLATION_CHECKS": "false"}
    assert refused.problem == "ENABLE_HEALTH_PROBE: maybe"


def test_config_shows_the_last_good_settings_where_the_stored_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known(_: object) -> InForce:
        name = "ISSUESANDBOX_MAX_SANDBOXES"
        return judged({name: "many"}, {name: "7"})

    monkeypatch.setattr(config_command, "settings_in_force", known)
    monkeypatch.setattr(config_command, "_home", lambda _: None)
    monkeypatch.setenv("DAYTONA_API_KEY", "dtn-secret-value")
    said = CliRunner().invoke(config_command.config, ["-o", "json"])
    shown = json.loads(said.stdout)
    (row,) = (each for each in shown["settings"] if each["setting"] == "ISSUESANDBOX_MAX_SANDBOXES")
    assert (row["value"], row["origin"]) == ("7", "last good ConfigMap")
    assert "ISSUESANDBOX_MAX_SANDBOXES in the ConfigMap" in shown["problem"]
    assert said.exit_code == 0
