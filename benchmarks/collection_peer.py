"""Compare with the loop of smolagents in this process, for `collection.py --only peer`.

Both run the same code step by step, with a model that answers at once. The measured time excludes
the model. smolagents has no journal and no worker process, but its interpreter is slow. So two
kinds of steps are measured: steps with some work, as in the other tables, and steps of one line,
which show the cost of the journal and the worker process. Requires smolagents (extra `bench`).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from collection_model import step_reply
from collection_steps import medians_around, step_times
from smolagents import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
    ChatMessage,
    CodeAgent,
    LogLevel,
    Model,
)

STEPS = (20, 300)


class CountingModel(Model):  # type: ignore[misc]
    """A model that returns the code of the next step and records the times of its calls.

    Args:
        steps: number of steps of the run.
        light: see `step_reply`.
    """

    def __init__(self, steps: int, *, light: bool):
        super().__init__()
        self.steps, self.light = steps, light
        self.asked: list[float] = []
        self.answered: list[float] = []

    def generate(self, messages: Any, **kwargs: Any) -> ChatMessage:
        """Return the code of the next step."""
        self.asked.append(time.perf_counter())
        text = step_reply(len(self.answered), self.steps - 1, light=self.light)
        text = text.replace("stop(output=", "final_answer(").replace(", log='counted'", "")
        self.answered.append(time.perf_counter())
        return ChatMessage(role="assistant", content=text)


def peer_times(steps: int, *, light: bool) -> list[float]:
    """Return the milliseconds of each step of smolagents without the model."""
    model = CountingModel(steps, light=light)
    agent = CodeAgent(
        tools=[],
        model=model,
        max_steps=steps,
        code_block_tags="markdown",
        verbosity_level=LogLevel.OFF,
    )
    agent.run(f"Count in {steps} steps.")
    if len(model.asked) != steps:
        raise RuntimeError(f"smolagents ran {len(model.asked)} of {steps} steps")
    between = zip(model.answered, model.asked[1:], strict=False)
    return [1000 * (asked - answered) for answered, asked in between]


def peer_part(*, quick: bool) -> dict[str, Any]:
    """Measure the overhead of both loops; returns medians of the rounds' medians."""
    rounds, steps = (1, 40) if quick else (5, 301)
    found: dict[str, list[dict[int, float]]] = {}
    for _ in range(rounds):
        for kind, light in (("some work", False), ("one line", True)):
            with tempfile.TemporaryDirectory() as made:
                times = step_times(steps, "never", None, Path(made), light=light)
            found.setdefault(f"ck_pro, {kind}", []).append(medians_around(times))
            times = peer_times(steps, light=light)
            found.setdefault(f"smolagents, {kind}", []).append(medians_around(times))
    return {
        name: {n: round(statistics.median(r[n] for r in rs), 3) for n in STEPS if n in rs[0]}
        for name, rs in found.items()
    }
