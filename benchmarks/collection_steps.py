"""Measure the overhead of a step: loop, journal and executor, for `collection.py`."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collection_model import reply

from ck_main.output.row import row_line
from ck_pro.agent import MultiStepAgent
from ck_pro.executor import CodeExecutor
from ck_pro.journal import Journal
from ck_pro.model import LLM, Backend, ChatRequest, RawReply
from ck_pro.model.backends.targets import open_target
from ck_pro.tool import StopTool

RANGES = {10: (6, 15), 20: (16, 25), 100: (86, 115), 300: (271, 300), 1000: (951, 1000)}
"""Step -> first and last step of the range for its median."""


class TimedModel(Backend):
    """A model that measures its own time.

    Args:
        url: of the model; None calls `reply` in this process.
        light: see `reply`.
    """

    free = True

    def __init__(self, url: str | None, *, light: bool = False):
        self._light = light
        self._inner = None if url is None else open_target(f"{url}/v1")
        self.remote = self._inner is not None and self._inner.remote
        self.seconds = 0.0

    def __deepcopy__(self, memo: dict[int, Any]) -> TimedModel:
        return self

    def describe(self) -> str:
        return "timed"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "timed"

    def complete(self, request: ChatRequest) -> RawReply:
        began = time.perf_counter()
        try:
            if self._inner is not None:
                return self._inner.complete(request)
            return RawReply(text=reply(request.messages, light=self._light), model="timed")
        finally:
            self.seconds += time.perf_counter() - began


def step_times(
    steps: int, fsync: str, url: str | None, folder: Path, *, light: bool = False
) -> list[float]:
    """Return the milliseconds of each step of a run without the model.

    Args:
        steps: number of steps.
        fsync: the policy of the journal.
        url: of the model; None for a model in this process.
        folder: for the journal and the working directory.
        light: run steps of one line; only with a model in this process.
    """
    model = TimedModel(url, light=light)
    agent = MultiStepAgent(
        model=LLM(backend=model), tools=[StopTool()], max_steps=steps, stuck_limit=10_000
    )
    times = []
    with Journal(folder / "journal", fsync=fsync) as journal:  # type: ignore[arg-type]
        running = agent.run(
            f"Count in {steps} steps.", stream=True, journal=journal, workdir=folder / "work"
        )
        mark, spent = time.perf_counter(), 0.0
        for _ in running:
            now = time.perf_counter()
            times.append((now - mark - (model.seconds - spent)) * 1000)
            mark, spent = time.perf_counter(), model.seconds
    return times


def medians_around(times: list[float]) -> dict[int, float]:
    """Return the medians around the steps of `RANGES` that the run reached, in milliseconds."""
    found = {n: times[a:b] for n, (a, b) in RANGES.items() if len(times) >= b}
    return {n: statistics.median(part) for n, part in found.items()}


def code_times(steps: int, folder: Path) -> float:
    """Return the median milliseconds of the code alone, in the executor: the floor."""
    times = []
    with CodeExecutor(workdir=folder / "bare") as executor:
        for n in range(steps):
            code = reply([{"content": f"in {steps + 2} steps\nObservation of step {n}:"}])
            code = code.partition("```python\n")[2].partition("```")[0]
            began = time.perf_counter()
            executor.run(code)
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def overhead(rounds: int, steps: int, url: str) -> dict[str, Any]:
    """Measure the overhead flushed and with fsync; returns medians of the rounds' medians."""
    found: dict[str, list[dict[int, float]]] = {"flushed": [], "fsync": []}
    floor = []
    for _ in range(rounds):
        for name, policy in (("flushed", "never"), ("fsync", "step")):
            with tempfile.TemporaryDirectory() as made:
                found[name].append(medians_around(step_times(steps, policy, url, Path(made))))
        with tempfile.TemporaryDirectory() as made:
            floor.append(code_times(30, Path(made)))
    out: dict[str, Any] = {"code_ms": round(statistics.median(floor), 3)}
    for name, results in found.items():
        out[name] = {n: round(statistics.median(r[n] for r in results), 3) for n in results[0]}
    return out


def journal_sizes(steps: int, folder: Path) -> dict[str, int]:
    """Return the bytes of a run's journal and of one JSON line with all prompts.

    Args:
        steps: number of steps.
        folder: an empty folder.
    """
    agent = MultiStepAgent(
        model=LLM(backend=TimedModel(None)),
        tools=[StopTool()],
        max_steps=steps,
        stuck_limit=10_000,
    )
    with Journal(folder / "journal") as journal:
        session = agent.run(f"Count in {steps} steps.", journal=journal, workdir=folder / "work")
    stored = sum(p.stat().st_size for p in (folder / "journal").rglob("*") if p.is_file())
    return {"journal": stored, "line": len(row_line({"session": session.to_dict()}))}
