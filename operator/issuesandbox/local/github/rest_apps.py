"""REST calls of the App: itself, its installations, their tokens, and its webhook deliveries.

Translates between HTTP and the store; how tokens are made and events sent is not known here.
"""

from __future__ import annotations

from dataclasses import replace

from issuesandbox.local.github.answers import (
    Answer,
    GitHubError,
    invalid,
    moment,
    not_found,
    page_size,
    paged,
)
from issuesandbox.local.github.bodies import Body
from issuesandbox.local.github.calls import Call, Identity, Route
from issuesandbox.local.github.journal import note_effect
from issuesandbox.local.github.model import (
    Account,
    App,
    GlobalId,
    Installation,
    Repository,
)
from issuesandbox.local.github.tokens import Scope

_LEVELS = {"read": 1, "write": 2, "admin": 3}


def _covered(call: Call, installation: Installation) -> list[Repository]:
    chosen = installation.repository_ids
    return [
        row
        for row in call.store.repositories
        if row.owner_id == installation.account_id and (chosen is None or row.id in chosen)
    ]


def _selection(installation: Installation, limit: tuple[GlobalId, ...] | None) -> str:
    return "all" if limit is None and installation.repository_ids is None else "selected"


def _installation(call: Call) -> Installation:
    found = call.store.installations.get(int(call.part("installation_id")))
    if found is None:
        raise not_found()
    return found


def _token_permissions(body: Body, installation: Installation) -> dict[str, str]:
    wanted = body.mapping("permissions")
    if wanted is None:
        return dict(installation.permissions)
    for scope, level in wanted.items():
        granted = _LEVELS.get(installation.permissions.get(scope, ""), 0)
        if level not in _LEVELS or _LEVELS[level] > granted:
            raise GitHubError(
                422, "The permissions requested are not granted to this installation."
            )
    return {"metadata": "read", **wanted}


def _token_repositories(
    call: Call, body: Body, installation: Installation
) -> list[Repository] | None:
    names, idents = body.texts("repositories"), body.numbers("repository_ids")
    if names is None and idents is None:
        return None
    available = _covered(call, installation)
    by_name = {row.name.lower(): row for row in available}
    by_id: dict[int, Repository] = {row.id: row for row in available}
    found = [by_name.get(name.lower()) for name in names or ()]
    found += [by_id.get(ident) for ident in idents or ()]
    if not found or None in found:
        raise GitHubError(
            422,
            "There is at least one repository that does not exist or is not accessible "
            "to the parent installation.",
        )
    return [row for row in found if row is not None]


async def get_app(call: Call) -> Answer:
    """Show the App itself."""
    count = len(list(call.store.installations))
    return Answer(200, {**call.views.app(call.store.app()), "installations_count": count})


async def list_installations(call: Call) -> Answer:
    """List where the App is installed."""
    return call.page(list(call.store.installations), call.views.installation)


async def get_installation(call: Call) -> Answer:
    """Show one installation."""
    return Answer(200, call.views.installation(_installation(call)))


async def create_token(call: Call) -> Answer:
    """Mint an installation token, limited as asked."""
    installation = _installation(call)
    if installation.suspended_at is not None:
        raise GitHubError(403, "This installation has been suspended")
    body = await call.body("InstallationToken")
    permissions = _token_permissions(body, installation)
    repositories = _token_repositories(call, body, installation)
    ids = None if repositories is None else tuple(row.id for row in repositories)
    value, token = call.world.tokens.for_installation(installation, Scope(permissions, ids))
    note_effect("token.created", installation=installation.id, permissions=permissions)
    answer: dict[str, object] = {
        "token": value,
        "expires_at": moment(token.expires_at or token.created_at),
        "permissions": permissions,
        "repository_selection": _selection(installation, ids),
    }
    if repositories is not None:
        answer["repositories"] = [call.views.repository(row) for row in repositories]
    return Answer(201, answer)


async def revoke_token(call: Call) -> Answer:
    """End the installation token that the caller uses."""
    token = call.caller.token
    if token is not None:
        call.store.tokens.delete(token.id)
        note_effect("token.revoked", installation=token.installation_id)
    return Answer(204)


async def list_reachable(call: Call) -> Answer:
    """List the repositories that the token extends to."""
    installation, token = call.caller.installation, call.caller.token
    assert installation is not None
    assert token is not None
    limit = token.repository_ids
    rows = [row for row in _covered(call, installation) if limit is None or row.id in limit]
    wrapped = {
        "total_count": len(rows),
        "repository_selection": _selection(installation, limit),
    }
    return paged(
        call.url, rows, call.views.repository, lambda shown: {**wrapped, "repositories": shown}
    )


