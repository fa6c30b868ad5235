"""A state folder is taken as it was left, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from issuesandbox.local.control_plane.cluster import check_kubeconfig
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.state import StateFolder


async def test_its_secrets_stay_the_same_and_are_for_the_owner_alone(tmp_path: Path) -> None:
    first = await StateFolder.open(tmp_path)
    token, key = first.admin_token, first.signing_key.read_bytes()
    first.close()
    second = await StateFolder.open(tmp_path)
    assert (second.admin_token, second.signing_key.read_bytes()) == (token, key)
    assert {path.stat().st_mode & 0o777 for path in (second.tokens, second.signing_key)} == {0o600}
    second.close()


async def test_a_start_killed_before_its_stamp_is_no_damage(tmp_path: Path) -> None:
    (await StateFolder.open(tmp_path)).close()
    (tmp_path / "state.json").rename(tmp_path / ".state.json.new")
    (tmp_path / "logs").rmdir()
    (tmp_path / "tokens.csv").unlink()
    folder = await StateFolder.open(tmp_path)
    assert len(folder.admin_token) == 64
    folder.close()


@pytest.mark.parametrize("name", ["state.json", "service-account.key", "tokens.csv"])
@pytest.mark.parametrize("damage", [None, b"", b"\xff\0garbage"])
async def test_a_damaged_folder_is_refused_and_unlocked(
    tmp_path: Path, name: str, damage: bytes | None
) -> None:
    (await StateFolder.open(tmp_path)).close()
    file = tmp_path / name
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    for _ in range(2):
        with pytest.raises(ControlPlaneError, match=r"damaged or from|not a control plane's"):
            await StateFolder.open(tmp_path)


async def test_a_folder_is_open_once(tmp_path: Path) -> None:
    folder = await StateFolder.open(tmp_path)
    with pytest.raises(
        ControlPlaneError, match=rf"another control plane \(process {os.getpid()}\)"
    ):
        await StateFolder.open(tmp_path)
    folder.close()


@pytest.mark.parametrize("text", ["", "a: [", "just words", "clusters: 5", "\0"])
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ControlPlaneError, match="leads to no usable cluster") as caught:
        check_kubeconfig(tmp_path / "config")
    assert "\n" not in str(caught.value)
