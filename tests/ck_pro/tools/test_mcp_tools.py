"""The tools of MCP servers: a public one, and small ones that fail in every way."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import code

from ck_pro import MultiStepAgent, Status, StopTool
from ck_pro.exceptions import ConfigError, ToolError
from ck_pro.testing import ScriptedLLM
from ck_pro.tools.mcp import McpServers, read_servers

pytest.importorskip("mcp", reason='needs the extra mcp: pip install "ck-pro[mcp]"')
pytestmark = pytest.mark.integration

SERVER = '''
import sys
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
server = MCPServer("small")

@server.tool()
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b

@server.tool(name="say-it", annotations={"readOnlyHint": True})
def say(text: str) -> str:
    """Say it."""
    return "said " + text

@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("it broke")

@server.tool()
async def sleep() -> str:
    """Sleep."""
    import anyio
    await anyio.sleep(3600)

@server.tool()
def die() -> str:
    """Die."""
    import os
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)

@server.tool()
def picture() -> Image:
    """Draw."""
    return Image(data=b"\\x89PNG fake", format="png")

if "http" in sys.argv:
    import socket, uvicorn
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(
        sockets=[listening]
    )
else:
    server.run("stdio")
'''


def entry(timeout: float = 60, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-c", SERVER], "timeout": timeout, **more}


@pytest.fixture(scope="module")
def small() -> Iterator[dict[str, Any]]:
    with McpServers({"small": entry()}) as servers:
        yield {tool.name: tool for tool in servers.tools}


def test_an_agent_uses_a_public_server_and_sees_its_errors(tmp_path: Path) -> None:
    pytest.importorskip("mcp_server_time")
    steps = [
        "try:\n    convert_time('UTC', '99:00', 'UTC')\nexcept Exception as e:\n    print(e)",
        "found = convert_time(source_timezone='UTC', time='12:00', target_timezone='Asia/Tokyo')\n"
        "stop(found['target']['datetime'][11:])",
    ]
    command = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"time": command}}))
    with McpServers(file) as servers:
        model = ScriptedLLM([code(step) for step in steps])
        agent = MultiStepAgent(model=model, tools=[*servers.tools, StopTool()])
        session = agent.run("When?", workdir=tmp_path)
    assert session.status is Status.DONE, session.message
    assert session.final_results["output"] == "21:00:00+09:00"
    assert "Expected HH:MM" in session.steps[0]["action"]["observation"]
    prompt = model.calls[0].messages[0]["content"]
    assert "convert_time(source_timezone: str, time: str, target_timezone: str)" in str(prompt)


def test_a_schema_becomes_a_signature(small: dict[str, Any]) -> None:
    definition = small["add"].get_function_definition(True)
    assert definition == "- add(a: int, b: int = 2): Add two numbers."
    assert small["add"].parameters["required"] == ["a"]
    assert small["say_it"].on_resume == "again" and small["add"].on_resume == "answer"


@pytest.mark.parametrize(("args", "kwargs"), [((1, 4), {}), ((), {"a": 1, "b": 4}), ((3,), {})])
def test_results_are_values(
    small: dict[str, Any], args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    assert small["add"](*args, **kwargs) == 5
    assert small["say_it"]("x") == "said x"


def test_failures_are_errors_that_the_model_sees(small: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="it broke"):
        small["fail"]()
    with pytest.raises(ToolError, match="int"):
        small["add"](a="many")


def test_a_picture_is_saved_for_the_code(small: dict[str, Any], tmp_path: Path) -> None:
    steps = ["picture()\nprint(picture())", "stop(open('picture-1.png', 'rb').read()[1:4])"]
    model = ScriptedLLM([code(step) for step in steps])
    agent = MultiStepAgent(model=model, tools=[small["picture"], StopTool()])
    session = agent.run("Draw.", workdir=tmp_path)
    assert session.final_results["output"] == "b'PNG'"
    assert "saved as 'picture-2.png'" in session.steps[0]["action"]["observation"]


def test_a_call_that_takes_too_long_and_a_dead_server_are_errors() -> None:
    with McpServers({"small": entry(timeout=5), "other": entry()}) as servers:
        tools = {tool.name: tool for tool in servers.tools}
        assert "small_add" in tools and "other_add" in tools, "names must be unique"
        with pytest.raises(ToolError, match="sleep: no answer within 5 s"):
            tools["small_sleep"]()
        assert tools["small_add"](1) == 3
        with pytest.raises(ToolError, match="last words"):
            tools["other_die"]()
        with pytest.raises(ToolError, match="last words"):
            tools["other_add"](1)
        assert tools["small_add"](1) == 3


def test_a_server_over_http_works_with_headers(tmp_path: Path) -> None:
    import subprocess

    command = [sys.executable, "-c", SERVER, "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
            for headers in ({}, {"Authorization": "Bearer ${HOME}"}):
                with McpServers({"web": {"url": url, "headers": headers}}) as servers:
                    tools = {tool.name: tool for tool in servers.tools}
                    assert tools["add"](a=1) == 3
        finally:
            server.kill()


def test_a_server_gives_the_chosen_tools_to_the_named_agents() -> None:
    with McpServers({"small": entry(tools=["add"], agents=["helper"])}) as servers:
        assert [tool.name for tool in servers.tools] == ["add"]
        assert not servers.tools_for("main", main=True)
        assert [tool.name for tool in servers.tools_for("helper", main=False)] == ["add"]


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({"command": "no-such-program-anywhere"}, "did not start"),
        ({"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]}, "licence"),
        ({"url": "http://127.0.0.1:9/mcp", "timeout": 5}, "did not start"),
    ],
)
def test_a_server_that_does_not_start_is_one_line(server: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as e, McpServers({"bad": server}):
        pass
    assert "\n" not in str(e.value) and "'bad'" in str(e.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "no object mcpServers"),
        ('{"mcpServers": {"a": {}}}', "either command or url"),
        ('{"mcpServers": {"a": {"command": "x", "url": "y"}}}', "either command or url"),
        ('{"mcpServers": {"a": {"comand": "x"}}}', "mcpServers.a.comand"),
        ('{"mcpServers": {"a": {"url": "x", "type": "sse"}}}', "type sse is not supported"),
        ("{", "line 1"),
    ],
)
def test_an_invalid_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as e:
        read_servers(file)
    assert "\n" not in str(e.value)
