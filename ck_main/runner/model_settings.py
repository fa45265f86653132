"""Apply settings to every model of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.config import KwargsInitializable, iter_nested
from ck_pro.model import LLM


def settings_of_models(agent: KwargsInitializable, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return agent settings that apply `settings` to its model and to all nested models."""
    out: dict[str, Any] = {}
    for path, _ in iter_nested(agent, LLM):
        at = out
        for name in path:
            at = at.setdefault(name, {})
        at.update(settings)
    return out
