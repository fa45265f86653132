"""The main command in this process, and recordings for it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ck_main.cli.command import run_command
from ck_main.main import cli

PLAN = '{"completed_list": [], "todo_list": ["compute"], "experience": [], "information": []}'


def reply(task: str, phase: str, text: str, step: int = 0) -> dict[str, Any]:
    key = {"agent": "ck_agent", "phase": phase, "step": step, "task": task, "instructions": ""}
    return {**key, "reply": text}


def code_reply(task: str, code: str, step: int = 0) -> dict[str, Any]:
    return reply(task, "action", f"Thought: compute.\n```python\n{code}\n```", step)


def write_lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = run_command(cli, [str(a) for a in args])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return code, shown.out, shown.err
