"""Execution of model-written code in the worker of a run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ck_pro.events import EventKind
from ck_pro.events.journal_events import ErrorData
from ck_pro.exceptions import ToolError
from ck_pro.executor import WALL_SECONDS, CodeExecutor, CodeResult, LocalCall
from ck_pro.run.working_folder import linked_paths

if TYPE_CHECKING:
    from ck_pro.run.run import Run


class CodeRunner:
    """The callable `Run.run_code`; it starts the worker on first use.

    Args:
        run: the run.
    """

    def __init__(self, run: Run):
        self._run = run
        self._executor: CodeExecutor | None = None
        self._collected: dict[str, Any] = {}  # the latest snapshot of the variables

    def __call__(self, code: str) -> CodeResult:
        """Run code in the worker within the run's remaining time, and record its error.

        After a cancel, the code may finish until `Run.cancel_code` is set. If it is killed then,
        its step stays in progress and can be resumed.

        Raises:
            Cancelled, LimitReached: the code was killed because the run must stop.
        """
        run = self._run
        remaining = run.budget.remaining_seconds()
        if remaining is not None:  # the limit may kill the code
            self.plain_values()
        try:
            result = self._execute(code, remaining)
            run.questions.settle(run.check)
        finally:
            run.end_children()
        if result.error is not None:
            if result.error.type == "Cancelled":
                run.check()
            run.record(EventKind.ERROR, ErrorData(error=result.error.type))
        return result

    def run_unrecorded(self, code: str, functions: dict[str, Callable[..., Any]]) -> CodeResult:
        """Run code after the last step, with other functions; the log does not get its error."""
        self.plain_values()
        executor = self._start()
        usual, executor.functions = executor.functions, functions
        try:
            return self._execute(code, self._run.budget.remaining_seconds())
        finally:
            executor.functions = usual

    def _execute(self, code: str, remaining: float | None) -> CodeResult:
        executor = self._start()
        executor.wall_timeout = WALL_SECONDS if remaining is None else remaining
        return executor.run(code, cancel=self._run.cancel_code)

    def run_local_call(self, call: LocalCall) -> str:
        """Run a function that belongs into the worker, for an agent that writes no code.

        Args:
            call: the return value of the exposed function, approved and logged.

        Returns:
            The result as text for the model.
        """
        executor = self._start()
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

    def local_result(self, call: LocalCall) -> tuple[str, int | None, int | None]:
        """Run a function that belongs into the worker; return its result in parts.

        Args:
            call: the return value of the exposed function, approved and logged.

        Returns:
            The text, the exit code of a command, and the number of a background command.

        Raises:
            ToolError: the function failed.
        """
        executor = self._start()
        functions = executor.functions
        executor.functions = {call.name: lambda: call}
        parts = "[str(r), getattr(r, 'exit_code', None), getattr(r, 'id', None)]"
        try:
            result = self(f"print((lambda r: {parts})({call.name}()))")
        finally:
            executor.functions = functions
        if result.error is not None:
            raise ToolError(result.error.message)
        try:
            text, exit_code, number = ast.literal_eval(result.output.strip())
        except (ValueError, SyntaxError):  # a part of the output was omitted
            return result.output, None, None
        return text, exit_code, number

    def describe_names(self) -> list[str]:
        """Describe what the code has defined so far; see `CodeExecutor.describe_names`."""
        return self._executor.describe_names() if self._executor is not None else []

    def plain_values(self) -> dict[str, Any]:
        """Return the variables that are plain data; see `CodeExecutor.plain_values`.

        If the worker was killed, these are the variables before the code that it ran last, under a
        time limit or in the end phase.
        """
        found = self._executor.plain_values() if self._executor is not None else {}
        self._collected = found or self._collected
        return self._collected

    def detach(self) -> CodeExecutor | None:
        """Return the worker, which this run no longer uses; None if there is none."""
        executor, self._executor = self._executor, None
        return executor

    def adopt(self, executor: CodeExecutor) -> None:
        """Use the worker of an earlier run with the same settings and folder."""
        executor.functions = self._run.functions.by_name
        executor.terminal = frozenset(self._run.functions.terminal)
        self._executor = executor

    def close(self) -> None:
        """End the worker, if it runs."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.close()

    def _start(self) -> CodeExecutor:
        if self._executor is None:
            run = self._run
            settings = run.agent.executor
            self._executor = CodeExecutor(
                functions=run.functions.by_name,
                terminal=run.functions.terminal,
                workdir=run.workdir,
                packages=run.functions.packages,
                **{
                    **{n: getattr(settings, n) for n in settings.setting_names()},
                    "readable": [
                        *settings.readable,
                        *run.functions.readable,
                        *linked_paths(run.task_files),
                    ],
                },
            )
        return self._executor
