"""Files in a sandbox: `files/...`.

Relative paths start at the home folder. What is outside of the sandbox's folder can be read, as
its processes can, but never written: the rest of the machine is not the sandbox's.
"""

from __future__ import annotations

import asyncio
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import BodyPartReader, MultipartWriter, hdrs, web

from issuesandbox.local.daytona.errors import ToolboxError
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.machine import Machine
from issuesandbox.local.daytona.toolbox_body import query_text, strings
from issuesandbox.local.daytona.toolbox_proxy import ToolboxProxy

_CHUNK = 1 << 16


class FileCalls:
    """Handlers of the calls that read and write files."""

    def __init__(self, proxy: ToolboxProxy, gate: Gate) -> None:
        self._proxy = proxy
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        base, wrap = "/toolbox/{reference}", self._gate.wrap
        files = f"{base}/files"
        return [
            web.get(f"{base}/user-home-dir", wrap("toolbox.home_dir", self._home)),
            web.get(f"{base}/work-dir", wrap("toolbox.work_dir", self._home)),
            web.get(files, wrap("toolbox.files.list", self._list)),
            web.delete(files, wrap("toolbox.files.delete", self._delete)),
            web.get(f"{files}/info", wrap("toolbox.files.info", self._info)),
            web.post(f"{files}/folder", wrap("toolbox.files.folder", self._folder)),
            web.post(f"{files}/move", wrap("toolbox.files.move", self._move)),
            web.post(f"{files}/permissions", wrap("toolbox.files.permissions", self._permissions)),
            web.get(f"{files}/download", wrap("toolbox.files.download", self._download)),
            web.post(f"{files}/bulk-download", wrap("toolbox.files.download", self._downloads)),
            web.post(f"{files}/bulk-upload", wrap("toolbox.files.upload", self._uploads)),
        ]

    async def _home(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        return answer({"dir": str(machine.home)})

    async def _list(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        folder = machine.path(call.request.query.get("path"))
        depth = _depth(call.request)
        return answer(await asyncio.to_thread(_guarded, folder, _entries, folder, depth))

    async def _info(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        path = machine.path(query_text(call.request, "path"))
        return answer(_guarded(path, _entry, path))

    async def _folder(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        path = _writable(machine, query_text(call.request, "path"))
        mode = _mode(call.request.query.get("mode") or "755")
        _guarded(path, _make_folder, path, mode)
        call.effect = "written"
        return web.Response(status=201)

    async def _delete(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        path = _owned(machine, query_text(call.request, "path"))
        recursive = call.request.query.get("recursive") == "true"
        await asyncio.to_thread(_guarded, path, _remove, path, recursive)
        call.effect = "deleted"
        return web.Response(status=204)

    async def _move(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        source = _owned(machine, query_text(call.request, "source"))
        target = _owned(machine, query_text(call.request, "destination"))
        if target.exists():
            raise ToolboxError(409, f"destination already exists: {target}")
        _guarded(source, source.rename, target)
        call.effect = "moved"
        return web.Response(status=200)

    async def _permissions(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        path = _writable(machine, query_text(call.request, "path"))
        mode = call.request.query.get("mode")
        if mode:
            _guarded(path, path.chmod, _mode(mode))
        call.effect = "written"
        return web.Response(status=200)

    async def _download(self, call: Call) -> web.StreamResponse:
        machine = await self._proxy.machine(call)
        path = machine.path(query_text(call.request, "path"))
        _guarded(path, _check_file, path)
        return web.FileResponse(
            path, headers={hdrs.CONTENT_TYPE: "application/octet-stream"}, chunk_size=_CHUNK
        )

    async def _downloads(self, call: Call) -> web.StreamResponse:
        machine = await self._proxy.machine(call)
        paths = strings(await call.json(), "paths")
        if not paths:
            raise ToolboxError(400, "request body must be {paths: [ ... ]} and non-empty")
        answer_parts = MultipartWriter("form-data")
        for given in paths:
            path = machine.path(given)
            try:
                _guarded(path, _check_file, path)
            except ToolboxError as error:
                # One missing file does not fail the others: it is a part named `error`.
                part = answer_parts.append_json(error.envelope(call.request.path, "POST", ""))
                part.set_content_disposition(
                    "form-data", quote_fields=False, name="error", filename=given
                )
            else:
                part = answer_parts.append(path.open("rb"))
                part.set_content_disposition(
                    "form-data", quote_fields=False, name="file", filename=given
                )
        return web.Response(body=answer_parts)

    async def _uploads(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        if not call.request.content_type.startswith("multipart/"):
            raise ToolboxError(400, "request Content-Type isn't multipart/form-data")
        try:
            written, errors = await _store_parts(machine, call.request)
        except ValueError as error:
            raise ToolboxError(400, f"malformed multipart body: {error}") from error
        call.effect = "written" if written else None
        return answer({"errors": errors, "files": written}, 400 if errors else 200)


async def _store_parts(
    machine: Machine, request: web.Request
) -> tuple[list[dict[str, Any]], list[str]]:
    written: list[dict[str, Any]] = []
    errors: list[str] = []
    target: str | None = None
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader) or part.name is None:
            continue
        if part.name.endswith(".path"):
            target = await part.text()
        elif part.name.endswith(".file"):
            try:
                written.append(await _store(machine, target, part))
            except ToolboxError as error:
                errors.append(error.message)
                await part.release()
            target = None
    return written, errors


async def _store(machine: Machine, target: str | None, part: BodyPartReader) -> dict[str, Any]:
    if not target:
        raise ToolboxError(400, "the path of a file must come before its content")
    path = _writable(machine, target)
    _guarded(path, _make_folder, path.parent, 0o755)
    size = 0
    try:
        with path.open("wb") as file:
            while chunk := await part.read_chunk(_CHUNK):
                file.write(chunk)
                size += len(chunk)
    except OSError as error:
        raise _as_toolbox_error(path, error) from error
    return {"path": str(path), "bytes": size}


def _owned(machine: Machine, given: str) -> Path:
    """Return the path of an entry of the sandbox's folder; where a link leads does not matter."""
    path = machine.path(given)
    if path.name in ("", "..") or not machine.owns(path.parent):
        raise ToolboxError(
            403, f"{given} is outside of the sandbox's folder", code="FILE_ACCESS_DENIED"
        )
    return path


def _writable(machine: Machine, given: str) -> Path:
    """Return the path of something to write to: links may not lead out, pipes would block."""
    path = _owned(machine, given)
    if not machine.owns(path):
        raise ToolboxError(403, f"{given} leads out of the sandbox", code="FILE_ACCESS_DENIED")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ToolboxError(400, f"not a regular file: {given}")
    return path


def _guarded(path: Path, work: Any, *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except (OSError, ValueError) as error:
        raise _as_toolbox_error(path, error) from error


def _as_toolbox_error(path: Path, error: Exception) -> ToolboxError:
    if isinstance(error, FileNotFoundError):
        return ToolboxError(404, f"file not found: {path}", code="FILE_NOT_FOUND")
    if isinstance(error, PermissionError):
        return ToolboxError(403, f"access denied: {path}", code="FILE_ACCESS_DENIED")
    if isinstance(error, OSError):
        return ToolboxError(400, f"{error.strerror}: {path}")
    return ToolboxError(400, "invalid path", code="INVALID_FILE_PATH")


def _entries(folder: Path, depth: int) -> list[dict[str, Any]]:
    entries = []
    for path in sorted(folder.iterdir()):
        entries.append(_entry(path))
        if depth > 1 and path.is_dir() and not path.is_symlink():
            entries += _entries(path, depth - 1)
    return entries


def _entry(path: Path) -> dict[str, Any]:
    found = path.lstat() if path.is_symlink() and not path.exists() else path.stat()
    modified = datetime.fromtimestamp(found.st_mtime, UTC)
    return {
        "name": path.name,
        "path": str(path),
        "isDir": stat.S_ISDIR(found.st_mode),
        "size": found.st_size,
        "modTime": str(modified),
        "modifiedAt": modified.isoformat(),
        "mode": stat.filemode(found.st_mode),
        "permissions": f"{stat.S_IMODE(found.st_mode):04o}",
        "owner": str(found.st_uid),
        "group": str(found.st_gid),
    }


def _make_folder(path: Path, mode: int) -> None:
    path.mkdir(mode=mode, parents=True, exist_ok=True)


def _remove(path: Path, recursive: bool) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink()
    elif recursive:
        shutil.rmtree(path)
    else:
        raise ToolboxError(400, "cannot delete directory without recursive flag")


def _check_file(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ToolboxError(400, f"not a regular file: {path}")
    with path.open("rb"):
        return


def _depth(request: web.Request) -> int:
    text = request.query.get("depth") or "1"
    if not text.isdecimal() or int(text) < 1:
        raise ToolboxError(400, "depth must be a positive integer")
    return int(text)


def _mode(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError as error:
        raise ToolboxError(400, "invalid mode format") from error
