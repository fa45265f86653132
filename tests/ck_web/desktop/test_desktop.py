"""A desktop with a real program: keyboard, mouse, pictures, and its end."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ck_pro.computer import ScreenEnv
from ck_pro.computer.view import bytes_of, decoded
from ck_pro.events import ErrorObservation
from ck_pro.events.computer_schema import computer_action
from ck_pro.exceptions import ConfigError, EnvironmentFailure
from ck_web.desktop import DesktopComputer, DesktopConfig, missing_programs
from ck_web.desktop.keys import keysyms

LACKING = missing_programs() or ("" if shutil.which("xterm") else "no xterm: apt-get install xterm")
needs_desktop = pytest.mark.skipif(bool(LACKING), reason=LACKING)
TERMINAL = "xterm -geometry 80x24+0+0"


def until(done: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[DesktopComputer]:
    with DesktopComputer(TERMINAL, workdir=tmp_path) as computer:
        computer.move(100, 100)  # without a window manager, keys go to the window below the mouse
        yield computer


def servers(folder: Path | str) -> list[int]:
    """The X servers of the display in a folder."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    found = [line.split() for line in listed.splitlines() if f"{folder}" in line]
    return [int(pid) for pid, name, *_ in found if name == "Xvfb"]


@needs_desktop
@pytest.mark.integration
def test_a_program_gets_text_keys_and_clicks(terminal: DesktopComputer, tmp_path: Path) -> None:
    env = ScreenEnv(terminal)

    def does(**given: object) -> str:
        seen = env.execute(computer_action(given))
        assert not isinstance(seen, ErrorObservation), seen.text
        return seen.text

    assert "'xterm'" in env.observe().text
    typed = does(action="type", text="expr 17 \\* 3 > sum.txt; echo 'a-e/\\' >> sum.txt\n")
    assert "the picture changed in" in typed
    result = tmp_path / "sum.txt"
    until(lambda: result.exists() and result.read_text() == "51\na-e/\\\n")
    does(action="type", text="cat > typed.txt\n")
    does(action="type", text="one")
    does(action="keypress", keys=["ENTER"])
    does(action="keypress", keys=["CTRL", "D"])
    until(lambda: (tmp_path / "typed.txt").read_text() == "one\n")
    does(action="triple_click", x=20, y=8)
    assert env.named(computer_action({"action": "click", "x": 9, "y": 9})).target == (
        "window 'xterm'"
    )
    assert does(action="zoom", region=[0, 0, 320, 180]).endswith("in 1280x720")
    seen = env.observe()
    assert decoded(bytes_of(seen.image)).size == (1280, 720)
    assert decoded(bytes_of(seen.pictures[0].image)).size == (1280, 720)


@needs_desktop
@pytest.mark.integration
def test_the_pointer_is_drawn(terminal: DesktopComputer) -> None:
    env = ScreenEnv(terminal)
    env.execute(computer_action({"action": "move", "x": 1000, "y": 600}))  # on the black root
    image = decoded(bytes_of(env.observe().image))
    assert max(image.crop((1000, 600, 1016, 622)).convert("L").tobytes()) > 180
    assert max(image.crop((1100, 600, 1116, 622)).convert("L").tobytes()) < 60
    assert terminal.pointer() == (1000, 600)


