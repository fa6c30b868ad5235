"""Real git clients clone and push; tokens reach only what they were minted for."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from github_judge import Api, Drain, Git, GitRun, JumpingClock, Mint, Receiver, Remote

ZERO = "0" * 40


@dataclass
class Work:
    """A clone with one new commit on the branch `fix`."""

    folder: Path
    repo: str
    _git: Git
    _remote: Remote

    async def git(self, *arguments: str) -> str:
        done = await self._git(*arguments, cwd=self.folder)
        assert done.code == 0, done.output
        return done.output.strip()

    async def head(self) -> str:
        return await self.git("rev-parse", "HEAD")

    async def push(self, client: Api, refspec: str = "fix", repo: str = "") -> GitRun:
        address = self._remote(client, repo or self.repo)
        return await self._git("push", address, refspec, cwd=self.folder)

    async def clone(self, client: Api, repo: str = "") -> GitRun:
        target = str(self.folder.parent / "copy")
        return await self._git("clone", "-q", self._remote(client, repo or self.repo), target)

    async def pack_request(self, old: str) -> bytes:
        """Return what a client sends to move `fix` from any old id."""
        listed = await self.git("rev-list", "--objects", "HEAD")
        names = self.folder / "objects"
        names.write_text("".join(line.split()[0] + "\n" for line in listed.splitlines()))
        await self.git("-c", "alias.p=!git pack-objects -q --stdout < objects > pack", "p")
        command = f"{old} {await self.head()} refs/heads/fix\0report-status".encode()
        start = f"{len(command) + 4:04x}".encode() + command + b"0000"
        return start + (self.folder / "pack").read_bytes()

    async def send_pack(self, client: Api, old: str, *, zipped: bool = False) -> bytes:
        """Push `fix` by hand, zipped as git does with large requests."""
        return await self.send(client, await self.pack_request(old), zipped=zipped)

    async def send(self, client: Api, body: bytes, *, zipped: bool = False) -> bytes:
        headers = {"Content-Type": "application/x-git-receive-pack-request", **client.headers}
        if zipped:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        url = f"{client.base}/{self.repo}.git/git-receive-pack"
        async with client.session.post(url, data=body, headers=headers) as response:
            assert response.status == 200
            return await response.read()

    async def send_half(self, client: Api) -> None:
        """Send the beginning of a push and hang up."""
        body = await self.pack_request(ZERO)
        host, port = client.base.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"POST /{self.repo}.git/git-receive-pack HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Authorization: {client.headers['Authorization']}\r\n"
            "Content-Type: application/x-git-receive-pack-request\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body[:300])
        await writer.drain()
        writer.close()
        await writer.wait_closed()


async def _journaled(admin: Api, operation: str) -> Any:
    """Wait until a request has come to its end, and return its entry."""
    async with asyncio.timeout(10):
        while True:
            for entry in await admin.get("/journal"):
                if entry.get("operation") == operation:
                    return entry


@pytest.fixture
async def work(git: Git, root: Api, repo: str, remote: Remote, tmp_path: Path) -> Work:
    made = Work(tmp_path / "work", repo, git, remote)
    assert (await git("clone", "-q", remote(root, repo), str(made.folder))).code == 0
    (made.folder / "fix.txt").write_text("fixed\n")
    await made.git("checkout", "-qb", "fix")
    await made.git("add", ".")
    await made.git("commit", "-qm", "Fix")
    return made


async def _refs(admin: Api, repo: str) -> Any:
    return await admin.get(f"/repos/{repo}/refs")


async def _pushes(admin: Api) -> list[dict[str, Any]]:
    return [entry for entry in await admin.get("/journal") if entry["type"] == "push"]


async def test_a_clone_has_the_files_and_a_push_moves_the_branch(
    admin: Api, mint: Mint, repo: str, work: Work
) -> None:
    writer = await mint(repositories=["app"], permissions={"contents": "write"})
    assert (work.folder / "README.md").read_text() == "hello\n"
    pushed = await work.push(writer)
    assert pushed.code == 0, pushed.output
    head = await work.head()
    assert (await _refs(admin, repo))["refs/heads/fix"] == head
    last = (await _pushes(admin))[-1]
    assert (last["repo"], last["ref"], last["old"]) == (repo, "refs/heads/fix", ZERO)
    assert (last["new"], last["via"]) == (head, "git")
    identity = last["identity"]
    assert identity["kind"] == "installation"
    assert identity["permissions"] == {"metadata": "read", "contents": "write"}
    assert identity["repositories"] == [repo]


async def test_a_read_token_clones_but_does_not_push(
    admin: Api, mint: Mint, repo: str, work: Work
) -> None:
    reader = await mint(permissions={"contents": "read"})
    assert (await work.clone(reader)).code == 0
    pushed = await work.push(reader)
    assert pushed.code != 0
    assert "Write access to repository not granted." in pushed.output
    assert "403" in pushed.output
    assert "refs/heads/fix" not in await _refs(admin, repo)


async def test_a_token_of_another_repository_finds_nothing(
    admin: Api, mint: Mint, work: Work
) -> None:
    await admin.post("/repos", {"repository": "acme/other", "files": {"a": "1"}}, status=200)
    stranger = await mint(repositories=["other"], permissions={"contents": "write"})
    cloned = await work.clone(stranger)
    assert cloned.code != 0
    assert "Repository not found." in cloned.output
    assert (await work.push(stranger)).code != 0
    assert (await work.clone(stranger, "acme/other")).code == 0


async def test_a_token_without_contents_permission_does_not_clone(mint: Mint, work: Work) -> None:
    commenter = await mint(permissions={"issues": "write"})
    cloned = await work.clone(commenter)
    assert cloned.code != 0
    assert "403" in cloned.output


async def test_a_token_dies_after_an_hour(
    mint: Mint, repo: str, work: Work, clock: JumpingClock
) -> None:
    writer = await mint(permissions={"contents": "write"})
    clock.ahead += timedelta(minutes=59)
    assert (await work.clone(writer)).code == 0
    clock.ahead += timedelta(minutes=1)
    pushed = await work.push(writer)
    assert pushed.code != 0
    assert "Authentication failed" in pushed.output
    await writer.get(f"/repos/{repo}", status=401)


async def test_a_token_can_be_expired_at_will(
    admin: Api, mint: Mint, repo: str, work: Work
) -> None:
    writer = await mint()
    token = writer.headers["Authorization"].split()[1]
    assert (await admin.post("/tokens/expire", {"token": token}, status=200))["expired"] == 1
    assert (await work.push(writer)).code != 0
    assert (await writer.get(f"/repos/{repo}", status=401))["message"] == "Bad credentials"


async def test_nobody_reads_a_private_or_writes_a_public_repository(
    admin: Api, root: Api, work: Work
) -> None:
    nobody = Api(root.session, root.base)
    assert (await work.clone(nobody)).code != 0
    body = {"repository": "acme/open", "private": False, "files": {"a": "1"}}
    await admin.post("/repos", body, status=200)
    assert (await work.clone(nobody, "acme/open")).code == 0
    assert (await work.push(nobody, repo="acme/open")).code != 0


@pytest.mark.parametrize("change", ["add", "delete"])
async def test_workflow_files_need_their_own_permission(
    admin: Api, mint: Mint, repo: str, work: Work, change: str
) -> None:
    files = {".github/workflows/old.yml": "on: push\n"}
    await admin.post(f"/repos/{repo}/push", {"branch": "main", "files": files}, status=200)
    await work.git("pull", "-q", "--rebase", "origin", "main")
    name = "ci.yml" if change == "add" else "old.yml"
    workflow = work.folder / ".github/workflows" / name
    workflow.write_text("on: push\n") if change == "add" else workflow.unlink()
    await work.git("add", "-A")
    await work.git("commit", "-qm", "Workflow")
    writer = await mint(permissions={"contents": "write"})
    pushed = await work.push(writer)
    assert pushed.code != 0
    assert (
        f"[remote rejected] fix -> fix (refusing to allow a GitHub App to create or update "
        f"workflow `.github/workflows/{name}` without `workflows` permission)"
    ) in pushed.output
    journal = await admin.get("/journal")
    noted = [effect["what"] for entry in journal for effect in entry.get("effect", ())]
    assert "push.refused" in noted
    granted = {"contents": "write", "workflows": "write"}
    made = await admin.post("/tokens", {"user": "root", "permissions": granted}, status=200)
    allowed = Api(writer.session, writer.base, f"Bearer {made['token']}")
    assert (await work.push(allowed)).code == 0


async def test_workflow_files_that_are_already_there_do_not_matter(
    admin: Api, mint: Mint, repo: str, work: Work
) -> None:
    files = {".github/workflows/old.yml": "on: push\n"}
    await admin.post(f"/repos/{repo}/push", {"branch": "main", "files": files}, status=200)
    await work.git("pull", "-q", "--rebase", "origin", "main")
    pushed = await work.push(await mint(permissions={"contents": "write"}))
    assert pushed.code == 0, pushed.output


async def test_a_protected_branch_refuses_the_push_and_says_why(
    admin: Api, mint: Mint, repo: str, work: Work
) -> None:
    await admin.call("PUT", f"/repos/{repo}/protection/main")
    writer = await mint(permissions={"contents": "write"})
    pushed = await work.push(writer, "fix:main")
    assert pushed.code != 0
    assert "(protected branch hook declined)" in pushed.output
    assert "GH006: Protected branch update failed for refs/heads/main." in pushed.output
    assert (await work.push(writer)).code == 0
    await admin.call("DELETE", f"/repos/{repo}/protection/main")
    assert (await work.push(writer, "fix:main")).code == 0


async def test_a_branch_that_moved_is_not_overwritten(
    root: Api, admin: Api, repo: str, work: Work
) -> None:
    await admin.post(f"/repos/{repo}/push", {"branch": "fix", "files": {"h": "1"}}, status=200)
    tip, wrong = (await _refs(admin, repo))["refs/heads/fix"], "1" * 40
    locked = "ng refs/heads/fix cannot lock ref 'refs/heads/fix': "
    created = await work.send_pack(root, ZERO)
    assert f"{locked}reference already exists".encode() in created
    moved = await work.send_pack(root, wrong)
    assert f"{locked}is at {tip} but expected {wrong}".encode() in moved
    assert (await _refs(admin, repo))["refs/heads/fix"] == tip
    assert b"ok refs/heads/fix" in await work.send_pack(root, tip)


async def test_the_same_push_repeated_is_harmless(root: Api, admin: Api, work: Work) -> None:
    assert b"ok refs/heads/fix" in await work.send_pack(root, ZERO, zipped=True)
    assert b"already exists" in await work.send_pack(root, ZERO)
    ours = [push for push in await _pushes(admin) if push["ref"] == "refs/heads/fix"]
    assert len(ours) == 1


async def test_of_five_pushes_at_once_one_wins(root: Api, admin: Api, work: Work) -> None:
    body = await work.pack_request(ZERO)
    answers = await asyncio.gather(*(work.send(root, body) for _ in range(5)))
    assert sum(b"ok refs/heads/fix" in answer for answer in answers) == 1
    assert sum(b"ng refs/heads/fix" in answer for answer in answers) == 4
    ours = [push for push in await _pushes(admin) if push["ref"] == "refs/heads/fix"]
    assert len(ours) == 1


async def test_a_push_whose_answer_is_lost_has_happened(
    root: Api, admin: Api, repo: str, work: Work
) -> None:
    operation = "smart-http/receive-pack"
    fault = {"kind": "reset", "operation": operation, "after_effect": True}
    await admin.post("/faults", fault, status=200)
    assert (await work.push(root)).code != 0
    assert (await _refs(admin, repo))["refs/heads/fix"] == await work.head()
    journal = await admin.get("/journal")
    # The client itself tries again on a fresh connection, and is then refused.
    entry = next(entry for entry in journal if entry.get("operation") == operation)
    assert entry["fault"] == "reset after effect"
    assert entry["effect"]


async def test_a_push_that_fails_before_its_effect_has_not_happened(
    root: Api, admin: Api, repo: str, work: Work
) -> None:
    fault = {"kind": "status", "status": 503, "operation": "smart-http/receive-pack"}
    await admin.post("/faults", fault, status=200)
    assert (await work.push(root)).code != 0
    assert "refs/heads/fix" not in await _refs(admin, repo)
    assert (await work.push(root)).code == 0


async def test_half_a_push_moves_nothing(root: Api, admin: Api, repo: str, work: Work) -> None:
    await work.send_half(root)
    entry = await _journaled(admin, "smart-http/receive-pack")
    assert entry["effect"] == []
    assert "refs/heads/fix" not in await _refs(admin, repo)


async def test_pushes_are_announced_and_update_the_pull_request(
    root: Api, repo: str, work: Work, receiver: Receiver, drained: Drain
) -> None:
    await work.push(root)
    pull = await root.post(f"/repos/{repo}/pulls", {"title": "T", "head": "fix", "base": "main"})
    before = pull["head"]["sha"]
    await work.git("commit", "-q", "--allow-empty", "-m", "More")
    await work.push(root)
    after = await work.head()
    shown = await root.get(f"/repos/{repo}/pulls/{pull['number']}")
    assert shown["head"]["sha"] == after
    await drained()
    sync = next(one for one in receiver.got if one.kind == "pull_request.synchronize")
    assert (sync.json["before"], sync.json["after"]) == (before, after)
    last_push = [one for one in receiver.got if one.kind == "push"][-1]
    assert last_push.json["head_commit"]["id"] == after
    assert last_push.json["sender"]["login"] == "root"


async def test_odd_file_names_survive(admin: Api, root: Api, repo: str, work: Work) -> None:
    names = ["with space", 'qu"ote', "back\\slash", "new\nline", "ümlaut"]
    files = dict.fromkeys(names, "x")
    await admin.post(f"/repos/{repo}/push", {"branch": "main", "files": files}, status=200)
    await work.clone(root)
    assert set(names) <= {path.name for path in (work.folder.parent / "copy").iterdir()}


async def test_a_megabyte_streams_both_ways(root: Api, work: Work) -> None:
    noise = bytes(index * index % 251 for index in range(3_000_000))
    (work.folder / "big").write_bytes(noise)
    await work.git("add", ".")
    await work.git("-c", "core.compression=0", "commit", "-qm", "Big")
    await work.git("config", "http.postBuffer", "65536")
    pushed = await work.push(root)
    assert pushed.code == 0, pushed.output
    assert (await work.clone(root)).code == 0
    copy = work.folder.parent / "copy"
    await work.git("-C", str(copy), "checkout", "-q", "fix")
    assert (copy / "big").read_bytes() == noise


async def test_only_the_smart_protocol_is_served(root: Api, repo: str) -> None:
    async with root.session.get(f"{root.base}/{repo}.git/info/refs", headers=root.headers) as dumb:
        assert dumb.status == 403
        assert "upgrade your git client" in await dumb.text()
    await root.get(f"/{repo}.git/objects/info/packs", status=404)
