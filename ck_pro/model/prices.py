"""Prices of models, in USD per million tokens.

The numbers are list prices from OpenAI's pricing page (2025) and may be out of date. The setting
`price` of an `LLM` overrides them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ck_pro.exceptions import ConfigError
from ck_pro.model.types import Usage

PRICES: dict[str, tuple[float, float, float]] = {
    "gpt-3.5-turbo": (0.5, 0.5, 1.5),
    "gpt-4-turbo": (10, 10, 30),
    "gpt-4": (30, 30, 60),
    "gpt-4o": (2.5, 1.25, 10),
    "gpt-4o-mini": (0.15, 0.075, 0.6),
    "gpt-4.1": (2, 0.5, 8),
    "gpt-4.1-mini": (0.4, 0.1, 1.6),
    "gpt-4.1-nano": (0.1, 0.025, 0.4),
    "gpt-5": (1.25, 0.125, 10),
    "gpt-5-mini": (0.25, 0.025, 2),
    "gpt-5-nano": (0.05, 0.005, 0.4),
    "gpt-5.1": (1.25, 0.125, 10),
    "o1": (15, 7.5, 60),
    "o1-mini": (1.1, 0.55, 4.4),
    "o3": (2, 0.5, 8),
    "o3-mini": (1.1, 0.55, 4.4),
    "o4-mini": (1.1, 0.275, 4.4),
}
"""Model name -> prompt, cached prompt, completion."""

# A dated snapshot has the price of its model; "gpt-5-pro" does not have the price of "gpt-5".
_SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{4}|latest|chat-latest)$")


@dataclass(frozen=True)
class Price:
    """USD per million tokens."""

    prompt: float
    cached: float
    completion: float

    def cost(self, usage: Usage) -> float:
        """Return the cost in USD; cached tokens cost only the cached price."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        uncached = usage.prompt_tokens - cached
        micro = uncached * self.prompt + cached * self.cached
        return (micro + usage.completion_tokens * self.completion) / 1e6


def price_of(model: str, override: Mapping[str, float] | None = None) -> Price | None:
    """Return the price of a model; None if unknown.

    Args:
        model: its name; may have a provider ("openai/gpt-4o") or a date ("gpt-4o-2024-08-06").
        override: `prompt`, `completion` and optionally `cached`, in USD per million tokens;
            replaces the table.

    Raises:
        ConfigError: the override has unknown, missing or negative entries.
    """
    if override:
        wrong = set(override) - {"prompt", "cached", "completion"}
        if wrong or not {"prompt", "completion"} <= set(override):
            raise ConfigError(
                "price: must be {'prompt': ..., 'completion': ...} and optionally 'cached', in USD "
                "per million tokens"
            )
        if min(override.values()) < 0:
            raise ConfigError("price: must not be negative")
        prompt = override["prompt"]
        return Price(prompt, override.get("cached", prompt), override["completion"])
    name = model.rsplit("/", 1)[-1].lower()
    known = PRICES.get(name) or PRICES.get(_SNAPSHOT.sub("", name))
    return Price(*known) if known else None
