"""The names of the layers of isolation, and the check for required ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ck_pro.exceptions import ConfigError, IsolationError

LAYERS = (
    "process",
    "rlimits",
    "namespaces",
    "mounts",
    "landlock",
    "seccomp",
    "capabilities",
    "network",
    "cgroup",
)
"""The layers of isolation, independent of each other."""


def required_layers(wanted: str | Collection[str], *, network: bool) -> set[str]:
    """Return the layers that `require_isolation` requires.

    Args:
        wanted: "full", or names from `LAYERS`.
        network: whether the network is open; "full" does not include the layer `network` then.

    Raises:
        ConfigError: a name is unknown.
    """
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    if "full" in names:
        names = {*names, *LAYERS} - {"full", *(["network"] if network else [])}
    if not names <= set(LAYERS):
        unknown = ", ".join(sorted(names - set(LAYERS)))
        known = ", ".join(LAYERS)
        raise ConfigError(f'require_isolation: unknown {unknown}; use "full" or some of: {known}')
    return names


def check_isolation(required: Collection[str], isolation: Mapping[str, Any]) -> None:
    """Check that the required layers are active in `CodeExecutor.isolation`.

    Raises:
        IsolationError: a required layer is missing; the message gives the reason.
    """
    lacking = sorted(set(required) - set(isolation["active"]))
    if lacking:
        reasons = "; ".join(f"{name} ({isolation['missing'].get(name)})" for name in lacking)
        raise IsolationError(f"required layers of isolation are missing: {reasons}")
