"""Every verb of `kubectl isb` that shows something, on the real API server."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import yaml
from plugin_process import BIN, Plugin

from issuesandbox.domain.naming import transcript_name
from issuesandbox.local.world.layout import manifests

RUN: dict[str, Any] = {
    "id": "r1",
    "phase": "Finished",
    "outcome": "Succeeded",
    "startedAt": "2030-01-01T00:00:00Z",
    "transcript": "one-r1",
    "pullRequest": {"number": 4, "url": "https://example.com/4"},
}
READY = {
    "type": "Ready",
    "status": "False",
    "reason": "Waiting",
    "message": "The sandbox is starting.",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
}


def test_list_shows_sorts_and_says_when_there_is_nothing(plugin: Plugin) -> None:  # R118
    assert f"No resource in {plugin.namespace}" in plugin("list")
    plugin.apply("beta", 1)
    plugin.apply("alpha", 2)
    plugin.set_status("alpha", phase="Booting", conditions=[READY])
    lines = plugin("list").splitlines()
    assert lines[0].split()[:4] == ["NAMESPACE", "NAME", "ISSUE", "PHASE"]
    assert [line.split()[1] for line in lines[1:]] == ["alpha", "beta"]
    assert "octo/hello#2" in lines[1]
    assert "Waiting" in lines[1]
    by_issue = plugin("list", "--sort", "issue", "-o", "wide").splitlines()
    assert [line.split()[1] for line in by_issue[1:]] == ["beta", "alpha"]
    assert "The sandbox is starting." in by_issue[2]
    assert plugin.json("list")[0]["kind"] == "IssueSandbox"


def test_list_follows_changes_until_it_is_interrupted(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    command = [str(BIN / "kubectl-isb"), "list", "-w"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=plugin.environment()
    ) as process:
        assert process.stdout is not None
        assert " one " in process.stdout.readline()
        plugin.set_status("one", phase="Booting")
        assert "Booting" in process.stdout.readline()
        plugin.access.kubectl("-n", plugin.namespace, "delete", "isb", "one")
        assert "Deleted" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def test_status_why_usage_and_transcript_tell_the_story(plugin: Plugin) -> None:
    plugin.apply("one", 1, run={})
    plugin.set_status(
        "one",
        phase="Succeeded",
        run=RUN,
        conditions=[READY],
        counters={"runs": 1},
        usage={"states": [{"state": "started", "seconds": 90}], "costUSD": "0.25"},
    )
    shown = plugin("status", "one")
    assert "r1  Succeeded" in shown
    assert "#4 https://example.com/4" in shown
    assert "octo/hello#1 is Succeeded: The sandbox is starting." in plugin("why", "one")
    assert plugin.json("why", "one")["phase"] == "Succeeded"
    total = plugin.json("usage")["total"]
    assert (total["runs"], total["running"], total["cost"]) == (1, 90, "0.25")
    assert "$0.25" in plugin("usage")
    assert "was deleted" in plugin("transcript", "one", code=3)
    text = "--from-literal=transcript=$ make test\nok"
    plugin.access.kubectl("-n", plugin.namespace, "create", "configmap", "one-r1", text)
    assert plugin("transcript", "one") == "$ make test\nok\n"


def test_why_reads_the_freeze_and_the_operators_opinion_of_its_settings(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    home = ("--operator-namespace", plugin.namespace)
    opinion = json.dumps({"valid": False, "message": "no such setting"})
    plugin.access.kubectl(
        *("-n", plugin.namespace, "create", "configmap", "issuesandbox-status"),
        f"--from-literal=settings={opinion}",
    )
    plugin("freeze", "--reason", "quota incident", *home)
    said = plugin("why", "one", *home)
    assert "frozen: quota incident" in said
    assert "older settings: no such setting" in said


def test_doctor_finds_what_is_missing_and_how_to_repair_it(plugin: Plugin) -> None:
    rows = {
        row["check"]: row for row in plugin.json("doctor", "--operator-namespace", plugin.namespace)
    }
    assert rows["API server"]["verdict"] == "ok"
    assert rows["clock"]["verdict"] == "ok"
    assert rows["CRD"]["verdict"] == "ok"
    assert rows["your rights"]["verdict"] == "ok"
    assert "may not watch issuesandboxes" in rows["its rights"]["what"]
    assert "get namespaces" in rows["its rights"]["what"]
    assert "watch configmaps issuesandbox-freeze" in rows["its rights"]["what"]
    assert "may not watch issuesandboxes" in rows["adapter's rights"]["what"]
    assert rows["policy"]["what"] == "there is none; the defaults are in force"
    assert rows["operator"]["verdict"] == "FAILED"
    assert rows["operator"]["fix"] == "kubectl apply -k manifests/base"
    assert rows["leases"]["verdict"] == "FAILED"
    assert rows["Secret issuesandbox-daytona"]["verdict"] == "FAILED"
    assert "checks failed" in plugin("doctor", "--operator-namespace", plugin.namespace, code=1)


def test_doctor_is_content_with_the_shipped_deployment(plugin: Plugin) -> None:
    deployment = yaml.safe_load((manifests() / "base" / "deployment.yaml").read_text())
    deployment["metadata"]["namespace"] = plugin.namespace
    plugin.access.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(deployment))
    plugin.access.kubectl(
        *("-n", plugin.namespace, "create", "secret", "generic", "issuesandbox-daytona"),
        "--from-literal=api-key= has blanks ",
    )
    plugin.access.kubectl(
        *("-n", plugin.namespace, "create", "configmap", "issuesandbox-webhook-policy"),
        "--from-literal=policy.yaml=defaults: {colour: red}",
    )
    rows = {
        row["check"]: row for row in plugin.json("doctor", "--operator-namespace", plugin.namespace)
    }
    assert rows["operator"]["what"] == "0 of 1 replicas are ready"
    assert rows["policy"]["verdict"] == "FAILED"
    assert "colour" in rows["policy"]["what"]
    assert rows["Secret issuesandbox-daytona"]["verdict"] == "ok"
    assert rows["Daytona key"]["what"] == "the key has spaces or line breaks in it"
    assert "has blanks" not in json.dumps(rows)


def test_kubectl_finds_the_plugin(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    done = subprocess.run(
        [str(plugin.access.kubectl_binary), "isb", "list"],
        capture_output=True,
        text=True,
        check=True,
        env=plugin.environment(),
    )
    assert "octo/hello#1" in done.stdout


def test_logs_are_followed_until_somebody_has_seen_enough(plugin: Plugin) -> None:
    plugin.apply("one", 1, run={})
    plugin.set_status("one", run={"id": "r1", "phase": "Executing", "startedAt": RUN["startedAt"]})
    name = transcript_name("one", "r1")
    create = ("-n", plugin.namespace, "create", "configmap", name)
    plugin.access.kubectl(*create, "--from-literal=transcript=first\n")
    command = [str(BIN / "kubectl-isb"), "logs", "-f", "one"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=plugin.environment(PYTHONUNBUFFERED="1")
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        change = json.dumps({"data": {"transcript": "first\nsecond\n"}})
        plugin.access.kubectl(
            *("-n", plugin.namespace, "patch", "configmap", name, "--type=merge", "-p", change)
        )
        assert process.stdout.readline() == "second\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
