"""A namespace that goes takes its resources and their sandboxes along, and nothing is stuck."""

from __future__ import annotations

from operator_stage import Stage
from plain_api import create_namespace


async def test_deleting_the_namespace_deletes_the_sandboxes(
    stage: Stage, controller_manager: None
) -> None:
    # The operator lives elsewhere: its leases must not go with the namespace.
    home = f"{stage.namespace}-home"
    create_namespace(stage.access, home)
    stage.grant_rights(home)
    await stage.start_operator(home)
    for number in (1, 2):
        await stage.apply(f"issue-{number}", number)
    for number in (1, 2):
        await stage.until_phase(f"issue-{number}", "Idle")
    await stage.api("DELETE", f"/api/v1/namespaces/{stage.namespace}")

    async def gone() -> bool:
        return not await stage.api("GET", f"/api/v1/namespaces/{stage.namespace}", missing={})

    await stage.until(gone, "the namespace to be gone", 60)
    assert await stage.sandboxes() == []