async def repository_installation(call: Call) -> Answer:
    """Tell which installation covers a repository."""
    found = call.named_repository
    installation = None if found is None else call.world.access.installation_of(found)
    return _shown_installation(call, installation)


async def account_installation(call: Call) -> Answer:
    """Tell which installation an account has."""
    account: Account | None = call.store.account(call.part("login"))
    return _shown_installation(
        call, None if account is None else call.store.installations.first(account.id)
    )


def _shown_installation(call: Call, installation: Installation | None) -> Answer:
    if installation is None:
        raise not_found()
    return Answer(200, call.views.installation(installation))


def _hook_config(app: App) -> dict[str, str]:
    shown = {"content_type": "json", "insecure_ssl": "0"}
    if app.webhook_urls:
        shown["url"] = app.webhook_urls[0]
    if app.webhook_secret:
        shown |= {"secret": "********"}
    return shown


async def get_hook_config(call: Call) -> Answer:
    """Show where the App's events go."""
    return Answer(200, _hook_config(call.store.app()))


async def update_hook_config(call: Call) -> Answer:
    """Send the App's events elsewhere."""
    body, app = await call.body("HookConfig"), call.store.app()
    url, secret = body.text("url"), body.text("secret")
    app = call.store.apps.put(
        replace(
            app,
            webhook_urls=(url,) if url else app.webhook_urls,
            webhook_secret=app.webhook_secret if secret is None else secret,
        )
    )
    note_effect("hook.updated")
    return Answer(200, _hook_config(app))


async def list_deliveries(call: Call) -> Answer:
    """List deliveries, newest first, by cursor."""
    size, cursor = page_size(call.url), call.query.get("cursor", "0")
    if not (cursor.isascii() and cursor.isdigit()):
        raise invalid("HookDelivery", "cursor")
    good = {"success": True, "failure": False}.get(call.query.get("status", ""))
    log = call.world.webhooks.log
    rows = log.newest(int(cursor), size, good)
    headers = {}
    if len(rows) == size and log.newest(rows[-1]["id"], 1, good):
        following = call.url.update_query(per_page=size, cursor=rows[-1]["id"])
        headers["Link"] = f'<{following}>; rel="next"'
    return Answer(200, rows, headers)


async def get_delivery(call: Call) -> Answer:
    """Show one delivery with what was sent and answered."""
    shown = call.world.webhooks.log.full(int(call.part("delivery_id")))
    if shown is None:
        raise not_found()
    return Answer(200, shown)


async def redeliver(call: Call) -> Answer:
    """Send a delivery once more, with the same guid."""
    message = call.world.webhooks.log.message(int(call.part("delivery_id")))
    if message is None:
        raise not_found()
    note_effect("delivery.redelivered", guid=message.guid)
    call.world.webhooks.redeliver(message)
    return Answer(202, {})


_APP, _TOKEN = Identity.APP, Identity.INSTALLATION
_INSTALLATION = "/app/installations/{installation_id:[0-9]+}"
_DELIVERY = "/app/hook/deliveries/{delivery_id:[0-9]+}"
ROUTES = [
    Route("GET", "/app", "apps/get-authenticated", _APP, get_app),
    Route("GET", "/app/installations", "apps/list-installations", _APP, list_installations),
    Route("GET", _INSTALLATION, "apps/get-installation", _APP, get_installation),
    Route(
        "POST",
        f"{_INSTALLATION}/access_tokens",
        "apps/create-installation-access-token",
        _APP,
        create_token,
    ),
    Route(
        "DELETE",
        "/installation/token",
        "apps/revoke-installation-access-token",
        _TOKEN,
        revoke_token,
    ),
    Route(
        "GET",
        "/installation/repositories",
        "apps/list-repos-accessible-to-installation",
        _TOKEN,
        list_reachable,
    ),
    Route(
        "GET",
        "/repos/{owner}/{repo}/installation",
        "apps/get-repo-installation",
        _APP,
        repository_installation,
    ),
    Route(
        "GET", "/orgs/{login}/installation", "apps/get-org-installation", _APP, account_installation
    ),
    Route(
        "GET",
        "/users/{login}/installation",
        "apps/get-user-installation",
        _APP,
        account_installation,
    ),
    Route("GET", "/app/hook/config", "apps/get-webhook-config-for-app", _APP, get_hook_config),
    Route(
        "PATCH", "/app/hook/config", "apps/update-webhook-config-for-app", _APP, update_hook_config
    ),
    Route("GET", "/app/hook/deliveries", "apps/list-webhook-deliveries", _APP, list_deliveries),
    Route("GET", _DELIVERY, "apps/get-webhook-delivery", _APP, get_delivery),
    Route("POST", f"{_DELIVERY}/attempts", "apps/redeliver-webhook-delivery", _APP, redeliver),
]
