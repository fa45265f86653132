"""The MCP server: lists the tools, runs the calls in threads, reports progress, cancels."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from anyio.from_thread import BlockingPortal
from mcp.server.lowlevel.server import Server

from ck_main.mcp_server.browsers import PREFIX, Browsers
from ck_main.mcp_server.runs import AgentRuns
from ck_pro.exceptions import CKError
from ck_pro.version import __version__

_log = logging.getLogger(__name__)
_END_SECONDS = 30.0
_TASK = {"type": "string", "description": "The complete instruction; the agent sees nothing else."}
_URL = {"type": "string", "description": "Start page. Default: the first address in the task."}
_RESUME_SCHEMA = {
    "type": "object",
    "properties": {
        "run": {"type": "string", "description": "`run` from the result of the task."},
        "answer": {"type": "string", "description": "Answer to the question in `message`."},
        "approve": {
            "type": "boolean",
            "description": "Run the action for which the run stopped (status sensitive-action).",
        },
    },
    "required": ["run"],
}
_RESULT = (
    "Returns `output` (the answer), `status` (done; ambiguity and human-intervention: answer with "
    "resume_task; sensitive-action: approve with resume_task; problem), `message` and `run`."
)
RESUME = "resume_task"


class ToolServer:
    """The tools of the agents and browsers.

    Args:
        runs: runs the agents.
        browsers: the browsers; None offers no browser tools.
    """

    def __init__(self, runs: AgentRuns, browsers: Browsers | None):
        self._runs, self._browsers = runs, browsers
        self._active: set[threading.Event] = set()
        self._idle = threading.Condition()

    def tools(self) -> list[types.Tool]:
        """Return all tools."""
        found = []
        for tool, agent in self._runs.agents.items():
            properties = {"task": _TASK}
            if hasattr(agent, "web_env"):
                properties["target_url"] = _URL
            schema = {"type": "object", "properties": properties, "required": ["task"]}
            text = f"{agent.description.strip()}\n\n{_RESULT}"
            found.append(types.Tool(name=tool, description=text, input_schema=schema))
        text = f"Resume a task that stopped for a person, failed or was cancelled. {_RESULT}"
        found.append(types.Tool(name=RESUME, description=text, input_schema=_RESUME_SCHEMA))
        if self._browsers is not None:
            found += [types.Tool(**tool) for tool in self._browsers.tools()]
        return found

    async def call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Do one call in a thread; cancel its run if the client cancels the request."""
        stop = threading.Event()
        async with BlockingPortal() as portal:
            report = partial(_report, portal, context, _Counter())
            work = partial(self._work, params.name, params.arguments or {}, stop, report)
            try:
                result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
            finally:
                stop.set()
        return result

    def wait_until_idle(self) -> None:
        """Stop all runs, and wait for their last records."""
        with self._idle:
            for stop in self._active:
                stop.set()
            self._idle.wait_for(lambda: not self._active, _END_SECONDS)

    def _work(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        stop: threading.Event,
        report: Callable[[str], None],
    ) -> types.CallToolResult:
        with self._idle:
            self._active.add(stop)
        try:
            return self._result(tool, arguments, stop, report)
        except CKError as e:
            return _text(str(e), is_error=True)
        except Exception as e:  # noqa: BLE001 - one call must not end the server
            _log.exception("%s failed", tool)
            return _text(f"internal error: {type(e).__name__}: {e}", is_error=True)
        finally:
            with self._idle:
                self._active.discard(stop)
                self._idle.notify_all()

    def _result(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        stop: threading.Event,
        report: Callable[[str], None],
    ) -> types.CallToolResult:
        if tool in self._runs.agents:
            task = str(arguments.get("task") or "").strip()
            if not task:
                return _text("task: it is empty", is_error=True)
            url = str(arguments.get("target_url") or "")
            return _facts(self._runs.start(tool, task, url, stop, report))
        if tool == RESUME:
            answer, approve = str(arguments.get("answer") or ""), bool(arguments.get("approve"))
            run = str(arguments.get("run") or "")
            return _facts(self._runs.resume(run, answer, approve, stop, report))
        if self._browsers is not None and tool.startswith(PREFIX):
            return _text(self._browsers.call(tool, arguments))
        return _text(f"no tool {tool!r}", is_error=True)


def make_server(runs: AgentRuns, browsers: Browsers | None) -> tuple[Server[Any], ToolServer]:
    """Return the protocol's server, and its tools.

    Args:
        runs: runs the agents.
        browsers: the browsers; None offers no browser tools.
    """
    tools = ToolServer(runs, browsers)

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools.tools())

    server: Server[Any] = Server(
        "ck-pro", version=__version__, on_list_tools=list_tools, on_call_tool=tools.call
    )
    return server, tools


class _Counter:
    """Counts the reports of a call."""

    def __init__(self) -> None:
        self.count = 0


def _report(portal: BlockingPortal, context: Any, counter: _Counter, line: str) -> None:
    """Send a line of progress; the client may have cancelled or hung up meanwhile."""
    counter.count += 1
    with suppress(Exception):
        portal.start_task_soon(
            partial(context.session.report_progress, float(counter.count), message=line)
        )


def _facts(facts: dict[str, Any]) -> types.CallToolResult:
    text = json.dumps(facts, ensure_ascii=False)
    content: list[Any] = [types.TextContent(type="text", text=text)]
    failed = facts["status"] == "problem"
    return types.CallToolResult(content=content, structured_content=facts, is_error=failed)


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, is_error=is_error)
