"""How tasks are run, and what a command says at its end: settings of the runner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ck_main.runner.choosing import TryOptions
from ck_main.runner.limits import RunLimits, TaskBudget
from ck_pro.journal import Fsync
from ck_pro.model import LLM, Budget


class ExitCode(IntEnum):
    """What a command's exit code means."""

    DONE = 0
    PROBLEM = 1
    USAGE = 2
    LINES = 3
    OUTPUT = 4
    UNREACHABLE = 5
    INTERNAL = 6
    LIMIT = 7
    STOPPED = 130


@dataclass(frozen=True)
class RunOptions:
    """How tasks are run.

    Args:
        workers: tasks at once.
        max_steps, max_seconds, max_tokens, max_money: limits of one attempt at a task, over all
            its agents; None means no limit. Seconds of wall time, USD.
        run: limits of all tasks together.
        retries: further attempts after one that ended by a fault of the infrastructure: the
            environment, a model that could not be reached, an error of ours. Never after a
            wrong answer, a limit, or a refusal.
        tries: several tries of each task; None for one.
        probe: raises a `CKError` while a service that all tasks need cannot be reached, or
            refuses. Asked after a task in which a service failed, at any depth, before its row is
            written: an outage must not use up this task, nor the others.
        fsync, compress: of the journals; see `ck_pro.journal.Journal`.
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

    def budget(self, parent: Budget | None = None) -> TaskBudget:
        """A fresh budget for one attempt, within `parent`; its clock starts now."""
        limits = self.max_steps, self.max_seconds, self.max_tokens, self.max_money
        return TaskBudget(*limits, parent=parent)

    def recorded_limits(self) -> dict[str, Any]:
        """The limits of a task as a session's `info` records them; nothing where there are none."""
        names = ("max_steps", "max_seconds", "max_tokens", "max_money")
        found = {name: getattr(self, name) for name in names}
        limits = {name: value for name, value in found.items() if value is not None}
        return {"limits": limits} if limits else {}

    @property
    def limits_money(self) -> bool:
        """Whether the price of every model must be known."""
        return self.max_money is not None or self.run.max_money is not None

    @property
    def judge(self) -> LLM | None:
        """The model, none of the agent's, that is asked about tries."""
        return self.tries.judge if self.tries is not None and self.tries.asks_judge else None
