"""A control plane that is ready answers its users as a real cluster does."""

from __future__ import annotations

import subprocess
from pathlib import Path

from issuesandbox.local.control_plane.access import Access


def as_service_account(
    control_plane: Access, kubeconfig: Path, *args: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [control_plane.kubectl_binary, "--kubeconfig", kubeconfig, *args],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_service_account_may_do_what_its_role_says_and_no_more(
    control_plane: Access, namespace: str, tmp_path: Path
) -> None:
    control_plane.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "reader", tmp_path)
    refused = as_service_account(control_plane, kubeconfig, "get", "configmaps")
    assert refused.returncode == 1
    assert "forbidden" in refused.stderr.lower()

    control_plane.kubectl(
        *("create", "role", "reader", "-n", namespace, "--verb=get,list", "--resource=configmaps")
    )
    control_plane.kubectl(
        *("create", "rolebinding", "reader", "-n", namespace, "--role=reader"),
        f"--serviceaccount={namespace}:reader",
    )
    assert as_service_account(control_plane, kubeconfig, "get", "configmaps").returncode == 0
    write = ("create", "configmap", "x")
    assert "forbidden" in as_service_account(control_plane, kubeconfig, *write).stderr.lower()


def test_a_kubeconfig_is_for_its_owner_alone(
    control_plane: Access, namespace: str, tmp_path: Path
) -> None:
    control_plane.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    written = control_plane.service_account_kubeconfig(namespace, "reader", tmp_path)
    assert [path.stat().st_mode & 0o777 for path in (control_plane.kubeconfig, written)] == [
        0o600
    ] * 2
    assert control_plane.token not in repr(control_plane)


async def test_each_test_has_a_namespace_of_its_own(control_plane: Access, namespace: str) -> None:
    found = control_plane.kubectl("get", "configmaps", "-n", namespace, "-o", "name").stdout
    assert found == ""


def test_a_deleted_namespace_goes_away_with_all_in_it(
    control_plane: Access, namespace: str, controller_manager: None
) -> None:
    control_plane.kubectl("create", "configmap", "inside", "-n", namespace)
    control_plane.kubectl("delete", "namespace", namespace, "--wait", "--timeout=60s")
    left = control_plane.kubectl("get", "namespace", namespace, check=False)
    assert "NotFound" in left.stderr
