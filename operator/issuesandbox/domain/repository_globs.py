"""Which repositories a glob means: the same for settings and for the webhook's policy."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(glob: str, repository: str) -> bool:
    """Tell whether a glob means a repository, whatever the case; one without a slash names owners.

    Part by part: `acme*` must not reach into another owner's name.
    """
    wanted = glob.lower().split("/") if "/" in glob else [glob.lower(), "*"]
    parts = repository.lower().split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))
