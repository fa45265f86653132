"""A task file, its output and the screen of a run."""

import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from ck_main.cli.job import Job, run_job
from ck_pro.command_line import ExitCode


class Desk:
    """A folder with a task file, and what was shown."""

    def __init__(self, folder: Path, rows: Any):
        self.input, self.output = folder / "tasks.jsonl", folder / "out.jsonl"
        self.input.write_text(
            "".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows)
        )
        self.screen = Console(file=io.StringIO(), width=300)
        self.out = Console(file=io.StringIO(), width=200)

    def run(self, agent: Any, **facts: Any) -> ExitCode:
        job = Job(**{"input": self.input, "output": self.output, **facts})
        return run_job(agent, job, self.screen, self.out)[0]

    def ids(self) -> list[str]:
        return [json.loads(line)["id"] for line in self.output.read_text().splitlines()]

    def said(self) -> str:
        return self.screen.file.getvalue()  # type: ignore[attr-defined, no-any-return]

    def table(self) -> str:
        return self.out.file.getvalue()  # type: ignore[attr-defined, no-any-return]
