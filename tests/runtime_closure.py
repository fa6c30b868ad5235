"""What a plain `pip install` of the wheel brings along, taken from the packages installed here.

Tests of the wheel and of the image use it, so that a dependency nobody declared is missing there.
"""

from __future__ import annotations

from collections.abc import Iterable
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def link_runtime(wheel: Path, folder: Path) -> None:
    """Link what a wheel needs without its extras into a folder of packages."""
    with ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        declared = HeaderParser().parsestr(archive.read(name).decode())
    requirements = [str(each) for each in declared.get_all("Requires-Dist", [])]
    for name in closure(requirements):
        _link(metadata.distribution(name), folder)


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of all packages that requirements lead to."""
    found: set[tuple[str, str]] = set()
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        wanted, extra = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        for chosen in {"", *wanted.extras}:
            key = (canonicalize_name(wanted.name), chosen)
            if key not in found:
                found.add(key)
                needs = metadata.requires(wanted.name) or []
                waiting += [(Requirement(each), chosen) for each in needs]
    return {name for name, _ in found}


def _link(package: metadata.Distribution, folder: Path) -> None:
    """Link file by file: packages of one name space lie in one folder."""
    for file in package.files or ():
        if not {"..", "__pycache__"} & {*file.parts}:
            place = folder / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(Path(str(package.locate_file(file))))
