"""`issuesandbox reap` and `issuesandbox cleanup`, as administrators run them."""

from __future__ import annotations

import json

from reaper_stage import Stage

from issuesandbox.api.names import LABEL_HOME, LABEL_KEEP


async def test_reap_shows_a_table_and_kills_nothing_in_a_dry_run(stage: Stage) -> None:
    owner = await stage.create("one")
    owned = await stage.plant("one", owner)
    orphan = await stage.plant("gone", "uid-gone")
    # Made by an operator with the same id that lives in another namespace or cluster.
    strange = await stage.plant("far", "uid-far", labels={LABEL_HOME: "uid-elsewhere"})
    # As the operator, it goes by what is stored rather than by its environment.
    stage.access.kubectl(
        *("-n", stage.namespace, "create", "configmap", "issuesandbox"),
        f"--from-literal=DAYTONA_API_URL={stage.simulator.url}",
    )
    ended = await stage.command(
        *("reap", "--dry-run", "-n", stage.namespace), DAYTONA_API_URL="http://127.0.0.1:1/api"
    )
    assert ended.code == 0, ended.err
    header, _, *rows = [line for line in ended.out.splitlines() if line.strip()]
    assert header.split() == ["SANDBOX", "STATE", "AGE", "RESOURCE", "VERDICT", "WHY"]
    (row,) = [line for line in rows if orphan in line]
    assert f"{stage.namespace}/gone" in row
    assert "held" in row
    assert owned not in ended.out
    assert "owned: 1, found: 1, killed: 0, skipped: 1, errors: 0" in ended.out
    (row,) = [line for line in rows if strange in line]
    assert "outside" in row
    assert stage.installation in ended.err
    assert await stage.live() == {owned, orphan, strange}


async def test_reap_kills_after_a_second_look_and_a_yes(stage: Stage) -> None:
    owner = await stage.create("one")
    owned = await stage.plant("one", owner, name="claude-issue-1")
    orphan = await stage.plant("gone", "uid-gone")
    asked = await stage.command("reap")
    assert asked.code == 1
    assert orphan in asked.err
    assert await stage.live() == {owned, orphan}
    ended = await stage.command("reap", "--yes", "--all", "-o", "json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    shown = {each.pop("sandbox"): each for each in document.pop("sandboxes")}
    assert document == {"owned": 1, "found": 1, "killed": 1, "skipped": 0, "errors": 0}
    assert shown[orphan]["verdict"] == "killed"
    kept = shown[owned]
    assert (kept["name"], kept["resource"]) == ("claude-issue-1", f"{stage.namespace}/one")
    assert (kept["verdict"], kept["why"]) == ("owned", "its resource exists")
    assert await stage.live() == {owned}


async def test_reap_stops_at_too_many_orphans_until_somebody_vouches_for_them(
    stage: Stage,
) -> None:
    for number in range(5):
        await stage.plant(f"gone-{number}", f"uid-{number}")
    stopped = await stage.command("reap", "--yes")
    assert stopped.code == 1
    assert stopped.err.splitlines()[-1] == (
        "Error: nothing was killed: 5 of 5 sandboxes look like orphans, too many to believe."
    )
    assert len(await stage.live()) == 5
    ended = await stage.command("reap", "--yes", "--accept-orphans", "5")
    assert ended.code == 0, ended.err
    assert await stage.live() == set()


async def finish(stage: Stage, name: str, sandbox: str, outcome: str | None) -> None:
    """Write the status that a run leaves behind."""
    run = {
        "id": "run-1",
        "phase": "Finished" if outcome else "Executing",
        "startedAt": "2026-07-01T12:00:00Z",
        **({"outcome": outcome} if outcome else {}),
    }
    status = {"sandbox": {"id": sandbox}, "run": run}
    await stage.requests.send("PATCH", f"{stage.path(name)}/status", {"status": status})


async def test_cleanup_deletes_the_sandboxes_of_finished_resources_with_a_result_each(
    stage: Stage,
) -> None:
    # R86, R91, R99
    labels = {"metadata": {"labels": {"batch": "a"}}, "run": {}}
    ids = {}
    for number, (name, outcome) in enumerate(
        {"done": "Failed", "busy": None, "lost": "Succeeded", "other": "Failed"}.items(), 1
    ):
        fields = labels if name != "other" else {"run": {}}
        uid = await stage.create(name, number, **fields)
        ids[name] = await stage.plant(name, uid)
        await finish(stage, name, ids[name], outcome)
    await stage.create("empty", 9, **labels)
    await stage.create("stolen", 10, **labels)
    await finish(stage, "stolen", ids["other"], "Failed")
    await stage.admin("POST", f"sandboxes/{ids['lost']}/destroy", {})
    scope = ("-n", stage.namespace, "-l", "batch=a", "-o", "json")

    tried = await stage.command("cleanup", *scope, "--dry-run")
    assert tried.code == 0, tried.err
    assert await stage.deletes() == 0
    ended = await stage.command("cleanup", *scope, "--yes")
    assert ended.code == 0, ended.err
    results = {
        each["resource"].split("/")[1]: (each["result"], each["why"])
        for each in json.loads(ended.out)
    }
    assert results == {
        "done": ("deleted", ""),
        "busy": ("skipped", "its run goes on; stop it first, or delete the resource"),
        "lost": ("already gone", ""),
        "empty": ("skipped", "No sandbox ID provided"),
        "stolen": ("skipped", "the sandbox belongs to somebody else"),
    }
    assert await stage.live() == {ids["busy"], ids["other"]}
    assert await stage.exists("done")


async def test_cleanup_can_delete_the_resources_themselves(stage: Stage) -> None:
    for number, name in enumerate(("one", "two", "kept"), 1):
        keep = {LABEL_KEEP: "true"} if name == "kept" else {}
        await stage.create(name, number, metadata={"labels": {"batch": stage.namespace, **keep}})
    scope = ("-A", "-l", f"batch={stage.namespace}", "--resources")
    refused = await stage.command("cleanup", *scope)
    assert refused.code == 1
    assert await stage.exists("one")
    ended = await stage.command("cleanup", *scope, "--yes")
    assert ended.code == 0, ended.err
    assert [await stage.exists(name) for name in ("one", "two", "kept")] == [False, False, True]
    assert "skipped" in ended.out