@needs_desktop
@pytest.mark.integration
def test_programs_get_no_secrets_and_others_no_access(
    terminal: DesktopComputer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with DesktopComputer(TERMINAL, workdir=tmp_path) as other:
        other.move(100, 100)
        other.type("env > env.txt; echo > done\n")
        until((tmp_path / "done").exists)
    assert "sk-secret" not in (tmp_path / "env.txt").read_text()
    stranger = {"PATH": os.environ["PATH"], "DISPLAY": terminal.display.name, "HOME": "/nowhere"}
    refused = subprocess.run(
        ["xdotool", "getmouselocation"], env=stranger, capture_output=True, text=True
    )
    assert refused.returncode != 0


@needs_desktop
@pytest.mark.integration
def test_a_suspended_desktop_is_the_same_after_reconnecting(tmp_path: Path) -> None:
    first = DesktopComputer(TERMINAL, workdir=tmp_path)
    env = ScreenEnv(first)
    env.execute(computer_action({"action": "move", "x": 100, "y": 100}))
    env.execute(computer_action({"action": "type", "text": "word=kept\n"}))
    lease = env.suspend()
    assert lease is not None and not first.is_open
    second = DesktopComputer(TERMINAL, workdir=tmp_path)
    again = ScreenEnv(second, suspended=lease)
    assert again.taken_up
    again.execute(computer_action({"action": "type", "text": "echo $word > word.txt\n"}))
    until(lambda: (tmp_path / "word.txt").exists() and (tmp_path / "word.txt").read_text())
    assert (tmp_path / "word.txt").read_text() == "kept\n"
    again.close()
    assert not Path(lease["folder"]).exists()
    third = ScreenEnv(DesktopComputer({}), suspended=lease)  # the lease has ended: a new desktop
    assert not third.taken_up
    third.close()


@needs_desktop
@pytest.mark.integration
def test_the_desktop_of_a_killed_process_ends(tmp_path: Path) -> None:
    script = """
        from ck_web.desktop import DesktopComputer
        computer = DesktopComputer("xterm").__enter__()
        print(computer.display.folder, flush=True)
        input()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    with process:
        assert process.stdout is not None
        folder = process.stdout.readline().strip()
        assert len(servers(folder)) == 1
        process.kill()
    until(lambda: not servers(folder) and not Path(folder).exists())


@needs_desktop
@pytest.mark.integration
def test_a_program_that_cannot_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="cannot start 'no-such-program'"):
        DesktopComputer("no-such-program", workdir=tmp_path).__enter__()
    with pytest.raises(EnvironmentFailure, match="the program 'sh' ended with exit code 3"):
        DesktopComputer("sh -c 'exit 3'", workdir=tmp_path).__enter__()


@needs_desktop
@pytest.mark.integration
def test_closing_ends_the_programs_and_the_display(tmp_path: Path) -> None:
    with DesktopComputer(TERMINAL, workdir=tmp_path) as computer:
        folder = computer.display.folder
        assert len(servers(folder)) == 1
    assert servers(folder) == [] and not folder.exists()


@needs_desktop
@pytest.mark.integration
def test_an_x_server_that_ends_fails_the_environment(terminal: DesktopComputer) -> None:
    env = ScreenEnv(terminal)
    env.observe()
    (server,) = servers(terminal.display.folder)
    os.kill(server, signal.SIGKILL)
    until(lambda: _fails(env))


def _fails(env: ScreenEnv) -> bool:
    try:
        env.observe()
    except EnvironmentFailure as e:
        return "its X server ended" in str(e)
    return False


def test_a_missing_program_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="needs Xvfb and xdotool: apt-get install xvfb xdotool"):
        DesktopComputer("xterm").__enter__()
    closed = DesktopComputer("xterm")
    with pytest.raises(EnvironmentFailure, match="not open: use it in a `with` block"):
        closed.screenshot()
    closed.close()


def test_keys_have_x_names() -> None:
    assert keysyms(["CTRL", "A"]) == ["ctrl", "a"]
    assert keysyms(["CTRL", "SHIFT", "/"]) == ["ctrl", "shift", "U002F"]
    assert keysyms(["ArrowUp"]) == ["Up"] and keysyms(["Page_Down"]) == ["Next"]
    assert keysyms([" "]) == ["space"] and keysyms(["A"]) == ["A"]


def test_programs_may_be_one_command_line() -> None:
    config = DesktopConfig(programs="xterm -e 'top -b'")
    assert config.command_lines() == [["xterm", "-e", "top -b"]]


def test_a_framebuffer_of_another_depth_is_refused(tmp_path: Path) -> None:
    from ck_web.desktop.framebuffer import Framebuffer

    (tmp_path / "screen").write_bytes(io.BytesIO(bytes(200)).getvalue())
    with pytest.raises(EnvironmentFailure, match="not a framebuffer"):
        Framebuffer(tmp_path / "screen")
