"""Limits of a whole run, beside those of each task; reaching one stops the run gracefully."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ck_pro.exceptions import Cancelled, LimitReached
from ck_pro.model import Budget, Usage


@dataclass(frozen=True)
class RunLimits:
    """Limits of all tasks of one command together; None means no limit.

    Args:
        max_steps: steps of all agents.
        max_seconds: wall time.
        max_tokens: prompt and completion tokens.
        max_money: USD.
    """

    max_steps: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_money: float | None = None


class RunBudget(Budget):
    """The budget of a whole run; the parent of all task budgets.

    When it is used up, it cancels the tasks in progress, so that the same command can resume
    them. (A task's own budget ends the task with a limit instead.)

    Args:
        limits: see `RunLimits`.
        clock: seconds, monotonic.
    """

    def __init__(
        self, limits: RunLimits | None = None, clock: Callable[[], float] = time.monotonic
    ):
        limits = limits or RunLimits()
        self._is_limited = limits != RunLimits()
        super().__init__(
            limits.max_steps,
            limits.max_seconds,
            limits.max_tokens,
            limits.max_money,
            clock=clock,
        )

    def check(self, *, steps: bool = True) -> None:
        """Like `Budget.check`, but raise `Cancelled`."""
        message = self.used_up(steps=steps)
        if message is not None:
            raise Cancelled(message)

    def remaining_seconds(self) -> None:
        """Return None: no timeout for code or a model call.

        At the time limit the run is cancelled, which must not look like a failure of the call.
        """

    def used_up(self, *, steps: bool = True) -> str | None:
        """Return one line that names the reached limit of the run, or None."""
        if not self._is_limited:
            return None
        try:
            super().check(steps=steps)
        except LimitReached as e:
            used = self.snapshot()
            details = {
                "steps": f"{used['steps']} steps, --run-max-steps is {self.max_steps}",
                "time": f"{used['seconds']:.1f} s, --run-max-seconds is {self.max_seconds or 0:g}",
                "tokens": f"{used['tokens']} tokens, --run-max-tokens is {self.max_tokens}",
                "money": f"{used['money']:.4f} USD, --run-max-money is {self.max_money or 0:g}",
            }
            return f"a limit of the whole run is reached ({details[e.reason]})"
        return None

    @contextmanager
    def stopping(self, stop: threading.Event) -> Iterator[None]:
        """Within this context, set `stop` when the run's time limit is reached."""
        if self.max_seconds is None:
            yield
            return
        left = self.max_seconds - float(self.snapshot()["seconds"])
        # a small margin: the clock must be past the limit when the timer fires
        timer = threading.Timer(max(0.0, left) + 0.01, stop.set)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class TaskBudget(Budget):
    """The budget of a task, or of one attempt at it, within the budget of the run.

    Usage of an interrupted earlier command counts here but not for the run. Otherwise a run that
    reached its limit could never be resumed.
    """

    def carry(
        self, steps: int, seconds: float, calls: Iterable[tuple[Usage, float | None]]
    ) -> None:
        """See `Budget.carry`."""
        calls = list(calls)
        parent, self.parent = self.parent, None
        try:
            super().carry(steps, seconds, calls)
        finally:
            self.parent = parent
        if isinstance(parent, TaskBudget):
            parent.carry(steps, seconds, calls)
