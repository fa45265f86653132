"""`FileAgent`: answers questions about documents, tables, pictures and sound. See docs/files.md.

The public names load on first use. May import: `ck_pro`.

Rooms, in import order: a room imports only rooms listed before it.

    prompts   prompts of the agent
    agent     FileAgent
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ck_file.agent import FileAgent

__all__ = ["FileAgent"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ck_file' has no attribute {name!r}")
    return getattr(importlib.import_module("ck_file.agent"), name)
