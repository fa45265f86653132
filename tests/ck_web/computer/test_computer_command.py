"""`python -m ck_web.main --computer`: its options, and a desktop from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fake_wire import FakeWire

from ck_main.cli.command import run_command
from ck_pro.model import Reply
from ck_pro.testing import FakeChatServer
from ck_web.desktop import missing_programs
from ck_web.main import cli

LACKING = missing_programs() or ("" if shutil.which("xterm") else "no xterm: apt-get install xterm")


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"c{number}", "type": "function", "function": function}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--show"], "--show and --debug need --computer"),
        (["--computer", "laptop"], "'laptop' is not one of 'browser', 'desktop'"),
        (["--computer", "desktop", "--start-url", "http://x.test"], "--start-url is for a browser"),
    ],
)
def test_wrong_options_are_reported(
    arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(cli, [*arguments, "-t", "t", "-m", "manual"]) == 2
    assert message in capfd.readouterr().err


def test_a_missing_program_ends_the_command_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_command(cli, ["--computer", "desktop", "-t", "t", "-m", "manual"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line == ("error: a desktop needs Xvfb and xdotool: apt-get install xvfb xdotool")


@pytest.mark.integration
def test_screens_are_shown_and_items_printed(
    wire: FakeWire, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    click = Reply("", tool_calls=[call(1, "computer", action="click", x=5, y=6)])
    with FakeChatServer([click, Reply("", tool_calls=[call(2, "stop", answer="42")])]) as server:
        common = ["-t", "t", "-m", server.url, "--plain", "-o", str(tmp_path / "a.jsonl")]
        shown = ["--computer", "browser", "--show", "--debug", "--start-url", "http://shop.test/"]
        settings = ["-u", f"web_env.server_url={wire.url}"]
        assert run_command(cli, [*shown, *common, *settings]) == 0
    printed = capfd.readouterr()
    assert printed.out == "42\n" and "'call_id': 'c1'" in printed.err
    (path,) = [line for line in printed.err.splitlines() if line.startswith("screen: ")]
    assert Path(path.removeprefix("screen: ")).read_bytes()[:3] in (b"\x89PN", b"\xff\xd8\xff")
    opened = [body["url"] for route, body in wire.requests if route == "openPage"]
    assert opened == ["http://shop.test/"]


@pytest.mark.integration
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_a_desktop_is_driven_from_the_command_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    moved = call(1, "computer", action="move", x=100, y=100)
    typed = call(2, "computer", action="type", text="expr 17 \\* 3 > product.txt\n")
    waited = call(3, "computer", action="wait", ms=500)
    read = Reply("", tool_calls=[moved, typed, waited])
    with FakeChatServer([read, Reply("", tool_calls=[call(4, "stop", answer="51")])]) as server:
        output = tmp_path / "a.jsonl"
        arguments = ["--computer", "desktop", "-u", "desktop.programs=xterm -geometry 80x24+0+0"]
        common = ["-t", "t", "-m", server.url, "--plain", "-o", str(output)]
        assert run_command(cli, [*arguments, *common]) == 0
    assert capfd.readouterr().out == "51\n"
    (row,) = map(json.loads, output.read_text().splitlines())
    first = row["session"]["steps"][0]["action"]
    assert [s["text"].split(" ")[0] for s in first["screens"]] == ["move", "type", "wait"]
    state = first["computer_state_before"]
    assert state["environment"] == "linux" and len(state["screen"]) == 16
    (result,) = (tmp_path / "a").rglob("product.txt")
    assert result.read_text() == "51\n"
