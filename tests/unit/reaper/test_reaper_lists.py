"""A list of resources that breaks off proves nothing; only its first page can tell of none."""

from __future__ import annotations

import pytest
from aiohttp import web
from tests.fakes.api_server import api_server

from issuesandbox.adapters.kube.resources import KubeResources
from issuesandbox.clock import SystemClock
from issuesandbox.ports.errors import CallError, NotFound, Unavailable

PAGE = {"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a", "uid": "u"}}]}


@pytest.mark.parametrize(
    ("pages", "kind"),
    [([404], NotFound), ([200, 410], Unavailable), ([200, 404], Unavailable)],
    ids=["no definition", "too old to go on", "gone meanwhile"],
)
async def test_a_list_that_cannot_go_on_says_nothing(
    pages: list[int], kind: type[CallError]
) -> None:
    # R80
    answers = iter(pages)

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(PAGE, status=next(answers))

    async with api_server(answer) as requests:
        resources = KubeResources(requests, SystemClock(), reporter="test")
        with pytest.raises(CallError) as caught:
            [chunk async for chunk in resources.uids(())]
    assert type(caught.value) is kind
