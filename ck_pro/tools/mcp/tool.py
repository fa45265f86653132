"""`McpTool`: one tool of an MCP server; its signature from its schema, its result as a value."""

from __future__ import annotations

import base64
import inspect
import keyword
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from ck_pro.exceptions import ToolError
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


class ToolServer(Protocol):
    """A server that calls its tools."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, and return its `CallToolResult`."""
        ...


class McpTool(Tool):
    """One tool of an MCP server. Errors and timeouts are `ToolError`s, which the model sees."""

    checks_arguments = False  # the server checks them by its schema

    def __init__(self, server: ToolServer, listed: Any, name: str):
        self._server, self._listed = server, listed
        schema = dict(listed.input_schema or {})
        properties = {python_name(n): (n, s) for n, s in (schema.get("properties") or {}).items()}
        self._names = {python: given for python, (given, _) in properties.items()}
        required = {python_name(n) for n in schema.get("required") or ()}
        self._signature = inspect.Signature(
            sorted(
                (_parameter(n, s, n in required) for n, (_, s) in properties.items()),
                key=lambda p: p.default is not p.empty,
            )
        )
        schema["properties"] = {n: s for n, (_, s) in properties.items()}
        schema["required"] = sorted(required)
        hints = listed.annotations
        if hints is not None and hints.read_only_hint:
            self.on_resume = "again"
        description = (listed.description or listed.title or "").strip()
        super().__init__(name=name, description=description, parameters=schema)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._bound(None)(*args, **kwargs)

    @property
    def _implementation(self) -> Callable[..., Any]:
        return self._bound(None)

    def execute(self, **arguments: Any) -> Any:
        """Call the tool; see `bind`."""
        return self._bound(None)(**arguments)

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for the code of one run; pictures are saved in its directory."""
        return self._bound(run)

    def updated(self, updates: Any) -> Any:
        """Return a new tool of the same server with these settings."""
        made = McpTool(self._server, self._listed, updates.get("name", self.name))
        made.description = updates.get("description", self.description)
        return made

    def _bound(self, run: RunContext | None) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            given = self._signature.bind(*args, **kwargs).arguments
            arguments = {self._names[name]: value for name, value in given.items()}
            result = self._server.call(self._listed.name, arguments)
            return _value(result, run, self.name)

        call.__name__ = call.__qualname__ = self.name
        call.__doc__ = self.description
        call.__signature__ = self._signature  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in self._signature.parameters.values()}
        return call


def _parameter(name: str, schema: Any, required: bool) -> inspect.Parameter:
    """Return a parameter for a property of a tool's schema."""
    schema = schema if isinstance(schema, Mapping) else {}
    kind: Any = _TYPES.get(str(schema.get("type")), Any)
    values = schema.get("enum")
    if values and all(isinstance(v, str | int) for v in values):
        kind = Literal[tuple(values)]
    default = inspect.Parameter.empty if required else schema.get("default")
    if described := str(schema.get("description") or "").strip():
        kind = Annotated[kind, Field(description=described)]
    how = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, how, default=default, annotation=kind)


def _value(result: Any, run: RunContext | None, name: str) -> Any:
    """Return the result of a call for code: its structured content, else its text.

    Raises:
        ToolError: the tool reports an error.
    """
    text = "\n".join(_text(block, run, name, n) for n, block in enumerate(result.content, 1))
    if result.is_error:
        raise ToolError(text or f"{name} failed without a message")
    data = result.structured_content
    if data is None:
        return text
    if isinstance(data, dict) and len(data) == 1:  # SDKs wrap values that are not objects
        ((key, value),) = data.items()
        if key == "result" or value == text:
            return value
    return data


def _text(block: Any, run: RunContext | None, name: str, number: int) -> str:
    """Return one part of a result as text; save a picture or sound in the working directory."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        inner = block.resource
        if hasattr(inner, "text"):
            return str(inner.text)
        return _saved(inner.blob, inner.mime_type or "", run, name, number)
    if block.type == "resource_link":
        return f"{block.name}: {block.uri}"
    return _saved(block.data, block.mime_type, run, name, number)


def _saved(data: str, kind: str, run: RunContext | None, name: str, number: int) -> str:
    content = base64.b64decode(data)
    what = f"{kind or 'data'}, {len(content):,} bytes"
    if run is None:
        return f"[{what}]"
    ending = re.sub(r"\W.*", "", kind.rpartition("/")[2]) or "bin"
    taken = number
    while (path := run.workdir / f"{name}-{taken}.{ending}").exists():
        taken += 1
    path.write_bytes(content)
    return f"[{what}, saved as {path.name!r}]"


def python_name(name: str) -> str:
    """Return a name of a tool or an argument as a Python name."""
    found = re.sub(r"\W", "_", name) or "_"
    return f"{found}_" if found[0].isdigit() or keyword.iskeyword(found) else found
