"""The plugin in a namespace of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from plugin_process import Plugin

from issuesandbox.local.control_plane.access import Access


@pytest.fixture
def plugin(control_plane: Access, crd: None, namespace: str, tmp_path: Path) -> Plugin:
    kubeconfig = yaml.safe_load(control_plane.kubeconfig.read_text())
    kubeconfig["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    return Plugin(control_plane, namespace, path)
