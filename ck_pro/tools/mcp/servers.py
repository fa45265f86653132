"""`McpServers`: start MCP servers, keep the connections on one event loop, and call their tools."""

from __future__ import annotations

import asyncio
import concurrent.futures
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TextIO, cast

from ck_pro.exceptions import ConfigError, EnvironmentFailure, ToolError
from ck_pro.executor import current_call
from ck_pro.tool import Tool
from ck_pro.tools.mcp.entries import ServerEntry, expanded, read_servers
from ck_pro.tools.mcp.tool import McpTool, python_name

_CLOSE_SECONDS = 10.0
_POLL_SECONDS = 0.1
_MAX_PAGES = 100
_EXTRA = 'the package mcp is missing: pip install "ck-pro[mcp]"'


class McpServers:
    """Running MCP servers and their tools. Thread-safe; use it with `with`.

    >>> servers = McpServers({"time": {"command": "mcp-server-time"}})  # doctest: +SKIP
    >>> with servers:  # doctest: +SKIP
    ...     agent = CKAgent(tools=["ask_human", "stop", *servers.tools])

    Args:
        servers: entries by name, or the path of an MCP file.

    Raises:
        ConfigError: an entry is invalid, the package `mcp` is missing, or (from `with`) a server
            does not start.
    """

    def __init__(self, servers: Mapping[str, Any] | Path | str):
        if isinstance(servers, Mapping):
            self.entries = {n: ServerEntry.model_validate(e) for n, e in servers.items()}
        else:
            self.entries = read_servers(servers)
        self._servers: list[_Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="mcp", daemon=True)

    def __enter__(self) -> McpServers:
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise ConfigError(_EXTRA) from None
        self._thread.start()
        try:
            self._servers = [_Server(name, e, self._loop) for name, e in self.entries.items()]
            for server in self._servers:
                server.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the servers; calls in progress fail. Later calls have no effect."""
        for server in self._servers:
            server.close()
        self._servers = []
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSE_SECONDS)
        if not self._loop.is_running() and not self._loop.is_closed():
            self._loop.close()

    @property
    def tools(self) -> list[Tool]:
        """The tools of all servers; see `tools_for`."""
        return self._tools(self._servers)

    def tools_for(self, agent: str, main: bool) -> list[Tool]:
        """Return the tools for an agent.

        A tool whose name is not unique is named SERVER_TOOL.

        Args:
            agent: its name.
            main: whether it is the main agent.
        """
        for_agent = [
            s
            for s in self._servers
            if (main if s.entry.agents is None else agent in s.entry.agents)
        ]
        return self._tools(for_agent)

    def _tools(self, servers: Sequence[_Server]) -> list[Tool]:
        names = [python_name(t.name) for s in servers for t in s.listed]
        made: list[Tool] = []
        for server in servers:
            for listed in server.listed:
                name = python_name(listed.name)
                if names.count(name) > 1:
                    name = f"{python_name(server.name)}_{name}"
                made.append(McpTool(server, listed, name))
        return made

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


class _Server:
    """One connected server, in a task on the loop.

    Attributes:
        listed: its tools, as the server describes them; complete after `wait_until_ready`.
    """

    def __init__(self, name: str, entry: ServerEntry, loop: asyncio.AbstractEventLoop):
        self.name, self.entry = name, entry
        self.listed: list[Any] = []
        self._loop = loop
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._errors = cast(TextIO, errors)
        self._client: Any = None
        self._closing: asyncio.Event
        self._task = asyncio.run_coroutine_threadsafe(self._serve(), loop)

    def wait_until_ready(self) -> None:
        """Wait until the server has listed its tools.

        Raises:
            ConfigError: it did not start, or did not answer in time.
        """
        try:
            self._ready.result(self.entry.timeout)
        except concurrent.futures.TimeoutError:
            raise self._failed(f"no answer within {self.entry.timeout:g} s") from None
        except Exception as e:  # noqa: BLE001 - whatever the SDK raises
            raise self._failed(_reason(e)) from None

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, and return its `CallToolResult`.

        Raises:
            ToolError: the server failed, or did not answer in time; or the call was cancelled.
        """
        if self._client is None or self._task.done():
            raise ToolError(f"the MCP server {self.name!r} has ended{self._last_words()}")
        limit = self.entry.timeout
        working = asyncio.run_coroutine_threadsafe(self._call(tool, arguments), self._loop)
        flag = current_call()
        while True:
            try:
                return working.result(_POLL_SECONDS if flag is not None else None)
            except (concurrent.futures.TimeoutError, asyncio.TimeoutError):
                if working.done():
                    raise ToolError(f"{tool}: no answer within {limit:g} s") from None
                if flag is not None and flag.is_set():
                    working.cancel()
                    raise ToolError(f"{tool}: the call was cancelled") from None
            except concurrent.futures.CancelledError:
                raise ToolError(f"the MCP server {self.name!r} has ended") from None
            except Exception as e:  # noqa: BLE001 - whatever the SDK raises
                raise ToolError(f"{tool}: {_reason(e)}{self._last_words()}") from None

    def close(self) -> None:
        """End the server."""
        if self._client is not None:
            self._loop.call_soon_threadsafe(self._closing.set)
        else:
            self._task.cancel()
        try:
            self._task.result(_CLOSE_SECONDS)
        except (Exception, concurrent.futures.CancelledError):  # noqa: BLE001 - it has ended
            pass
        self._errors.close()

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return await asyncio.wait_for(self._client.call_tool(tool, arguments), self.entry.timeout)

    async def _serve(self) -> None:
        from mcp.client.client import Client

        self._closing = asyncio.Event()
        try:
            async with AsyncExitStack() as stack:
                transport = await self._transport(stack)
                client = await stack.enter_async_context(Client(transport))
                cursor = None
                for _ in range(_MAX_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    self.listed += page.tools
                    if (cursor := page.next_cursor) is None:
                        break
                wanted = self.entry.tools
                if wanted is not None:
                    self.listed = [t for t in self.listed if t.name in wanted]
                self._client = client
                self._ready.set_result(None)
                await self._closing.wait()
        except BaseException as e:
            if not self._ready.done():
                ended = EnvironmentFailure("it ended")
                self._ready.set_exception(e if isinstance(e, Exception) else ended)
            raise
        finally:
            self._client = None

    async def _transport(self, stack: AsyncExitStack) -> Any:
        from mcp.client.stdio import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        entry = self.entry
        if entry.url:
            if not entry.headers:
                return streamable_http_client(entry.url)
            from httpx2 import AsyncClient

            client = AsyncClient(headers=expanded(entry.headers), timeout=entry.timeout)
            await stack.enter_async_context(client)
            return streamable_http_client(entry.url, http_client=client)
        parameters = StdioServerParameters(
            command=entry.command, args=entry.args, env=expanded(entry.env), cwd=entry.cwd
        )
        return stdio_client(parameters, errlog=self._errors)

    def _failed(self, reason: str) -> ConfigError:
        return ConfigError(
            f"the MCP server {self.name!r} did not start: {reason}{self._last_words()}"
        )

    def _last_words(self) -> str:
        """Return the last line that the server wrote to its standard error, in brackets."""
        try:
            self._errors.seek(0)
            lines = [line.strip() for line in self._errors if line.strip()]
        except ValueError:  # closed
            return ""
        return f" ({lines[-1][:300]})" if lines else ""


def _reason(error: BaseException) -> str:
    """Return an error in one line; of a group of errors, its first."""
    while isinstance(getattr(error, "exceptions", None), tuple):
        error = error.exceptions[0]  # type: ignore[attr-defined]
    return " ".join(f"{type(error).__name__}: {error}".split())
