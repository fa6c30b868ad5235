"""Another repository than the issue's: cloned and pushed to with its own key, proposed nowhere."""

from __future__ import annotations

from typing import Any

from run_stage import FILES, RunStage
from run_witness import journal, opened

THEIRS = "their/code"
SOURCE = {"credentialsSecretRef": {"name": "theirs"}}


async def keys_to_theirs(runs: RunStage) -> dict[str, str]:
    """Make their private repository, and a token for each right to it."""
    files = {"repository": THEIRS, "files": FILES, "private": True}
    await runs.hub("POST", "repos", files)
    found = {}
    for right in ("read", "write"):
        asked = {"user": "their", "permissions": {"contents": right}, "repositories": [THEIRS]}
        found[right] = (await runs.hub("POST", "tokens", asked))["token"]
    return found


async def store(runs: RunStage, **keys: str) -> None:
    """Put keys into the Secret that the resources name."""
    secret = {"metadata": {"name": "theirs"}, "stringData": keys}
    await runs.stage.api("POST", f"/api/v1/namespaces/{runs.stage.namespace}/secrets", secret)


async def rights_used(runs: RunStage, operation: str) -> list[Any]:
    """Return the right to the contents with which each git request there was made."""
    asked = [each for each in await journal(runs) if each["type"] == "request"]
    known = [each for each in asked if each["operation"] == operation]
    return [(each["identity"].get("permissions") or {}).get("contents") for each in known]


async def test_work_goes_to_another_repository_run_after_run(runs: RunStage) -> None:
    # The checker looks for pushes in the issue's own repository.
    runs.stage.guard.lapse("one-push")
    await runs.start_operator()
    keys = await keys_to_theirs(runs)
    await store(runs, **{"password": keys["write"], "read-password": keys["read"]})
    source = {**SOURCE, "cloneURL": f"{runs.github.url}/{THEIRS}.git"}
    await runs.run_issue("append log.txt more", repository=source)
    ends = [await runs.until_finished()]
    await runs.trigger("2")
    ends.append(await runs.until_finished(trigger="2"))
    assert [(each["outcome"], each.get("reason")) for each in ends] == [("Succeeded", "Pushed")] * 2
    assert ends[1]["branch"] == f"{ends[0]['branch']}-2"
    refs = await runs.hub("GET", f"repos/{THEIRS}/refs")
    for run in ends:
        assert refs[f"refs/heads/{run['branch']}"] == run["commit"]
    conditions = (await runs.stage.status("one"))["conditions"]
    (published,) = [each for each in conditions if each["type"] == "Published"]
    assert (published["status"], published["reason"]) == ("True", "Pushed")
    assert await opened(runs) == []
    assert list(await runs.refs()) == ["refs/heads/main"]
    # git in the sandbox read with the one token, the operator wrote with the other.
    assert set(await rights_used(runs, "smart-http/upload-pack")) == {"read"}
    assert set(await rights_used(runs, "smart-http/receive-pack")) == {"write"}


async def test_a_token_that_writes_elsewhere_never_enters_a_sandbox(runs: RunStage) -> None:
    await runs.start_operator()
    keys = await keys_to_theirs(runs)
    await store(runs, password=keys["write"])
    source = {**SOURCE, "cloneURL": f"{runs.github.url}/{THEIRS}.git"}
    asked: dict[str, dict[str, Any]] = {
        "publishing": {},
        "private": {"publish": {"enabled": False}},
    }
    for name, run in asked.items():
        await runs.run_issue("write a a", name=name, repository=source, run=run)
    for name in asked:
        run = await runs.until_finished(name)
        assert (run["outcome"], run["reason"]) == ("Failed", "ReadTokenMissing"), run
        for word in (f"{runs.stage.namespace}/theirs", "`read-password`", "sandbox"):
            assert word in run["message"]
    assert await rights_used(runs, "smart-http/upload-pack") == []
