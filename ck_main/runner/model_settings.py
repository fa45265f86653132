"""Settings for every model of an agent at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.config import KwargsInitializable, iter_nested
from ck_pro.model import LLM


def settings_of_models(agent: KwargsInitializable, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an agent that lay `settings` over its model and those of everything below it."""
    out: dict[str, Any] = {}
    for path, _ in iter_nested(agent, LLM):
        at = out
        for name in path:
            at = at.setdefault(name, {})
        at.update(settings)
    return out
