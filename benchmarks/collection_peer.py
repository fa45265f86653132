"""The loop of smolagents, in this very process, beside ours, for `collection.py --only peer`.

Both run the same code step by step, with a model that answers at once; what is timed is everything
of a step but the model. It has neither a journal nor a process of its own for the code, so this is
what those cost. Needs the package smolagents (extra `bench`).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from collection_model import step_reply
from collection_steps import around, step_times
from smolagents import ChatMessage, CodeAgent, LogLevel, Model

STEPS = (20, 300)


class CountingModel(Model):  # type: ignore[misc]
    """Answers with the code of the next step; notes when it is asked and when it has answered.

    Args:
        steps: of the run.
    """

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps
        self.asked: list[float] = []
        self.answered: list[float] = []

    def generate(self, messages: Any, **kwargs: Any) -> ChatMessage:
        """The next step's code."""
        self.asked.append(time.perf_counter())
        text = step_reply(len(self.answered), self.steps - 1)
        text = text.replace("stop(output=", "final_answer(").replace(", log='counted'", "")
        self.answered.append(time.perf_counter())
        return ChatMessage(role="assistant", content=text)


def peer_times(steps: int) -> list[float]:
    """Milliseconds of each step of a run of smolagents that are not the model's."""
    model = CountingModel(steps)
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
    found: dict[str, list[dict[int, float]]] = {"ck_pro": [], "smolagents": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as made:
            found["ck_pro"].append(around(step_times(steps, "never", None, Path(made))))
        found["smolagents"].append(around(peer_times(steps)))
    return {
        name: {n: round(statistics.median(r[n] for r in rs), 3) for n in STEPS if n in rs[0]}
        for name, rs in found.items()
    }
