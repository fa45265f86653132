"""The worker of a run: where the model's code is run, and calls that belong there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ck_pro.events import EventKind
from ck_pro.events.journal_events import ErrorData
from ck_pro.executor import WALL_SECONDS, CodeExecutor, CodeResult, LocalCall

if TYPE_CHECKING:
    from ck_pro.run.run import Run


class CodeRunner:
    """What `Run.run_code` is. The worker is started when it is first needed.

    Args:
        run: the `ck_pro.run.run.Run`.
    """

    def __init__(self, run: Run):
        self._run = run
        self._executor: CodeExecutor | None = None

    def __call__(self, code: str) -> CodeResult:
        """Run code in the worker, within the time that the run has left, and record its error.

        A run that is told to stop lets it finish for a while (`cancel_code`), whoever wrote it: a
        model, or the call of a function that belongs to the worker. If it has to be killed, its
        step stays under way, to be resumed.

        Raises:
            Cancelled, LimitReached: the code was killed since the run must stop.
        """
        run, executor = self._run, self._started()
        remaining = run.budget.remaining_seconds()
        executor.wall_timeout = WALL_SECONDS if remaining is None else remaining
        try:
            result = executor.run(code, cancel=run.cancel_code)
        finally:
            run.end_children()
        if result.error is not None:
            if result.error.type == "Cancelled":
                run.check()
            run.record(EventKind.ERROR, ErrorData(error=result.error.type))
        return result

    def locally(self, call: LocalCall) -> str:
        """Have the worker do a call that belongs there: for an agent that writes no code.

        Args:
            call: what the function gave back; it has been approved and logged.

        Returns:
            What the model reads of it.
        """
        executor = self._started()
        functions = executor.functions
        executor.functions = {call.name: lambda: call}
        try:
            result = self(f"print({call.name}())")
        finally:
            executor.functions = functions
        lines = [result.output.rstrip("\n")]
        if result.error is not None:
            lines.append(f"{result.error.type}: {result.error.message}")
        if result.commands_lost:
            lines.append("All commands in the background have ended.")
        return "\n".join(line for line in lines if line)

    def close(self) -> None:
        """End the worker, if there is one; harmless when repeated."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.close()

    def _started(self) -> CodeExecutor:
        if self._executor is None:
            run = self._run
            settings = run.agent.executor
            self._executor = CodeExecutor(
                functions=run.calls.functions,
                terminal=run.calls.terminal,
                workdir=run.workdir,
                **{n: getattr(settings, n) for n in settings.setting_names()},
            )
        return self._executor
