"""The computer of a run that stopped for a person: the run that resumes uses the same one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_computers import DrawnComputer
from pages_site import browser_settings, serve

from ck_pro import Journal, Status
from ck_pro.model import CallContext, Reply
from ck_pro.testing import ScriptedLLM
from ck_web import BrowserComputer, ComputerAgent
from ck_web.browser import shared_servers
from ck_web.desktop import missing_programs

LACKING = missing_programs() or ("" if shutil.which("xterm") else "no xterm: apt-get install xterm")
TERMINAL = {"programs": "xterm -geometry 80x24+0+0"}


def call(number: int, name: str = "computer", **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def typist(messages: Any, context: CallContext) -> Reply:
    """Types a variable into the terminal, prints it in a file, and answers."""
    if context.step == 0:
        focus = call(0, action="move", x=100, y=100)
        return Reply("", tool_calls=[focus, call(1, action="type", text="word=kept\n")])
    if context.step == 1:
        return Reply("", tool_calls=[call(2, action="type", text="echo $word > word.txt\n")])
    return Reply("", tool_calls=[call(3, "stop", answer="typed")])


@pytest.mark.integration
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_the_desktop_of_a_stopped_run_is_used_again(tmp_path: Path) -> None:
    agent = ComputerAgent(
        model=ScriptedLLM(replies=typist),
        computer="desktop",
        desktop=TERMINAL,
        approver={"stop": [r"echo .*on window 'xterm'"]},
    )
    with Journal(tmp_path / "journal") as journal:
        session = agent.run("t", workdir=tmp_path, journal=journal)
        assert session.status is Status.SENSITIVE_ACTION, session.message
    with Journal(tmp_path / "journal") as journal:
        session = agent.resume(journal=journal, workdir=tmp_path, approve=True)
    assert session.status is Status.DONE, session.message
    until_written(tmp_path / "word.txt")
    assert (tmp_path / "word.txt").read_text() == "kept\n"
    typed = [s["action"]["code"] for s in session.steps]
    assert sum("word=kept" in code for code in typed) == 1


@pytest.mark.integration
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_held_desktop_survives_its_process(tmp_path: Path) -> None:
    script = """
        import json, os, signal
        from ck_pro.computer import ScreenEnv
        from ck_web.desktop import DesktopComputer
        computer = DesktopComputer({"programs": "xterm", "suspended_seconds": 60})
        env = ScreenEnv(computer)
        env.hold(True)
        print(json.dumps(env.lease()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    from ck_pro.computer import ScreenEnv
    from ck_web import DesktopComputer

    env = ScreenEnv(DesktopComputer({}, workdir=tmp_path), suspended=json.loads(done.stdout))
    assert env.taken_up and "'xterm'" in env.observe().text
    env.close()


def until_written(path: Path) -> None:
    import time

    end = time.monotonic() + 60
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)


# --- browsers ----------------------------------------------------------------------------------

PAGE = """<!doctype html><title>Bell</title><style>body { margin: 0 } button { position: absolute;
    left: 0; top: 0; width: 200px; height: 100px }</style><button>Ring</button>
    <p style="margin-top: 150px" id="p">0</p><script>let n = 0;
    document.querySelector('button').onclick = () => { n += 1; p.textContent = `rung ${n}` };
    </script>"""


@pytest.fixture
def site() -> Iterator[str]:
    with serve({"*": PAGE}) as url:
        yield f"{url}/"
        shared_servers.stop_servers()


def ringer(messages: Any, context: CallContext) -> Reply:
    """Rings twice, then answers with what the page says."""
    if context.step < 2:
        return Reply("", tool_calls=[call(context.step, action="click", x=50, y=50)])
    seen = json.dumps(messages)
    return Reply("", tool_calls=[call(9, "stop", answer=str("rung 2" in seen))])


@pytest.mark.browser
@pytest.mark.parametrize("opened", [False, True])
def test_the_browser_of_a_stopped_run_is_used_again(
    site: str, tmp_path: Path, opened: bool
) -> None:
    computer = BrowserComputer(site, web_env=browser_settings(), workdir=tmp_path)
    stops = iter([False, True, False])

    class Approver:
        def review(self, action: Any) -> Any:
            from ck_pro.approval import Decision

            return Decision("stop" if next(stops) else "approve")

    agent = ComputerAgent(model=ScriptedLLM(replies=ringer), computer=computer, approver=Approver())
    if opened:
        computer.__enter__()
    try:
        with Journal(tmp_path / "journal") as journal:
            session = agent.run("t", workdir=tmp_path, journal=journal)
            assert session.status is Status.SENSITIVE_ACTION, session.message
        with Journal(tmp_path / "journal") as journal:
            session = agent.resume(journal=journal, workdir=tmp_path, approve=True)
        assert (session.status, session.final_results["output"]) == (Status.DONE, "True")
    finally:
        if opened:
            computer.__exit__(None, None, None)


def test_the_callers_computer_is_used_again_if_its_screen_is_the_same(tmp_path: Path) -> None:
    def drawer(messages: Any, context: CallContext) -> Reply:
        if context.step < 2:
            return Reply(
                "", tool_calls=[call(context.step, action="click", x=9 + context.step, y=9)]
            )
        return Reply("", tool_calls=[call(9, "stop", answer="drawn")])

    computer = DrawnComputer()
    agent = ComputerAgent(
        model=ScriptedLLM(replies=drawer), computer=computer, approver={"stop": ["x=10"]}
    )
    with Journal(tmp_path / "journal") as journal:
        assert agent.run("t", journal=journal).status is Status.SENSITIVE_ACTION
    with Journal(tmp_path / "journal") as journal:
        session = agent.resume(journal=journal, approve=True)
    assert session.status is Status.DONE, session.message
    assert [c[1] for c in computer.calls] == [9, 10]
