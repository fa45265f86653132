"""`Budget`: the limits of one run, for the whole tree of its agents. Prices of models.

The prices are list prices from OpenAI's pricing page (2025), in USD per million tokens, and may be
out of date. The setting `price` of an `LLM` overrides them.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ck_pro.events.event_parts import BudgetUsage
from ck_pro.exceptions import ConfigError, LimitReached
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


class Budget:
    """Limits of a run on steps, wall time, tokens and money. Thread-safe.

    One budget serves a run and all its sub-agents. A sub-agent with narrower limits has its own
    budget with a `parent`: charges go to both, and both limits apply.

    Args:
        max_steps: steps of all agents together. For this and all other limits, None: no limit.
        max_seconds: wall time since this object was created, in seconds.
        max_tokens: sum of prompt and completion tokens.
        max_money: USD.
        parent: the enclosing budget.
        clock: returns monotonic seconds.

    Raises:
        ConfigError: a limit is negative or not a number.
    """

    def __init__(
        self,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        max_tokens: int | None = None,
        max_money: float | None = None,
        parent: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        limits = {"max_steps": max_steps, "max_seconds": max_seconds}
        limits |= {"max_tokens": max_tokens, "max_money": max_money}
        for name, limit in limits.items():
            if limit is not None and not (_is_number(limit) and limit >= 0):  # false for NaN
                raise ConfigError(f"Budget: {name} must be a number >= 0, not {limit!r}")
        self.max_steps, self.max_seconds = max_steps, max_seconds
        self.max_tokens, self.max_money = max_tokens, max_money
        self.parent = parent
        self._clock, self._start = clock, clock()
        self._lock = threading.Lock()
        self._step_lock: threading.Lock = parent._step_lock if parent else threading.Lock()
        """Makes `take_step` atomic; shared by all budgets of a tree."""
        self._steps, self._calls, self._unpriced = 0, 0, 0
        self._usage, self._money = Usage(), 0.0

    def charge(self, usage: Usage, cost: float | None = None) -> None:
        """Count one model call. `LLM` charges the budget of its context.

        Args:
            usage: tokens of the call.
            cost: USD; None if the price is unknown (the call counts as unpriced).
        """
        with self._lock:
            self._calls += 1
            self._usage = self._usage + usage
            self._money += cost or 0.0
            self._unpriced += cost is None
        if self.parent is not None:
            self.parent.charge(usage, cost)

    def charge_step(self) -> None:
        """Count one step of an agent."""
        with self._lock:
            self._steps += 1
        if self.parent is not None:
            self.parent.charge_step()

    def take_step(self) -> None:
        """Check all limits and count one step, as one atomic operation.

        Of several agents that request the last step at once, one gets it.

        Raises:
            LimitReached: see `check`.
        """
        with self._step_lock:
            self.check()
            self.charge_step()

    def carry(
        self, steps: int, seconds: float, calls: Iterable[tuple[Usage, float | None]]
    ) -> None:
        """Count what the interrupted part of a resumed run has used.

        Args:
            steps: steps of all agents.
            seconds: wall time.
            calls: usage and cost of each model call, as for `charge`.
        """
        for usage, cost in calls:
            self.charge(usage, cost)
        for _ in range(steps):
            self.charge_step()
        with self._lock:
            self._start -= seconds

    def check(self, *, steps: bool = True) -> None:
        """Raise if a limit is used up. Call this before a step or a model call, not after it.

        Args:
            steps: also check the step limit; False for a model call within a step.

        Raises:
            LimitReached: with the reason "time", "tokens", "money" or "steps".
        """
        with self._lock:
            tokens = 0 if self.max_tokens is None else self._usage.total_tokens
            money, taken = self._money, self._steps
        seconds = self._clock() - self._start
        if self.max_seconds is not None and seconds >= self.max_seconds:
            raise _reached("time", f"{self.max_seconds:g} s", f"{seconds:.1f} s", "max_seconds")
        if self.max_tokens is not None and tokens >= self.max_tokens:
            raise _reached("tokens", f"{self.max_tokens} tokens", str(tokens), "max_tokens")
        # with a limit of 0 USD, free models still run
        if self.max_money is not None and money >= self.max_money and money > 0:
            raise _reached("money", f"{self.max_money:g} USD", f"{money:.4f} USD", "max_money")
        if steps and self.max_steps is not None and taken >= self.max_steps:
            raise _reached("steps", f"{self.max_steps} steps", str(taken), "max_steps")
        if self.parent is not None:
            self.parent.check(steps=steps)

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the next time limit of this budget and its parents.

        None: no time limit.
        """
        left = [] if self.parent is None else [self.parent.remaining_seconds()]
        if self.max_seconds is not None:
            left.append(max(0.0, self.max_seconds - (self._clock() - self._start)))
        known = [s for s in left if s is not None]
        return min(known) if known else None

    def remaining_steps(self) -> int | None:
        """Return the steps that this budget and its parents still allow; None: no step limit."""
        left = [] if self.parent is None else [self.parent.remaining_steps()]
        with self._lock:
            if self.max_steps is not None:
                left.append(max(0, self.max_steps - self._steps))
        known = [steps for steps in left if steps is not None]
        return min(known) if known else None

    @property
    def limits_money(self) -> bool:
        """Whether this budget or a parent has a money limit."""
        return self.max_money is not None or (self.parent is not None and self.parent.limits_money)

    def snapshot(self) -> BudgetUsage:
        """Return usage so far and the limits (None: no limit), as JSON data."""
        with self._lock:
            return {
                "steps": self._steps,
                "seconds": self._clock() - self._start,
                "llm_call": self._calls,
                "tokens": self._usage.total_tokens,
                "money": self._money,
                "unpriced_calls": self._unpriced,
                "usage": self._usage.to_dict(),
                "max_steps": self.max_steps,
                "max_seconds": self.max_seconds,
                "max_tokens": self.max_tokens,
                "max_money": self.max_money,
            }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reached(reason: str, limit: str, used: str, setting: str) -> LimitReached:
    return LimitReached(
        reason, f"the limit of {limit} is used up ({used} so far); raise `{setting}` to continue"
    )


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
