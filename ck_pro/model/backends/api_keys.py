"""API keys: checked before they are sent, and removed from what services return."""

from __future__ import annotations

from ck_pro.exceptions import ModelRefused


def check_key(key: str, target: str) -> str:
    """Return the key without surrounding space.

    Raises:
        ModelRefused: it has characters that a header cannot have. (The HTTP library's own error
            would print the key.)
    """
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelRefused(f"{target}: the API key contains invalid characters")
    return key


def without_key(text: str, key: str) -> str:
    """Return a response without the key: some services repeat it when they reject it."""
    return text.replace(key, "***") if len(key) >= 8 else text
