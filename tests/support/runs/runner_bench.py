"""A task runner with a fake agent."""

import json
import threading
from pathlib import Path
from typing import Any

from fake_agent import FakeAgent, Watching

from ck_main.output.row_file import RowFile
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.tasks.dataset import Task


class Bench:
    """A runner with everything around it."""

    def __init__(self, folder: Path, behaviour: Any = None, **options: Any):
        self.rows = RowFile(folder / "out.jsonl")
        self.watching, self.stop = Watching(), threading.Event()
        agent, options_ = FakeAgent(behaviour=behaviour), RunOptions(**options)
        self.runner = TaskRunner(agent, self.rows, options_, self.watching, self.stop)

    def run(self, *tasks: Task) -> list[dict[str, Any]]:
        try:
            self.runner.run(tasks)
        finally:
            self.rows.close()
        return self.written()

    def written(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.rows.path.read_text().splitlines()]
