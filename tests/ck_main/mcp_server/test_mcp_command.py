"""`python -m ck_main.mcp` with the client of the official SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from main_command import code_reply, write_lines
from pages_site import serve

pytest.importorskip("mcp", reason='needs the extra mcp: pip install "ck-pro[mcp]"')
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

pytestmark = [pytest.mark.integration, pytest.mark.worker]
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """The command line of a server whose model replays these tasks."""
    replies = [
        code_reply("Add.", "print(1 + 1)"),
        code_reply("Add.", "stop('2')", step=1),
        code_reply("Ask.", "stop(ask_human('The code?'))"),
        code_reply("Slow.", "import time\nwhile True:\n    time.sleep(0.1)"),
    ]
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    output = str(tmp_path / "out" / "a.jsonl")
    given = ["-m", model, "--planning", "off", "-o", output, "--allow", "127.0.0.1"]
    return [sys.executable, "-m", "ck_main.mcp", *given]


def use(command: list[str], work: Callable[[Client], Awaitable[None]]) -> None:
    """Start the server, and use it with a client over its standard streams."""

    async def main() -> None:
        program, *args = command
        env = {"PYTHONPATH": str(ROOT)}
        server = StdioServerParameters(command=program, args=args, env=env)
        async with Client(server) as client:
            await work(client)

    asyncio.run(main())


def rows(tmp_path: Path, name: str = "a") -> list[dict[str, Any]]:
    path = tmp_path / "out" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_client_runs_a_task_and_sees_its_progress(command: list[str], tmp_path: Path) -> None:
    lines: list[str] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        lines.append(str(message))

    async def work(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"run_task", "run_web_task", "resume_task", "browser_open"} <= tools.keys()
        assert tools["run_task"].input_schema["required"] == ["task"]
        done = await client.call_tool("run_task", {"task": "Add."}, progress_callback=progress)
        assert not done.is_error
        facts = done.structured_content
        assert (facts["output"], facts["status"]) == ("2", "done")
        empty = await client.call_tool("run_task", {"task": " "})
        assert empty.is_error and "empty" in empty.content[0].text

    use(command, work)
    assert "ck_agent, step 1: step_ended 2" in lines
    (row,) = rows(tmp_path)
    assert row["eval"]["pred"] == "2" and (tmp_path / "out" / "a" / row["id"]).is_dir()


def test_a_question_is_answered_by_another_call(command: list[str], tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        asked = (await client.call_tool("run_task", {"task": "Ask."})).structured_content
        assert asked["status"] == "human-intervention" and "The code?" in asked["message"]
        given = {"run": asked["run"], "answer": "4321"}
        done = (await client.call_tool("resume_task", given)).structured_content
        assert (done["status"], done["output"]) == ("done", "4321")
        again = await client.call_tool("resume_task", given)
        assert again.is_error and "is done" in again.content[0].text
        unknown = await client.call_tool("resume_task", {"run": "../.."})
        assert unknown.is_error

    use(command, work)
    assert [row["eval"]["pred"] for row in rows(tmp_path, "a-resumed-1")] == ["4321"]


def test_a_cancelled_call_stops_its_run_which_can_be_resumed(
    command: list[str], tmp_path: Path
) -> None:
    async def work(client: Client) -> None:
        started = asyncio.Event()

        async def progress(number: float, total: float | None, message: str | None) -> None:
            if "model_call" in str(message):
                started.set()

        call = asyncio.ensure_future(
            client.call_tool("run_task", {"task": "Slow."}, progress_callback=progress)
        )
        await asyncio.wait_for(started.wait(), 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        again = await client.call_tool("run_task", {"task": "Add."})
        assert again.structured_content["output"] == "2", "the server must go on"
        (folder,) = (tmp_path / "out" / "a").glob("run_task-*-1")
        while (ended := last_event(folder))["kind"] != "status":
            await asyncio.sleep(0.05)
        assert ended["data"]["stop_reason"] == "cancelled"

    use(command, work)
    assert len(rows(tmp_path)) == 1


def last_event(folder: Path) -> dict[str, Any]:
    lines = (folder / "events.jsonl").read_text().splitlines()
    event: dict[str, Any] = json.loads(lines[-1])
    return event


@pytest.mark.browser
def test_a_client_uses_the_browser_step_by_step(command: list[str]) -> None:
    async def work(client: Client, url: str) -> None:
        none = await client.call_tool("browser_click", {"id": 1})
        assert none.is_error and "browser_open" in none.content[0].text
        page = await client.call_tool("browser_open", {"url": url})
        assert "browser: b1" in page.content[0].text and "link 'Next'" in page.content[0].text
        page = await client.call_tool("browser_click", {"id": "Next", "browser": "b1"})
        assert "mcp-second" in page.content[0].text
        failed = await client.call_tool("browser_click", {"id": 99})
        assert failed.is_error and "Element [99] is not on the page" in failed.content[0].text
        wrong = await client.call_tool("browser_click", {"no": 1})
        assert wrong.is_error
        closed = await client.call_tool("browser_close", {})
        assert closed.content[0].text == "closed b1"

    pages = {"/mcp-first": "<title>1</title><a href='/mcp-second'>Next</a>", "/mcp-second": "two"}
    with serve(pages) as site:
        use(command, lambda client: work(client, f"{site}/mcp-first"))


@pytest.fixture
def address(command: list[str]) -> Iterator[str]:
    """Address of a server over HTTP."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen([*command, "--http", "0"], stderr=subprocess.PIPE, text=True, env=env)
    assert server.stderr is not None
    line = server.stderr.readline()
    try:
        assert line.startswith("listening on http://127.0.0.1:"), line
        yield line.split()[-1]
    finally:
        server.terminate()
        server.communicate(timeout=60)


def test_clients_share_a_server_over_http(address: str) -> None:
    async def main() -> None:
        async with Client(address) as client:
            done = await client.call_tool("run_task", {"task": "Add."})
            assert done.structured_content["output"] == "2"
        async with Client(address) as client:
            assert "run_task" in {tool.name for tool in (await client.list_tools()).tools}

    asyncio.run(main())


def test_a_bad_option_is_one_line() -> None:
    started = time.monotonic()
    command = [sys.executable, "-m", "ck_main.mcp", "-u", "max_step=1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, timeout=100
    )
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "max_steps" in done.stderr and time.monotonic() - started < 100
