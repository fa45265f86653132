"""The main agent and what runs it over files of tasks. See docs/running.md.

`CKAgent` is loaded when first used, so that reading task files or scoring needs no agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ck_main.agent import CKAgent

__all__ = ["CKAgent"]


def __getattr__(name: str) -> Any:
    if name == "CKAgent":
        from ck_main.agent import CKAgent

        return CKAgent
    raise AttributeError(f"module 'ck_main' has no attribute {name!r}")
