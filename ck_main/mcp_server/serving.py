"""Serve the tools on standard input and output, or over HTTP."""

from __future__ import annotations

import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from ck_main.agent import CKAgent
from ck_main.mcp_server.browsers import Browsers
from ck_main.mcp_server.runs import AgentRuns
from ck_main.mcp_server.server import make_server
from ck_main.runner.run_options import RunOptions


def serve(
    agent: CKAgent, output: Path, options: RunOptions, *, port: int | None, with_browser: bool
) -> None:
    """Serve until the client disconnects (standard input closes), or a signal comes.

    Args:
        agent: the main agent; its web agent is served, too.
        output: file of rows.
        options: limits of the runs.
        port: loopback port for HTTP, 0 for any; None for standard input and output.
        with_browser: whether to offer the tools of the browser.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    runs = AgentRuns({"run_task": agent, "run_web_task": agent.web_agent}, output, options)
    browsers = Browsers(agent.web_agent.web_env) if with_browser else None
    server, tools = make_server(runs, browsers)
    try:
        if port is None:
            anyio.run(_serve_stdio, server)
        else:
            anyio.run(_serve_http, server, port)
    finally:
        tools.wait_until_idle()
        if browsers is not None:
            browsers.close()
        runs.close()


async def _serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _serve_http(server: Server[Any], port: int) -> None:
    import uvicorn

    with closing(socket.create_server(("127.0.0.1", port))) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        sys.stderr.write(f"listening on {address}\n")
        sys.stderr.flush()
        config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
        await uvicorn.Server(config).serve(sockets=[listening])
