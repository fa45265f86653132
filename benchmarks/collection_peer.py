"""The loop of smolagents, in this very process, beside ours, for `collection.py --only peer`.

Both run the same code step by step, with a model that answers at once; what is timed is everything
of a step but the model. It has neither a journal nor a process of its own for the code, but it
interprets the code, which is slow. So two kinds of steps are measured: those that compute a little,
as in the other tables, and those of one line, which show what our journal and process cost. Needs
the package smolagents (extra `bench`).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from collection_model import step_reply
from collection_steps import around, step_times
from smolagents import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
    ChatMessage,
    CodeAgent,
    LogLevel,
    Model,
)

STEPS = (20, 300)


class CountingModel(Model):  # type: ignore[misc]
    """Answers with the code of the next step; notes when it is asked and when it has answered.

    Args:
        steps: of the run.
        light: of `step_reply`.
    """

    def __init__(self, steps: int, *, light: bool):
        super().__init__()
        self.steps, self.light = steps, light
        self.asked: list[float] = []
        self.answered: list[float] = []

    def generate(self, messages: Any, **kwargs: Any) -> ChatMessage:
        """The next step's code."""
        self.asked.append(time.perf_counter())
        text = step_reply(len(self.answered), self.steps - 1, light=self.light)
        text = text.replace("stop(output=", "final_answer(").replace(", log='counted'", "")
        self.answered.append(time.perf_counter())
        return ChatMessage(role="assistant", content=text)


def peer_times(steps: int, *, light: bool) -> list[float]:
    """Milliseconds of each step of a run of smolagents that are not the model's."""
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
        raise RuntimeError(f"smolagents made {len(model.asked)} of {steps} steps")
    between = zip(model.answered, model.asked[1:], strict=False)
    return [1000 * (asked - answered) for answered, asked in between]


def peer_part(*, quick: bool) -> dict[str, Any]:
    """Overhead per step of both, taking turns; medians of the rounds' medians."""
    rounds, steps = (1, 40) if quick else (5, 301)
    found: dict[str, list[dict[int, float]]] = {}
    for _ in range(rounds):
        for kind, light in (("some work", False), ("one line", True)):
            with tempfile.TemporaryDirectory() as made:
                ours = step_times(steps, "never", None, Path(made), light=light)
            found.setdefault(f"ck_pro, {kind}", []).append(around(ours))
            theirs = peer_times(steps, light=light)
            found.setdefault(f"smolagents, {kind}", []).append(around(theirs))
    return {
        name: {n: round(statistics.median(r[n] for r in rs), 3) for n in STEPS if n in rs[0]}
        for name, rs in found.items()
    }
