"""Who may do what: the App's assertions, installation tokens, people and strangers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from github_judge import Api, JumpingClock, Mint, assertion

from issuesandbox.local.github.server import GitHubSimulator
from issuesandbox.local.github.tokens import new_private_key

HOUR = 3600


_BAD_CLAIMS: list[Any] = [
    ({"exp": 1}, "must be a numeric value representing the future time"),
    ({"exp": "soon"}, "must be a numeric value representing the future time"),
    ({"exp": 2**40}, "is too far in the future"),
    ({"iat": 2**40}, "'Issued at' claim ('iat')"),
    ({"iat": None}, "'Issued at' claim ('iat')"),
]


async def test_an_assertion_must_be_for_now(
    subtests: pytest.Subtests, app: Api, sim: GitHubSimulator, app_key: str
) -> None:
    for claims, message in _BAD_CLAIMS:
        with subtests.test(claims=claims, message=message):
            app.headers["Authorization"] = f"Bearer {assertion(sim.app_id, app_key, **claims)}"
            assert message in (await app.get("/app", status=401))["message"]


async def test_an_assertion_must_be_signed_by_the_app(app: Api, sim: GitHubSimulator) -> None:
    app.headers["Authorization"] = f"Bearer {assertion(sim.app_id, new_private_key())}"
    refused = await app.get("/app", status=401)
    assert refused["message"] == "A JSON web token could not be decoded"
    for value in ("a.b.c", "..", "e30.e30.e30", "ä.b.c"):
        app.headers["Authorization"] = f"Bearer {value}"
        await app.get("/app", status=401)


async def test_an_assertion_of_another_app_is_unknown(
    app: Api, sim: GitHubSimulator, app_key: str
) -> None:
    app.headers["Authorization"] = f"Bearer {assertion(sim.app_id + 2, app_key)}"
    assert (await app.get("/app", status=404))["message"] == "Integration not found"


async def test_only_the_app_manages_installations(root: Api, app: Api, repo: str) -> None:
    refused = await root.get("/app/installations", status=401)
    assert refused["message"] == "A JSON web token could not be decoded"
    await app.get(f"/repos/{repo}/issues", status=401)


async def test_a_token_can_do_only_what_it_was_minted_for(mint: Mint, root: Api, repo: str) -> None:
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    reader = await mint(permissions={"issues": "read"})
    await reader.get(f"/repos/{repo}/issues")
    refused = await reader.post(f"/repos/{repo}/issues/1/comments", {"body": "x"}, status=403)
    assert refused["message"] == "Resource not accessible by integration"
    assert refused["status"] == "403"
    await reader.get(f"/repos/{repo}/git/ref/heads/main", status=403)
    commenter = await mint(permissions={"issues": "write"})
    comment = await commenter.post(f"/repos/{repo}/issues/1/comments", {"body": "x"})
    assert comment["user"]["login"] == "issuesandbox[bot]"
    assert comment["user"]["type"] == "Bot"
    assert comment["performed_via_github_app"]["slug"] == "issuesandbox"


async def test_the_pull_request_permission_is_enough_on_pull_requests_only(
    mint: Mint, root: Api, admin: Api, repo: str
) -> None:
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    await admin.post(f"/repos/{repo}/push", {"branch": "b", "files": {"a": "1"}}, status=200)
    await root.post(f"/repos/{repo}/pulls", {"title": "P", "head": "b", "base": "main"})
    client = await mint(permissions={"pull_requests": "write"})
    await client.post(f"/repos/{repo}/issues/1/comments", {"body": "x"}, status=403)
    made = await client.post(f"/repos/{repo}/issues/2/comments", {"body": "x"})
    await client.call("PATCH", f"/repos/{repo}/issues/comments/{made['id']}", {"body": "y"})


async def test_a_token_cannot_exceed_its_installation(
    app: Api, admin: Api, installation: int, repo: str
) -> None:
    path = f"/app/installations/{installation}/access_tokens"
    for permissions in ({"workflows": "write"}, {"contents": "admin"}, {"issues": "all"}):
        refused = await app.post(path, {"permissions": permissions}, status=422)
        assert "permissions requested are not granted" in refused["message"]
    await admin.post("/repos", {"repository": "other/app"}, status=200)
    for body in ({"repositories": ["missing"]}, {"repository_ids": [1]}, {"repositories": []}):
        refused = await app.post(path, body, status=422)
        assert "at least one repository that does not exist" in refused["message"]


async def test_a_token_reaches_only_its_repositories(mint: Mint, admin: Api, repo: str) -> None:
    await admin.post("/repos", {"repository": "acme/two"}, status=200)
    one = await mint(repositories=["app"])
    assert (await one.get("/repos/acme/app"))["permissions"]["push"] is True
    reader = await mint(permissions={"contents": "read"})
    assert (await reader.get("/repos/acme/app"))["permissions"]["push"] is False
    await one.get("/repos/acme/two", status=404)
    listed = await one.get("/installation/repositories")
    assert [row["full_name"] for row in listed["repositories"]] == [repo]
    both = await mint()
    assert (await both.get("/installation/repositories"))["total_count"] == 2


async def test_tokens_expire_are_revoked_and_die_with_their_installation(
    mint: Mint, admin: Api, installation: int, clock: JumpingClock
) -> None:
    first, second, third = await mint(), await mint(), await mint()
    await first.call("DELETE", "/installation/token", status=204)
    await first.get("/installation/repositories", status=401)
    await admin.call("PATCH", f"/installations/{installation}", {"suspended": True})
    refused = await second.get("/installation/repositories", status=403)
    assert refused["message"] == "This installation has been suspended"
    await admin.call("PATCH", f"/installations/{installation}", {"suspended": False})
    await second.get("/installation/repositories")
    clock.ahead += timedelta(seconds=HOUR)
    await second.get("/installation/repositories", status=401)
    clock.ahead -= timedelta(seconds=HOUR)
    await admin.call("DELETE", f"/installations/{installation}", {})
    await third.get("/installation/repositories", status=401)


async def test_people_do_what_their_role_allows(
    person: Mint, admin: Api, root: Api, repo: str
) -> None:
    await root.post(f"/repos/{repo}/issues", {"title": "Bug"})
    stranger = await person("sam")
    await stranger.get(f"/repos/{repo}", status=404)
    reader = await person("rob", permission="read")
    issue = await reader.post(f"/repos/{repo}/issues", {"title": "Mine", "labels": ["agent"]})
    assert issue["labels"] == []
    await reader.call("PATCH", f"/repos/{repo}/issues/{issue['number']}", {"title": "My own"})
    await reader.call("PATCH", f"/repos/{repo}/issues/1", {"title": "Not mine"}, status=403)
    await reader.post(f"/repos/{repo}/issues/1/labels", {"labels": ["x"]}, status=403)
    await reader.get(f"/repos/{repo}/collaborators/rob/permission", status=403)
    await admin.call("PUT", f"/repos/{repo}/members/rob", {"permission": "write"})
    await reader.call("PATCH", f"/repos/{repo}/issues/1", {"title": "Allowed"})


@pytest.mark.parametrize("association", ["OWNER", "MEMBER", "CONTRIBUTOR", "NONE"])
async def test_associations_are_as_configured(
    admin: Api, root: Api, repo: str, association: str
) -> None:
    await admin.call("PUT", "/users/mia", {"association": association})
    await admin.post(f"/repos/{repo}/issues", {"title": "Bug", "as": "mia"}, status=200)
    assert (await root.get(f"/repos/{repo}/issues/1"))["author_association"] == association


async def test_associations_follow_from_roles_where_nothing_is_configured(
    admin: Api, root: Api, repo: str
) -> None:
    await admin.call("PUT", f"/repos/{repo}/members/col", {"permission": "write"})
    for number, (login, expected) in enumerate(
        [("acme", "OWNER"), ("col", "COLLABORATOR"), ("sam", "NONE")], start=1
    ):
        await admin.post(f"/repos/{repo}/issues", {"title": "Bug", "as": login}, status=200)
        shown = await root.get(f"/repos/{repo}/issues/{number}")
        assert shown["author_association"] == expected


_ROLES: list[Any] = [
    ("none", "none"),
    ("read", "read"),
    ("triage", "read"),
    ("write", "write"),
    ("admin", "admin"),
]


async def test_the_permission_of_a_user(
    subtests: pytest.Subtests, admin: Api, root: Api, repo: str
) -> None:
    for role, shown in _ROLES:
        with subtests.test(role=role, shown=shown):
            await admin.call("PUT", f"/repos/{repo}/members/mia", {"permission": role})
            answer = await root.get(f"/repos/{repo}/collaborators/mia/permission")
            assert (answer["permission"], answer["role_name"]) == (shown, role)


async def test_strangers_see_public_repositories_and_nothing_else(
    admin: Api, root: Api, repo: str
) -> None:
    nobody = Api(root.session, root.base)
    await admin.post("/repos", {"repository": "acme/open", "private": False}, status=200)
    await nobody.get("/repos/acme/open/issues")
    refused = await nobody.post("/repos/acme/open/issues", {"title": "x"}, status=401)
    assert refused == {
        "message": "Requires authentication",
        "documentation_url": "https://docs.github.com/rest",
        "status": "401",
    }
    assert (await nobody.get(f"/repos/{repo}", status=404))["message"] == "Not Found"


_BAD_CREDENTIALS: list[Any] = [
    "Bearer nonsense",
    "token ",
    "Basic !!!",
    "Basic eDp5",
    "Digest x",
    "garbage",
]


async def test_bad_credentials(subtests: pytest.Subtests, root: Api, repo: str) -> None:
    for header in _BAD_CREDENTIALS:
        with subtests.test(header=header):
            root.headers["Authorization"] = header
            assert (await root.get(f"/repos/{repo}", status=401))["message"] == "Bad credentials"


async def test_a_token_is_in_no_file_and_not_in_the_journal(
    mint: Mint, admin: Api, repo: str, sim: GitHubSimulator
) -> None:
    client = await mint()
    await client.get(f"/repos/{repo}")
    token = client.headers["Authorization"].split()[1]
    assert token not in str(await admin.get("/journal"))
    folder = sim.world.store.folder.path
    holding = [
        path for path in folder.rglob("*") if path.is_file() and token.encode() in path.read_bytes()
    ]
    assert holding == []
    assert (folder / "app.private-key.pem").stat().st_mode & 0o077 == 0
    assert (folder / "github.sqlite3").stat().st_mode & 0o077 == 0
