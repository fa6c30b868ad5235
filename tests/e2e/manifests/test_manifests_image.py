"""The image's file system, put together without Docker: it runs as nobody on a read-only tree."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from operator_stage import QUICK, Stage
from tests.runtime_closure import link_runtime

from issuesandbox.local.control_plane.ports import LOOPBACK, free_ports
from issuesandbox.local.daytona.config import DEFAULT_KEY
from issuesandbox.local.processes import spawn
from issuesandbox.local.world.layout import SERVICE_ACCOUNT, manifests

ROOT = Path(__file__).parents[3]
NOBODY = 65532
DOCKERFILE = (ROOT / "operator" / "Dockerfile").read_text()
IGNORED = shutil.ignore_patterns("__pycache__", "test", "tests", "idlelib", "*.a", "site-packages")


def container() -> dict[str, object]:
    deployment = yaml.safe_load((manifests() / "base" / "deployment.yaml").read_text())
    found: dict[str, object] = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter, the wheel and what it needs, as the Dockerfile puts them together.

    Under /var/tmp, where somebody else than its owner may read it.
    """
    root = Path("/var/tmp") / f"issuesandbox-image-{os.getpid()}"
    built = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*build, "-w", str(built), str(ROOT)], check=True)
    (wheel,) = built.glob("issuesandbox-*.whl")
    base = Path(sys.base_prefix)
    library = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}"
    try:
        shutil.copytree(base / library, root / library, ignore=IGNORED, symlinks=True)
        (root / "bin").mkdir()
        shutil.copy2(Path(sys.executable).resolve(), root / "bin" / "python3")
        for shared in (base / "lib").glob("libpython*.so*"):
            shutil.copy2(shared, root / "lib")
        packages = root / library / "site-packages"
        packages.mkdir()
        link_runtime(wheel, packages)
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        subprocess.run([*install, str(packages), str(wheel)], check=True)
        _make_read_only(root)
        yield root
    finally:
        _remove(root)


def _make_read_only(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222 | 0o444 | (0o111 if path.is_dir() else 0))


def _remove(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
    shutil.rmtree(root, ignore_errors=True)


def test_the_manifests_and_the_image_agree_on_user_port_and_command() -> None:
    assert f"USER {NOBODY}:{NOBODY}" in DOCKERFILE
    assert 'ENTRYPOINT ["issuesandbox"]' in DOCKERFILE
    shown = container()
    assert shown["args"] == ["run"]
    assert isinstance(shown["ports"], list)
    assert f"EXPOSE {shown['ports'][0]['containerPort']}" in DOCKERFILE
    assert "PYTHONDONTWRITEBYTECODE=1" in DOCKERFILE
    assert "PYTHONSAFEPATH=1" in DOCKERFILE


def test_everything_that_the_image_copies_exists() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.M):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), f"the Dockerfile copies {source}"
            assert source in allowed, f".dockerignore hides {source}"


@pytest.fixture
def mounted(stage: Stage) -> Iterator[Path]:
    """What a pod gets by its volumes, where its user can read it and nobody else."""
    home = Path("/var/tmp") / f"issuesandbox-pod-{os.getpid()}"
    home.mkdir(mode=0o755)
    kubeconfig = stage.access.service_account_kubeconfig(
        stage.namespace, SERVICE_ACCOUNT, stage.folder
    )
    for name, text in (("kubeconfig", kubeconfig.read_text()), ("api-key", DEFAULT_KEY)):
        (home / name).write_text(text)
        (home / name).chmod(0o440)
        os.chown(home / name, 0, NOBODY)
    yield home
    shutil.rmtree(home)


def script_of(image: Path) -> Path:
    """Return what the image's entry point is."""
    (script,) = image.glob("lib/python*/site-packages/bin/issuesandbox")
    return script


def times(tree: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mtime_ns for path in tree.rglob("*")}


def user_of(pid: int) -> int:
    found = re.search(r"^Uid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert found is not None
    return int(found[1])


@pytest.mark.timeout(300)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_the_entry_points_run_as_nobody_on_a_read_only_tree(
    stage: Stage, image: Path, mounted: Path
) -> None:
    port, door = free_ports(2)
    before = times(image)
    become = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    program = ["setpriv", *become, str(image / "bin" / "python3"), str(script_of(image))]
    environment = {
        "PYTHONHOME": str(image),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(image / "lib"),
        "HOME": "/nonexistent",
        "KUBECONFIG": str(mounted / "kubeconfig"),
        "DAYTONA_API_KEY_FILE": str(mounted / "api-key"),
        "DAYTONA_API_URL": stage.simulator.url,
        "ISSUESANDBOX_INSTALLATION": stage.namespace,
        "ISSUESANDBOX_WATCH_NAMESPACES": stage.namespace,
        "ISSUESANDBOX_HTTP_HOST": LOOPBACK,
        "ISSUESANDBOX_HTTP_PORT": str(port),
        "ISSUESANDBOX_TIMINGS": json.dumps(QUICK),
    }
    log = stage.folder / "logs" / "image.log"
    outside: dict[str, Any] = {"leash": stage.leash, "cwd": Path("/")}
    child = spawn("operator", [*program, "run"], log=log, env=environment, **outside)
    stage.operators.append(child)
    adapter = spawn(
        "webhook",
        [*program, "webhook"],
        log=stage.folder / "logs" / "image-webhook.log",
        env={
            **environment,
            "ISSUESANDBOX_HTTP_PORT": str(door),
            "ISSUESANDBOX_WEBHOOK_DRAIN": "0s",
            "GITHUB_WEBHOOK_SECRET": "the webhook secret",
            "GITHUB_TOKEN": "github_pat_of_nobody",
            "GITHUB_API_URL": f"http://{LOOPBACK}:1",
        },
        **outside,
    )
    stage.operators.append(adapter)
    await stage.apply("one")
    await stage.until_phase("one", "Idle", seconds=60)

    async def open_door() -> bool:
        assert adapter.returncode is None, f"the adapter ended: {adapter.last_lines(20)}"
        try:
            async with stage.http.get(f"http://{LOOPBACK}:{door}/healthz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    await stage.until(open_door, "the adapter to start", seconds=60)
    assert user_of(child.pid) == NOBODY
    assert times(image) == before, "something was written into the image"
    await stage.delete("one")
    await stage.until_gone("one")
