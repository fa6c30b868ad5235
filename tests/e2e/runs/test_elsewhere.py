"""Another repository than the issue's: cloned and pushed to with its own key, proposed nowhere."""

from __future__ import annotations

from run_stage import FILES, PERSON, RunStage
from run_witness import opened

THEIRS = "their/code"


async def test_work_goes_to_another_repository_run_after_run(runs: RunStage) -> None:
    # The checker looks for pushes in the issue's own repository.
    runs.stage.guard.lapse("one-push")
    await runs.start_operator()
    await runs.hub("POST", "repos", {"repository": THEIRS, "files": FILES})
    secret = {"metadata": {"name": "theirs"}, "stringData": {"password": PERSON}}
    await runs.stage.api("POST", f"/api/v1/namespaces/{runs.stage.namespace}/secrets", secret)
    source = {
        "cloneURL": f"{runs.github.url}/{THEIRS}.git",
        "credentialsSecretRef": {"name": "theirs"},
    }
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
