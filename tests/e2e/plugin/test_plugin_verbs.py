"""Every verb of `kubectl isb` that changes something, on the real API server."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from plugin_process import Plugin

RUN: dict[str, Any] = {"id": "r1", "phase": "Executing", "startedAt": "2030-01-01T00:00:00Z"}
FAILED = {**RUN, "phase": "Finished", "outcome": "Failed", "trigger": "1"}


def test_stop_tells_one_or_all_to_stop_and_run_starts_again(plugin: Plugin) -> None:  # R119
    plugin.apply("one", 1, run={"trigger": "1"})
    plugin.apply("two", 2, run={})
    assert "one: told to stop" in plugin("stop", "one")
    assert plugin.get("one")["spec"]["desiredState"] == "Stopped"
    assert plugin.get("two")["spec"]["desiredState"] == "Running"
    plugin("stop", "--all")
    assert plugin.get("two")["spec"]["desiredState"] == "Stopped"
    plugin("run", "one", "--prompt", "Be brief.")
    spec = plugin.get("one")["spec"]
    assert spec["desiredState"] == "Running"
    assert spec["run"]["trigger"] != "1"
    assert spec["run"]["prompt"] == "Be brief."


def test_run_makes_a_resource_for_an_issue_nobody_knows_and_only_one(plugin: Plugin) -> None:
    first = plugin.json("run", "Octo/Hello#12")
    again = plugin.json("run", "octo/hello#12")
    assert first[0]["name"] == again[0]["name"]
    spec = plugin.get(first[0]["name"])["spec"]
    assert spec["issue"] == {"repository": "Octo/Hello", "number": 12}
    assert spec["run"]["trigger"].startswith("kubectl-")


def test_retry_repeats_only_what_did_not_succeed(plugin: Plugin) -> None:
    plugin.apply("one", 1, run={"trigger": "1", "prompt": "Be brief."})
    assert "had no run yet" in plugin("retry", "one", code=1)
    plugin.set_status("one", run=RUN)
    assert "goes on; stop it first" in plugin("retry", "one", code=1)
    plugin.set_status("one", run=FAILED)
    plugin("retry", "one")
    run = plugin.get("one")["spec"]["run"]
    assert run["trigger"] != "1"
    assert run["prompt"] == "Be brief."
    plugin.set_status("one", run={"outcome": "Succeeded"})
    assert "succeeded; use `kubectl isb run one`" in plugin("retry", "one", code=1)


def test_continue_sends_a_follow_up(plugin: Plugin) -> None:
    plugin.apply("one", 1, run={"trigger": "1", "prompt": "First."})
    assert "had no run yet" in plugin("continue", "one", "More.", code=1)
    plugin.set_status("one", run=FAILED)
    plugin("continue", "one", "Also add a test.")
    run = plugin.get("one")["spec"]["run"]
    assert run["prompt"] == "Also add a test."
    assert run["trigger"] != "1"
    assert "empty" in plugin("continue", "one", " ", code=2)


def test_marks_are_set_and_taken_away(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    plugin("pause", "one")
    assert plugin.get("one")["metadata"]["annotations"]["issuesandbox.dev/paused"] == "true"
    plugin("resume", "one")
    assert "issuesandbox.dev/paused" not in plugin.get("one")["metadata"].get("annotations", {})
    plugin("keep", "one")
    assert plugin.get("one")["metadata"]["labels"]["issuesandbox.dev/keep"] == "true"
    before = plugin.get("one")["metadata"]["resourceVersion"]
    plugin("keep", "one")
    assert plugin.get("one")["metadata"]["resourceVersion"] == before, (
        "a second one changes nothing"
    )
    plugin("keep", "--off", "one")
    assert "issuesandbox.dev/keep" not in plugin.get("one")["metadata"].get("labels", {})


def test_verbs_at_once_do_not_undo_each_other(plugin: Plugin) -> None:
    plugin.apply("one", 1, run={"trigger": "1"})
    verbs = [("stop", "one"), ("pause", "one"), ("keep", "one"), ("keep", "one")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda verb: plugin(*verb), verbs))
    body = plugin.get("one")
    assert body["spec"]["desiredState"] == "Stopped"
    assert body["metadata"]["annotations"]["issuesandbox.dev/paused"] == "true"
    assert body["metadata"]["labels"]["issuesandbox.dev/keep"] == "true"


def test_cleanup_deletes_what_is_finished_and_leaves_the_rest(plugin: Plugin) -> None:
    mine = {"team": "a"}
    for number, name in enumerate(("done", "busy", "kept", "other"), 1):
        plugin.apply(name, number, labels=mine if name != "other" else {}, run={"trigger": "1"})
        plugin.set_status(name, run=RUN if name == "busy" else FAILED)
    plugin("keep", "kept")
    shown = plugin.json("cleanup", "-l", "team=a", "--dry-run")
    assert {row["name"]: row["result"] for row in shown} == {
        "done": "would be deleted",
        "busy": "left: its run goes on",
        "kept": "left: it is kept",
    }
    assert plugin.get("done")
    plugin("cleanup", "-l", "team=a", "--yes")
    assert [row["metadata"]["name"] for row in plugin.json("list")] == ["busy", "kept", "other"]
    assert "must not be empty" in plugin("cleanup", "-l", " ", code=2)


def test_freeze_and_unfreeze_are_one_configmap(plugin: Plugin) -> None:
    home = ("--operator-namespace", plugin.namespace)
    said = plugin("freeze", "--reason", "quota incident", *home)
    assert "Frozen within 10 s: quota incident" in said
    plugin("freeze", "--reason", "still", *home)
    read = ("-n", plugin.namespace, "get", "configmap", "issuesandbox-freeze")
    assert plugin.access.kubectl(*read, "-o", "jsonpath={.data.reason}").stdout == "still"
    plugin("unfreeze", *home)
    with pytest.raises(subprocess.CalledProcessError):
        plugin.access.kubectl(*read)
    assert "Nothing was frozen" in plugin("unfreeze", *home)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("stop", "nobody"), 3, "there is no IssueSandbox"),
        (("status", "nobody"), 3, "there is no IssueSandbox"),
        (("run", "nobody"), 3, "there is no IssueSandbox"),
        (("stop",), 2, "Say which"),
        (("stop", "one", "--all"), 2, "Say which"),
        (("stop", "one", "-A"), 2, "use -n, not -A"),
        (("nothing",), 2, "No such command"),
        (("run", "octocat/hello-world"), 2, "neither a name nor an issue such as owner/name#12"),
        (("run", "octocat/hello-world#0"), 2, "neither a name nor an issue"),
    ],
)
def test_bad_input_gets_one_clear_line(
    plugin: Plugin, args: tuple[str, ...], code: int, said: str
) -> None:
    assert said in plugin(*args, code=code)


def test_one_of_many_that_fails_does_not_stop_the_others(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    said = plugin("stop", "nobody", "one", code=1)
    assert "one: told to stop" in said
    assert "1 of 2 failed" in said


def test_no_cluster_is_said_in_one_line(plugin: Plugin) -> None:
    said = plugin("list", code=1, KUBECONFIG="/nowhere")
    assert "no usable cluster" in said
    assert "set KUBECONFIG" in said


def test_a_missing_right_is_named(plugin: Plugin) -> None:
    plugin.access.kubectl("-n", plugin.namespace, "create", "serviceaccount", "guest")
    guest = plugin.access.service_account_kubeconfig(
        plugin.namespace, "guest", plugin.kubeconfig.parent
    )
    said = plugin("list", code=1, KUBECONFIG=str(guest))
    assert "you may not do this" in said
    assert "issuesandboxes" in said


def test_an_issue_is_as_good_as_a_name(plugin: Plugin) -> None:
    plugin.apply("mine", 1, run={"trigger": "1"})
    assert "/mine: told to stop" in plugin("stop", "Octo/Hello#1")
    assert [row["name"] for row in plugin.json("run", "octo/hello#1")] == ["mine"]
    assert len(plugin.json("list")) == 1, "a second resource for the issue would be a duplicate"
    assert "octo/hello#1" in plugin("status", "octo/hello#1")
    assert "there is no IssueSandbox for octo/hello#9" in plugin("status", "octo/hello#9", code=3)


def test_the_cluster_is_chosen_as_for_kubectl(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    config = yaml.safe_load(plugin.kubeconfig.read_text())
    here = config["contexts"][0]
    elsewhere = {**here["context"], "namespace": "elsewhere"}
    config["contexts"].append({"name": "other", "context": elsewhere})
    file = plugin.kubeconfig.parent / "another"
    file.write_text(yaml.safe_dump(config))
    chosen = ("list", "--kubeconfig", str(file))
    assert "octo/hello#1" in plugin(*chosen, KUBECONFIG="/nowhere")
    assert "No resource in elsewhere." in plugin(*chosen, "--context", "other")
    assert "no usable cluster" in plugin(*chosen, "--context", "nowhere", code=1)


def test_switches_answer_programs_too(plugin: Plugin) -> None:
    home = ("--operator-namespace", plugin.namespace)
    frozen = plugin.json("freeze", "--reason", "test", *home)
    assert (frozen["frozen"], frozen["reason"]) == (True, "test")
    assert plugin.json("unfreeze", *home) == {"frozen": False, "wasFrozen": True}
    assert plugin.json("unfreeze", *home) == {"frozen": False, "wasFrozen": False}
