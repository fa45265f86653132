"""Runs of agents for MCP calls: each has a journal, limits and a row, as with the commands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ck_main.cli.resuming import resuming
from ck_main.output.row import Outcome
from ck_main.output.row_file import RowFile
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.tasks.dataset import Task, safe_name
from ck_main.ui.reports import kept_browsers
from ck_pro.agent import MultiStepAgent
from ck_pro.events.progress_events import ProgressEvent
from ck_pro.exceptions import ConfigError

Report = Callable[[str], None]
"""Receives one line of progress; any thread calls it."""


class AgentRuns:
    """Runs agents, and keeps their rows and folders beside each other. Thread-safe.

    Args:
        agents: the agents by the name of their tool.
        output: file of rows.
        options: limits of a run; see `RunOptions`.
    """

    def __init__(self, agents: Mapping[str, MultiStepAgent], output: Path, options: RunOptions):
        self.agents, self.output, self._options = dict(agents), output, options
        self._rows = RowFile(output)
        self._lock = threading.Lock()
        self._count = 0

    def close(self) -> None:
        """Close the file of rows."""
        self._rows.close()

    def start(
        self, tool: str, task: str, target_url: str, stop: threading.Event, report: Report
    ) -> dict[str, Any]:
        """Run a task to its end.

        Args:
            tool: name of the agent's tool.
            task: the instruction.
            target_url: start page; "" for none.
            stop: set it to stop the run.
            report: receives the progress.

        Returns:
            `output`, `log`, `status`, `stop_reason`, `message` and `run`, the name for `resume`.
        """
        name = self._free_name(tool)
        made = Task(name, task, safe_name(name), original={"question": task})
        runner = TaskRunner(
            self.agents[tool],
            self._rows,
            self._options,
            _Reporter(report),
            stop,
            target_url=target_url or None,
        )
        runner.run([made])
        return self._result(runner, name, self._rows.folder / made.folder)

    def resume(
        self, run: str, answer: str, approve: bool, stop: threading.Event, report: Report
    ) -> dict[str, Any]:
        """Resume a run that stopped for a person, failed or was cancelled; see `start`.

        Raises:
            ConfigError: there is no such run, or nothing to answer or to approve.
        """
        folder = self._rows.folder / safe_name(run)
        if not folder.is_dir():
            raise ConfigError(f"run: no run is named {run!r}")
        agent = self.agents[self._tool_of(folder)]
        task, make, _ = resuming(folder, answer, agent, approve=approve)
        with self._free_rows(task.id) as rows:
            runner = make(agent, rows, self._options, _Reporter(report), stop)
            runner.run([task])
            return self._result(runner, run, folder)

    def _tool_of(self, folder: Path) -> str:
        """Return the tool whose agent made a run."""
        for tool in self.agents:
            if folder.name.startswith(f"{tool}-"):
                return tool
        return next(iter(self.agents))

    def _free_name(self, tool: str) -> str:
        with self._lock:
            while True:
                self._count += 1
                name = f"{tool}-{time.strftime('%Y%m%d-%H%M%S')}-{self._count}"
                if name not in self._rows.done and not (self._rows.folder / name).exists():
                    return name

    def _free_rows(self, task_id: str) -> RowFile:
        """Return the first file of rows for resumed runs that has none for a task."""
        number = 1
        while True:
            rows = RowFile(self.output.with_stem(f"{self.output.stem}-resumed-{number}"))
            if not rows.has(task_id):
                return rows
            rows.close()
            number += 1

    def _result(self, runner: TaskRunner, run: str, folder: Path) -> dict[str, Any]:
        outcome: Outcome | None = next(iter(runner.outcomes.values()), None)
        if outcome is None:
            return {
                "output": "",
                "status": "in_progress",
                "message": "the run was stopped; resume it with resume_task",
                "run": run,
            }
        found = {
            "output": outcome.answer,
            "status": outcome.status,
            "stop_reason": outcome.stop_reason,
            "message": outcome.message,
            "run": run,
        }
        browsers = kept_browsers(folder)
        return {**found, "browsers": browsers} if browsers else found


class _Reporter:
    """The `Watcher` of one run."""

    def __init__(self, report: Report):
        self._report = report

    def started(self, task: Task) -> None:
        """See `Watcher`."""

    def event(self, task_id: str, event: ProgressEvent) -> None:
        """Report steps and calls."""
        where = "/".join(event["path"])
        text = " ".join(str(event.get("text") or "").split())[:200]
        line = f"{where}, step {event['step'] + 1}: {event['kind']} {text}".strip()
        self._report(line)

    def ended(self, outcome: Outcome) -> None:
        """See `Watcher`."""

    def note(self, text: str) -> None:
        """Report a line."""
        self._report(text)
