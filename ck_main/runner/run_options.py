"""Options of the runner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ck_main.runner.choosing import TryOptions
from ck_main.runner.limits import RunLimits, TaskBudget
from ck_main.scoring.scoring import Scoring
from ck_pro.journal import Fsync
from ck_pro.model import LLM, Budget


@dataclass(frozen=True)
class RunOptions:
    """Options of the runner.

    Args:
        workers: number of tasks to run in parallel.
        max_steps, max_seconds, max_tokens, max_money: limits of one attempt at a task, over all
            its agents; None means no limit. Seconds of wall time, USD.
        run: limits of all tasks together.
        retries: retries after an infrastructure failure: the environment, an unreachable model,
            an internal error. Never after a wrong answer, a limit, or a refusal.
        tries: options for several tries of each task; None for one try.
        probe: raises a `CKError` while a service that all tasks need is unreachable or refuses
            requests. Called after a task in which a service failed, before its row is written,
            so that an outage does not use up the tasks.
        fsync, compress: journal settings; see `ck_pro.journal.Journal`.
        resumable: whether the same command, repeated, resumes the run.
        scoring: scores the answers; None for `em`, or what a task names.
    """

    workers: int = 1
    max_steps: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_money: float | None = None
    run: RunLimits = field(default_factory=RunLimits)
    retries: int = 0
    tries: TryOptions | None = None
    probe: Callable[[], None] | None = None
    fsync: Fsync = "never"
    compress: bool = False
    resumable: bool = True
    scoring: Scoring | None = None

    def budget(self, parent: Budget | None = None) -> TaskBudget:
        """Create the budget of one attempt within `parent`; its clock starts now."""
        limits = self.max_steps, self.max_seconds, self.max_tokens, self.max_money
        return TaskBudget(*limits, parent=parent)

    def recorded_limits(self) -> dict[str, Any]:
        """Return the limits of a task for a session's `info`; empty without limits."""
        names = ("max_steps", "max_seconds", "max_tokens", "max_money")
        found = {name: getattr(self, name) for name in names}
        limits = {name: value for name, value in found.items() if value is not None}
        return {"limits": limits} if limits else {}

    @property
    def limits_money(self) -> bool:
        """Whether there is a money limit, so that every model needs a known price."""
        return self.max_money is not None or self.run.max_money is not None

    @property
    def judge(self) -> LLM | None:
        """The separate judge model, if one is set and needed."""
        return self.tries.judge if self.tries is not None and self.tries.asks_judge else None
