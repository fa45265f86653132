"""Secrets: found in the environment, and masked in whatever a journal takes in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "***"

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_MIN_SECRET = 8


def secrets_of_environment(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Values of the environment variables whose names say that they are secret."""
    items = (os.environ if environ is None else environ).items()
    return tuple(v for k, v in items if _SECRET_NAME.search(k) and len(v) >= _MIN_SECRET)


class Secrets:
    """Strings that must not reach the disk.

    Args:
        known: the first of them.
    """

    def __init__(self, known: Iterable[str] = ()):
        self._known: list[str] = []
        self.add(known)

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, secrets: Iterable[str]) -> bool:
        """Mask these too, from now on; whether any of them is new."""
        before = set(self._known)
        known = before | {s for s in secrets if s}
        # longest first, so that a secret that holds another is masked as a whole
        self._known = sorted(known, key=len, reverse=True)
        return known != before

    def masked(self, value: Any) -> Any:
        """JSON data with each secret in its texts and keys masked; `value` where there is none."""
        if not self._known:
            return value
        if isinstance(value, str):
            for secret in self._known:
                if secret in value:
                    value = value.replace(secret, MASK)
            return value
        if isinstance(value, dict):
            return {self.masked(k): self.masked(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.masked(v) for v in value]
        return value
