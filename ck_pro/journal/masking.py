"""Find secrets in the environment, and mask them in journal data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "***"

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
MIN_SECRET = 8
"""Shorter values are placeholders, such as "x": masking them would damage ordinary text."""


def secrets_of_environment(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the values of environment variables with secret-sounding names (KEY, TOKEN, ...)."""
    items = (os.environ if environ is None else environ).items()
    return tuple(v for k, v in items if _SECRET_NAME.search(k) and len(v) >= MIN_SECRET)


class Secrets:
    """Strings to mask before anything is written to the disk.

    Args:
        known: the initial strings.
    """

    def __init__(self, known: Iterable[str] = ()):
        self.known: list[str] = []
        """The strings, longest first."""
        self.add(known)

    def add(self, secrets: Iterable[str]) -> bool:
        """Mask these strings too from now on; return whether any is new."""
        before = set(self.known)
        known = before | {s for s in secrets if s}
        # longest first: one secret may contain another
        self.known = sorted(known, key=len, reverse=True)
        return known != before

    def masked(self, value: Any) -> Any:
        """Return JSON data with all secrets in texts and keys masked; unchanged if none."""
        if not self.known:
            return value
        if isinstance(value, str):
            for secret in self.known:
                if secret in value:
                    value = value.replace(secret, MASK)
            return value
        if isinstance(value, dict):
            return {self.masked(k): self.masked(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.masked(v) for v in value]
        return value
