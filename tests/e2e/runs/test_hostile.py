"""Agents that fight back: whatever they do, the run ends as it should and nothing survives."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from run_stage import QUICK, RunStage, scenario
from sandbox_sight import home_of, processes_of, sandbox_of

# Nothing is stopped or deleted by policy, so that only the rules for safety are seen.
RETAIN = {"onSuccess": "Retain", "onFailure": "Retain", "onTimeout": "Retain"}
SHORT = {"limits": {"inactivity": "5s", "agent": "8s"}}
RUN = "$(ls -d $HOME/.issuesandbox/run/*)"
PROGRAMS = "git sh ls mkdir rm mv ln cat env find awk sed head tail base64 sha256sum readlink sleep"
LONG = {"limits": {"inactivity": "30s", "agent": "60s"}}


async def begin(
    runs: RunStage, script: dict[str, tuple[str, ...]], run: dict[str, Any], **spec: Any
) -> None:
    for name, steps in script.items():
        await runs.run_issue(*steps, name=name, run=run, cleanup=RETAIN, **spec)


async def ends(runs: RunStage, names: list[str], seconds: float = 60) -> dict[str, dict[str, Any]]:
    found = await asyncio.gather(*(runs.until_finished(each, seconds) for each in names))
    return dict(zip(names, found, strict=True))


async def test_agents_that_do_not_end_or_leave_something_behind(runs: RunStage) -> None:
    timings = runs.stage.timings(**{**QUICK, "agent_grace": "4s"})
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    over = {
        "deaf": ("write a.txt a", "deaf", "forever 1"),
        "stubborn": ("deaf", "stubborn 3"),
        # It gives itself all the time in the world.
        "greedy": (
            f'bash cd {RUN}; (setsid sh -c \'while :; do printf "%-63s\\\\n" "0 0 0 Output ." '
            "1<>limits; sleep 0.02; done' &) ; true",
            "forever 0.2",
        ),
        # It kills its supervisor and beats in its place, with a beginning that nobody can reckon.
        "impostor": (
            f'bash cd {RUN}; kill -9 $(tr -d " " <pid); (setsid sh -c \'while :; do '
            "read -r n _ </proc/uptime; n=${n%.*}${n#*.}; "
            'printf "%-63s\\\\n" $$ 1<>pid; '
            'printf "%-63s\\\\n" "$n $n 99999999999999999 0" 1<>beat; '
            'sleep 0.1; done\' "$PWD" &) ; true',
            "forever 0.2",
        ),
        # What it puts beside its output is no number, or has no end.
        "clutter": (
            f"bash cd {RUN} && touch out.x 'out.size[$(cd;touch pwned)]' out.9999999999999999",
            f"bash cd {RUN} && mkfifo out.000000000000001 out.999999999999998",
            "forever 0.2",
        ),
    }
    done = {
        "nohup": ("nohup 1000", "bash setsid sleep 1000 >/dev/null 2>&1 &", "write a.txt a"),
        # It says that it has ended, in the words of its supervisor, and goes on.
        "liar": (
            "write a.txt a",
            "done",
            f"bash cd {RUN} && for file in exit over drained; do printf '%-63s' 0 >$file; done",
            "deaf",
            "forever 1",
        ),
        "restless": ("bash (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; true",),
    }
    quits = {
        # It says that somebody stopped it.
        "quitter": (
            "write a.txt a",
            f"bash cd {RUN} && printf '%-63s\\\\n' Stop 1<>ended",
            "forever 1",
        ),
    }
    full = {
        # Its last words found no room, so nobody knows whether it was done.
        "full": (
            "write a.txt a",
            f"bash cd {RUN} && rm -f out.* && ln -s /dev/full out.000000000000000",
            "say Done.",
        ),
    }
    await begin(runs, over, SHORT)
    await begin(runs, {**done, **full, **quits}, LONG)
    found = await ends(runs, [*over, *done, *full, *quits])
    # R57: nobody asked for that.
    assert found["quitter"]["outcome"] == "Failed"
    assert (found["full"]["outcome"], found["full"]["reason"]) == ("Failed", "AgentNoResult")
    assert f"refs/heads/{found['full']['savedWork']['ref']}" in await runs.refs()
    for name in over:
        assert (found[name]["outcome"], found[name]["reason"]) == ("TimedOut", "AgentTimeout")
        assert (await sandbox_of(runs, name))["state"] == "stopped"
    for name in done:
        assert found[name]["outcome"] == "Succeeded"
        assert (await sandbox_of(runs, name))["state"] == "started"
    for name in found:
        assert await processes_of(runs, name) == [], name


async def test_agents_that_print_without_measure(runs: RunStage) -> None:
    await runs.start_operator()
    script = {
        "flood": ("flood 60", "write a.txt a", "say The last words."),
        "binary": ("binary 300000", "write a.txt a", "say The last words."),
        "longline": ("longline 20", "write a.txt a", "say The last words."),
        "garbage": (
            'raw {"type": "result", "is_error": {"deep": [1]}, "num_turns": -5}',
            "raw issuesandbox-pulse",
            "raw state ENDED",
            "unknown surprise",
            "stderr \\n\\tnot a line",
            "write a.txt a",
            "say The last words.",
        ),
    }
    await begin(runs, script, LONG)
    found = await ends(runs, list(script))
    for name, run in found.items():
        assert (run["outcome"], run.get("reason")) == ("Succeeded", None), name
        path = f"/api/v1/namespaces/{runs.stage.namespace}/configmaps/{run['transcript']}"
        text = (await runs.stage.api("GET", path))["data"]["transcript"]
        assert len(text.encode()) <= 900 * 1024
        assert "The last words." in text, name
        assert (await runs.stage.status(name))["summary"]["text"] == "The last words."


async def test_last_words_of_any_length_can_be_written_down(runs: RunStage) -> None:
    # The API server counts bytes, and refuses the whole write for one text that is too long.
    await runs.start_operator()
    speech = f"for _ in 1 2 3 4 5 6 7 8; do printf {'😀' * 50}; done; echo; exit 1"
    wordy = {"profile": "custom", "command": ["sh", "-c", speech]}
    await runs.run_issue(name="agent", run={"agent": wordy, **LONG})
    await runs.run_issue(name="setup", run={"setup": [f"echo {'━' * 300}; exit 1"], **LONG})
    found = await ends(runs, ["agent", "setup"])
    assert [run["reason"] for run in found.values()] == ["AgentFailed", "SetupFailed"]
    for run in found.values():
        assert 512 - 4 < len(run["message"].encode()) <= 512
    path = f"/apis/events.k8s.io/v1/namespaces/{runs.stage.namespace}/events"
    told = {each["reason"]: each["note"] for each in (await runs.stage.api("GET", path))["items"]}
    assert 1024 - 4 < len(told["AgentFailed"].encode()) <= 1024


async def test_an_agent_that_attacks_its_supervisor_costs_the_sandbox_its_run(
    runs: RunStage,
) -> None:
    # The policy says that the sandbox is left alone; without a supervisor it is stopped.
    await runs.start_operator()
    own = "$HOME/.issuesandbox"
    script = {
        "files": ("write a.txt a", f'bash rm -rf "{own}"', "deaf", "forever 1"),
        "program": (
            "write a.txt a",
            f"bash for f in {own}/bin/supervisor-*; do echo exit >$f; done",
            "forever 1",
        ),
        "killed": (
            "write a.txt a",
            f'bash kill -9 $(tr -d " " <"{RUN}/pid")',
            "deaf",
            "forever 1",
        ),
        "blocked": (
            "write a.txt a",
            f'bash rm -rf "{own}"; echo taken >"{own}"',
            "deaf",
            "forever 1",
        ),
    }
    await begin(runs, script, LONG)
    found = await ends(runs, list(script))
    for name, run in found.items():
        assert (run["outcome"], run["reason"]) == ("Failed", "SupervisorLost"), name
        assert (await sandbox_of(runs, name))["state"] == "stopped", name
        assert await processes_of(runs, name) == []
        condition = await runs.stage.condition(name, "AgentCompleted")
        assert (condition["status"], condition["reason"]) == ("False", "SupervisorLost")
    # What can still be read is not lost.
    refs = await runs.refs()
    for name in ("files", "program", "killed"):
        assert f"refs/heads/{found[name]['savedWork']['ref']}" in refs


async def test_traps_that_an_agent_leaves_catch_nobody(runs: RunStage, tmp_path: Path) -> None:
    await runs.start_operator()
    marker, shared = tmp_path / "marker", tmp_path / "go" / "bin"
    planted = f"echo caught by $0 >>{marker}"
    shells = "; ".join(
        f"echo '{planted}' >>$HOME/{each}"
        for each in (".bashrc", ".profile", ".bash_profile", ".zshenv", ".zshrc", ".shinit")
    )
    tools = "; ".join(
        f"printf '#!/bin/sh\\n{planted}\\n' >{shared}/{each}; chmod +x {shared}/{each}"
        for each in PROGRAMS.split()
    )
    script = {
        "traps": (
            "write a.txt a",
            *(f"plant {trap} {marker}" for trap in ("hooks", "hookspath", "filter", "fsmonitor")),
            f"bash printf '[core]\\n\\tfsmonitor = {planted}\\n' >$HOME/.gitconfig",
            f"bash {shells}; mkdir -p {shared}; {tools}",
            # What git itself ran for the agent up to here does not count.
            f"bash /bin/rm -f {marker}",
        ),
        "gone": ('bash rm -rf "$HOME/work"',),
        "elsewhere": (
            'bash mkdir $HOME/other && touch $HOME/other/kept && rm -rf "$HOME/work"',
            'bash ln -s "$HOME/other" "$HOME/work"',
        ),
    }
    # A folder that the agent may write stands first on the PATH of its sandbox, as in many images.
    path = {"name": "PATH", "value": f"{shared}:{os.environ['PATH']}"}
    for name, steps in script.items():
        env = [path] if name == "traps" else []
        await begin(runs, {name: steps}, {**LONG, "keepAlive": True}, sandbox={"env": env})
    found = await ends(runs, list(script))
    assert found["traps"]["outcome"] == "Succeeded"
    assert set(os.listdir(shared)) == set(PROGRAMS.split())
    assert not marker.exists(), marker.read_text()
    for name in ("gone", "elsewhere"):
        assert (found[name]["outcome"], found[name]["reason"]) == ("Failed", "WorkspaceLost"), name
    # The next run in the same sandbox begins with a clean repository in its own place.
    for name in ("traps", "elsewhere"):
        again = {"promptTemplate": scenario("write b.txt b"), "setup": ["echo set up"]}
        await runs.trigger("2", name=name, **again)
    for name in ("traps", "elsewhere"):
        again = await runs.until_finished(name, trigger="2")
        assert (again["outcome"], again.get("reason")) == ("Succeeded", None), name
    assert not marker.exists(), marker.read_text()
    assert not (await home_of(runs, "traps") / "work/.git/hooks/pre-commit").exists()
    assert (await home_of(runs, "elsewhere") / "other/kept").exists()
