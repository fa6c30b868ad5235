"""The Daytona and the GitHub outside a world, as its parts are told of them.

Simulated ones come with the world; with `--real` the environment of the caller names real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from issuesandbox.local.world.errors import WorldError

_PREFIXES = ("DAYTONA_", "GITHUB_")
_WEBHOOK = "GITHUB_WEBHOOK_SECRET"
_MODEL_KEY = "ANTHROPIC_API_KEY"


@dataclass(frozen=True)
class Outside:
    """What the operator and the webhook adapter get to know, each its own part of it."""

    settings: Mapping[str, str] = field(repr=False)
    model_key: str = field(repr=False)
    real: bool = False

    def for_operator(self) -> dict[str, str]:
        """Return what the operator needs: everything but the secret of the webhook."""
        return {
            name: value for name, value in self.settings.items() if not name.startswith(_WEBHOOK)
        }

    def for_webhook(self) -> dict[str, str]:
        """Return what the webhook adapter needs: GitHub alone."""
        return {name: value for name, value in self.settings.items() if name.startswith("GITHUB_")}


def real_outside(environment: Mapping[str, str]) -> Outside:
    """Read the real services from an environment; everything that is missing is named at once."""

    def has(name: str) -> bool:
        return bool(environment.get(name) or environment.get(f"{name}_FILE"))

    missing = [name for name in ("DAYTONA_API_KEY", _WEBHOOK) if not has(name)]
    app = bool(environment.get("GITHUB_APP_ID")) and has("GITHUB_APP_PRIVATE_KEY")
    if not has("GITHUB_TOKEN") and not app:
        missing.append("GITHUB_TOKEN (or GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY)")
    if not environment.get(_MODEL_KEY):
        missing.append(_MODEL_KEY)
    if missing:
        raise WorldError(
            "--real needs these in the environment, and they are not there:\n"
            + "\n".join(f"  - {each}" for each in missing)
        )
    settings = {
        name: value for name, value in environment.items() if name.startswith(_PREFIXES) and value
    }
    return Outside(settings, environment[_MODEL_KEY], real=True)
