"""A full disk ends a run with one line that names the reason and the remedy."""

import errno
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from fake_agent import Call, FakeAgent
from rich.console import Console

from ck_main.cli.job import Job, run_job
from ck_main.output.output_files import write_advice, write_failure
from ck_main.runner.run_options import RunOptions
from ck_pro.command_line import ExitCode, run_command
from ck_pro.exceptions import JournalError, OutputError
from ck_pro.session import StopReason

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads paths in /proc"),
]


def names_reason_and_remedy(errors: list[str]) -> bool:
    [line] = errors
    remedy = "; free disk space, then repeat the command"
    return "No space left on device" in line and line.endswith(remedy)


class Disk:
    """A disk that is full for some paths: no file or folder is created there, and none grows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.is_full: Callable[[str], bool] = lambda path: False
        self._monkeypatch = monkeypatch
        for module, name in ((os, "mkdir"), (shutil, "copyfile"), (tempfile, "TemporaryFile")):
            self._guard(module, name, lambda args, kwargs: (*args, *kwargs.values()))
        self._guard(os, "open", lambda args, kwargs: args[:1] if args[1] & os.O_CREAT else ())
        self._guard(os, "write", lambda args, kwargs: [os.readlink(f"/proc/self/fd/{args[0]}")])

    def _guard(self, module: Any, name: str, paths: Callable[[Any, Any], Any]) -> None:
        function = getattr(module, name)

        def guarded(*args: Any, **kwargs: Any) -> Any:
            for path in map(str, paths(args, kwargs)):
                if self.is_full(path):
                    raise OSError(errno.ENOSPC, "No space left on device", path)
            return function(*args, **kwargs)

        self._monkeypatch.setattr(module, name, guarded)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Command:
    """The command on two tasks, the second with a file."""

    def __init__(self, folder: Path):
        self.output = folder / "out.jsonl"
        self.input = folder / "tasks.jsonl"
        (folder / "data.txt").write_text("x")
        lines = [{"question": "a"}, {"question": "b", "file_name": "data.txt"}]
        self.input.write_text("".join(json.dumps(line) + "\n" for line in lines))
        recording = folder / "replies.jsonl"
        recording.write_text("")
        self.agent = FakeAgent(model=f"replay:{recording}")

    def run(self, **facts: Any) -> tuple[ExitCode, list[str]]:
        """Run the command; return its exit code and the lines with "error:"."""
        screen = Console(file=io.StringIO(), width=300)
        job = Job(input=self.input, output=self.output, **facts)
        try:
            code = run_job(self.agent, job, screen, Console(file=io.StringIO()))[0]
        except OutputError as e:
            return ExitCode.OUTPUT, [f"error: {e}"]
        shown = screen.file.getvalue()  # type: ignore[attr-defined]
        return code, [line for line in shown.splitlines() if "error:" in line]

    def rows(self) -> list[str]:
        return [json.loads(line)["id"] for line in self.output.read_text().splitlines()]


@pytest.mark.parametrize(
    "place",
    [
        "out/task0001",
        "out/task0001/lock",
        "out/task0001/work",
        "out/task0001/work/data.txt",
        "out/task0001/events.jsonl",
        "out.jsonl",
    ],
)
def test_a_full_disk_ends_the_run_with_one_line_wherever_it_strikes(
    tmp_path: Path, disk: Disk, place: str
) -> None:
    command, path = Command(tmp_path), str(tmp_path / place)

    def behaviour(call: Call) -> str:
        if call.task == "b":  # its journal is in use: only the row fails
            disk.is_full = lambda p: p == path
        return call.task

    if place == "out.jsonl":
        command.agent.behaviour = behaviour
    else:
        disk.is_full = lambda p: p == path
    code, errors = command.run()
    assert code is ExitCode.OUTPUT
    assert names_reason_and_remedy(errors)
    assert command.rows() == ["task0000"]

    disk.is_full = lambda p: False
    command.agent.behaviour = None
    assert command.run() == (ExitCode.DONE, [])
    assert command.rows() == ["task0000", "task0001"]


@pytest.mark.parametrize("where", ["the task's folder", "temporary files"])
def test_a_task_that_fails_on_a_full_disk_gets_no_row(
    tmp_path: Path, disk: Disk, where: str
) -> None:
    command = Command(tmp_path)

    def behaviour(call: Call) -> Any:
        if call.task == "a":
            return "A"
        full = tempfile.gettempdir() if where == "temporary files" else str(call.workdir.parent)
        disk.is_full = lambda p: p == full
        return StopReason.ENVIRONMENT_FAILURE  # the journal still has room to record it

    command.agent.behaviour = behaviour
    code, errors = command.run(options=RunOptions(retries=0))
    assert code is ExitCode.OUTPUT and names_reason_and_remedy(errors)
    assert command.rows() == ["task0000"]


def test_a_rerun_on_a_full_disk_changes_no_row(tmp_path: Path, disk: Disk) -> None:
    command = Command(tmp_path)
    assert command.run()[0] is ExitCode.DONE
    disk.is_full = lambda p: p.endswith("attempt-1")
    code, errors = command.run(rerun=frozenset({"all"}))
    assert code is ExitCode.OUTPUT and names_reason_and_remedy(errors)
    assert command.rows() == ["task0000", "task0001"]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free disk space"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EACCES, "fix this, then repeat the command"),
    ],
)
def test_the_advice_fits_the_error(number: int, advice: str) -> None:
    error = OSError(number, os.strerror(number), "/x/events.jsonl")
    assert advice in write_advice(error)
    assert str(write_failure(error)).startswith(f"cannot write /x/events.jsonl: {error.strerror}; ")
    try:
        try:
            raise error
        except OSError as e:
            raise JournalError(f"cannot write the journal: {e.strerror}") from None
    except JournalError as e:
        assert advice in str(write_failure(e)) and "; " in str(write_failure(e))


def test_an_internal_error_on_a_full_disk_is_still_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    def broken() -> None:
        raise ValueError("x")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    assert run_command(click.Command("broken", callback=broken), []) == 6
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.endswith("the full log cannot be written: No space left on device\n")
