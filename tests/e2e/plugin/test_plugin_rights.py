"""The roles for people are enough for what they do, and for no more."""

from __future__ import annotations

import yaml
from plugin_process import Plugin

from issuesandbox.local.world.layout import manifests

FINISHED = {
    "id": "r1",
    "phase": "Finished",
    "outcome": "Failed",
    "trigger": "1",
    "startedAt": "2030-01-01T00:00:00Z",
}


def person(plugin: Plugin, *roles: str) -> str:
    """Return the kubeconfig of somebody with these roles in the namespace, and no other."""
    name = "-".join(roles)
    shipped = (manifests() / "base" / "users.yaml").read_text()
    plugin.access.kubectl("apply", "-f", "-", stdin=shipped)
    home = ("-n", plugin.namespace)
    plugin.access.kubectl(*home, "create", "serviceaccount", name)
    for role in roles:
        account = f"--serviceaccount={plugin.namespace}:{name}"
        binding = ("create", "rolebinding", f"{name}-{role}", f"--clusterrole={role}", account)
        plugin.access.kubectl(*home, *binding)
    path = plugin.access.service_account_kubeconfig(
        plugin.namespace, name, plugin.kubeconfig.parent
    )
    config = yaml.safe_load(path.read_text())
    config["contexts"][0]["context"]["namespace"] = plugin.namespace
    path.write_text(yaml.safe_dump(config))
    return str(path)


def test_who_may_view_sees_everything_and_changes_nothing(plugin: Plugin) -> None:
    plugin.apply("one", 1, run={"trigger": "1"})
    viewer = person(plugin, "issuesandbox-view")
    for verb in (("list",), ("status", "one"), ("why", "one"), ("usage",)):
        assert "octo/hello#1" in plugin(*verb, KUBECONFIG=viewer)
    before = plugin.get("one")["metadata"]["resourceVersion"]
    for verb in (("stop", "one"), ("run", "one"), ("run", "octo/hello#2"), ("pause", "one")):
        assert "you may not do this" in plugin(*verb, code=1, KUBECONFIG=viewer)
    assert plugin.get("one")["metadata"]["resourceVersion"] == before


def test_who_may_edit_can_use_every_verb(plugin: Plugin) -> None:
    plugin.apply("one", 1, run={"trigger": "1"}, labels={"team": "a"})
    plugin.set_status("one", run=FINISHED)
    editor = person(plugin, "issuesandbox-view", "issuesandbox-edit")
    for verb in ("stop", "run", "retry", "pause", "resume", "keep"):
        assert "one: " in plugin(verb, "one", KUBECONFIG=editor)
    assert "follow-up sent" in plugin("continue", "one", "More.", KUBECONFIG=editor)
    plugin("keep", "--off", "one", KUBECONFIG=editor)
    plugin.set_status(
        "one", run={**FINISHED, "trigger": plugin.get("one")["spec"]["run"]["trigger"]}
    )
    assert "created, with one run" in plugin("run", "octo/hello#2", KUBECONFIG=editor)
    assert "deleted" in plugin("cleanup", "-l", "team=a", "--yes", KUBECONFIG=editor)
    assert [each["spec"]["issue"]["number"] for each in plugin.json("list")] == [2]
