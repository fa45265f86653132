"""A person at a real terminal who plays the model of a sub-agent, and stops."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ck_pro.command_line import ExitCode
from ck_pro.journal import read_events
from ck_pro.session import Status, sessions_from_events

pytestmark = [pytest.mark.worker, pytest.mark.integration]
WAIT = 120.0  # seconds: what is waited for comes within some, but on a busy machine

PROGRAM = """
import sys
import ck_main.main as main
from ck_main.cli.command import run_command
from ck_pro import MultiStepAgent, StopTool
from ck_pro.tools.human import AskHumanTool

class Delegating(main.CKAgent):
    helper: MultiStepAgent = MultiStepAgent(name="helper", tools=[AskHumanTool(), StopTool()])
    sub_agents = ["helper"]
    templates = {"plan": None, "action": "ck_action", "end": None}

main.CKAgent = Delegating
sys.exit(run_command(main.cli))
"""
CALL = "```python\nfound = helper('Look.')\nstop(found['output'])\n```\n/send\n"


class Terminal:
    """A command in a new pseudo-terminal."""

    def __init__(self, folder: Path, *args: str):
        self.master, slave = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *args, "-m", "manual"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**os.environ, "LINES": "100000", "TERM": "dumb"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def expect(self, text: str) -> None:
        """Wait until the terminal shows a text, after what was expected before."""
        end = time.monotonic() + WAIT
        while text not in self.shown:
            assert time.monotonic() < end, f"no {text!r} in: {self.shown[-2000:]}"
            assert self._read(), f"the end, and no {text!r} in: {self.shown[-2000:]}"
        self.shown = self.shown.split(text, 1)[1]

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        """Wait for the end of the command; its exit code. `shown` is all that came."""
        end = time.monotonic() + WAIT
        while self._read():
            assert time.monotonic() < end, f"it does not end: {self.shown[-2000:]}"
        return self.process.wait(WAIT)

    def _read(self) -> bool:
        if not select.select([self.master], [], [], 0.1)[0]:
            return True
        with contextlib.suppress(OSError):  # its other side is closed
            data = os.read(self.master, 65536)
            self.shown += data.decode(errors="replace")
            return bool(data)
        return False

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@contextlib.contextmanager
def terminal(folder: Path, *args: str) -> Iterator[Terminal]:
    one = Terminal(folder, *args)
    try:
        yield one
    finally:
        one.close()


def at_the_helpers_prompt(one: Terminal) -> None:
    one.expect("you are the model: ck_agent, action")
    one.expect("/send on a separate line")
    one.type(CALL)
    one.expect("you are the model: ck_agent/helper, action, step 0")
    one.expect("/send on a separate line")


def statuses(folder: Path) -> list[Status]:
    sessions = sessions_from_events(read_events(next(folder.glob("out/*/events.jsonl")).parent))
    return [s.status for s in sessions.values()]


def logged(folder: Path) -> str:
    """Return the warnings of the run."""
    log = folder / "out" / "run.log"
    return log.read_text() if log.exists() else ""


def resumed_at_the_helpers_prompt(folder: Path) -> None:
    run = next(folder.glob("out/*/events.jsonl")).parent
    with terminal(folder, "--resume", str(run)) as one:
        one.expect("you are the model: ck_agent/helper, action, step 0")
        one.expect("/send on a separate line")
        one.type("```python\nstop('found it')\n```\n/send\n")
        assert one.end() == ExitCode.DONE and "found it" in one.shown


def test_ctrl_c_at_a_sub_agents_prompt_acts_at_once(tmp_path: Path) -> None:
    with terminal(tmp_path, "-t", "Do it.", "-o", "out.jsonl") as one:
        at_the_helpers_prompt(one)
        one.type("half a reply\n\x03")
        assert one.end() == ExitCode.STOPPED
        assert "did not stop within" not in one.shown and "Traceback" not in one.shown
    assert statuses(tmp_path) == [Status.IN_PROGRESS, Status.IN_PROGRESS]
    assert logged(tmp_path) == "", "the run waited for a prompt that blocked"
    resumed_at_the_helpers_prompt(tmp_path)


def test_an_interrupt_stops_a_sub_agents_prompt_that_reads_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "-t", "Do it.", "-o", "out.jsonl", "-m", "manual"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(f"{CALL}half a reply\n".encode())
        process.stdin.flush()
        assert any(b"you are the model: ck_agent/helper" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        text = process.stderr.read()
        assert process.wait(WAIT) == ExitCode.STOPPED
    assert b"did not stop within" not in text and b"Traceback" not in text
    assert statuses(tmp_path) == [Status.IN_PROGRESS, Status.IN_PROGRESS]
    assert logged(tmp_path) == "", "the run waited for a prompt that blocked"
    resumed_at_the_helpers_prompt(tmp_path)


def test_one_pipe_can_contain_tasks_and_manual_replies(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "-o", "out.jsonl", "-m", "manual"]
    typed = "Task one\nstop('one')\n/send\nTask two\nstop('two')\n/send\n__END__\nTask three\n"
    done = subprocess.run(
        command, input=typed.encode(), capture_output=True, cwd=tmp_path, timeout=WAIT, check=True
    )
    assert done.stdout.decode().split() == ["one", "two"]


def test_ctrl_c_at_a_question_of_a_sub_agent_acts_at_once(tmp_path: Path) -> None:
    with terminal(tmp_path, "-t", "Do it.", "-o", "out.jsonl") as one:
        at_the_helpers_prompt(one)
        one.type("```python\nstop(ask_human('The code?'))\n```\n/send\n")
        one.expect("ck_agent/helper asks: The code?")
        one.type("12\x03")
        assert one.end() == ExitCode.STOPPED
    run = next(tmp_path.glob("out/*/events.jsonl")).parent
    ended = [e["data"] for e in read_events(run) if e["kind"] == "call"]
    assert [(d["name"], d["interrupted"]) for d in ended] == [("ask_human", True), ("helper", True)]
    with terminal(tmp_path, "--resume", str(run)) as one:
        one.expect("ck_agent/helper asks: The code?")
        one.type("1234\n")
        assert one.end() == ExitCode.DONE and "1234" in one.shown


def test_abort_at_a_sub_agents_prompt_ends_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    with terminal(tmp_path, "-t", "Do it.", "-o", "out.jsonl") as one:
        at_the_helpers_prompt(one)
        one.type("/abort\n")
        assert one.end() == ExitCode.UNREACHABLE
        assert "aborted by the user (ck_agent/helper" in one.shown
        assert one.shown.count("you are the model") == 0 and "Traceback" not in one.shown
    resumed_at_the_helpers_prompt(tmp_path)
