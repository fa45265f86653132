"""Limits of a whole run, beside those of each task: reached, they stop it in good order."""

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
    """What all tasks of one command may use up together; None means no limit.

    Args:
        max_steps: of all agents.
        max_seconds: wall time.
        max_tokens: prompt and completion tokens.
        max_money: USD.
    """

    max_steps: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_money: float | None = None


class RunBudget(Budget):
    """The budget around those of all tasks of a run.

    Used up, it does not end a task as a problem, as a task's own budget does: it cancels it, so
    that the task stays in progress and the same command goes on with it.

    Args:
        limits: see `RunLimits`.
        clock: seconds, monotonic.
    """

    def __init__(
        self, limits: RunLimits | None = None, clock: Callable[[], float] = time.monotonic
    ):
        limits = limits or RunLimits()
        super().__init__(
            limits.max_steps,
            limits.max_seconds,
            limits.max_tokens,
            limits.max_money,
            clock=clock,
        )

    def check(self, *, steps: bool = True) -> None:
        """As `Budget.check`, but raises `Cancelled`."""
        said = self.used_up(steps=steps)
        if said is not None:
            raise Cancelled(said)

    def remaining_seconds(self) -> None:
        """No limit for a piece of code or a model call: at the time limit the run is cancelled,
        which must not look like a fault of what was under way."""

    def used_up(self, *, steps: bool = True) -> str | None:
        """One line saying which limit of the run is reached; None if none is."""
        try:
            super().check(steps=steps)
        except LimitReached as e:
            used = self.snapshot()
            said = {
                "steps": f"{used['steps']} steps, --run-max-steps is {self.max_steps}",
                "time": f"{used['seconds']:.1f} s, --run-max-seconds is {self.max_seconds or 0:g}",
                "tokens": f"{used['tokens']} tokens, --run-max-tokens is {self.max_tokens}",
                "money": f"{used['money']:.4f} USD, --run-max-money is {self.max_money or 0:g}",
            }
            return f"a limit of the whole run is reached ({said[e.reason]})"
        return None

    @contextmanager
    def stopping(self, stop: threading.Event) -> Iterator[None]:
        """While it is entered, `stop` is set when the run's time is over."""
        if self.max_seconds is None:
            yield
            return
        left = self.max_seconds - float(self.snapshot()["seconds"])
        # a little later, so that the clock is certainly beyond the limit
        timer = threading.Timer(max(0.0, left) + 0.01, stop.set)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class TaskBudget(Budget):
    """The budget of a task, or of one attempt at it, within that of the run.

    What an earlier command used for the task before it was cut off counts here, but not for the
    run: else a run that its limit had ended could never be gone on with.
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
