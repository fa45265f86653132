"""The layers of isolation by name, and what to do where one is required that cannot be had."""

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
"""The layers of isolation, each tried on its own."""


def required_layers(wanted: str | Collection[str], *, network: bool) -> set[str]:
    """The layers that `require_isolation` means.

    Args:
        wanted: "full", or names out of `LAYERS`.
        network: the network is open, which then is no lack.

    Raises:
        ConfigError: a name is none of them.
    """
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    if "full" in names:
        names = {*names, *LAYERS} - {"full", *(["network"] if network else [])}
    if not names <= set(LAYERS):
        unknown = ", ".join(sorted(names - set(LAYERS)))
        raise ConfigError(f'require_isolation: unknown {unknown}; "full" or: {", ".join(LAYERS)}')
    return names


def check_isolation(required: Collection[str], isolation: Mapping[str, Any]) -> None:
    """Compare with what there is: `CodeExecutor.isolation`.

    Raises:
        IsolationError: a required layer is missing; the message says why.
    """
    lacking = sorted(set(required) - set(isolation["active"]))
    if lacking:
        reasons = "; ".join(f"{name} ({isolation['missing'].get(name)})" for name in lacking)
        raise IsolationError(f"the isolation that was required cannot be had here: {reasons}")
