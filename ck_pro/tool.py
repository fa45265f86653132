"""`Tool`: a function for an agent's code, with its definition for prompts."""

from __future__ import annotations

import functools
import inspect
import keyword
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from pydantic import PydanticUserError, TypeAdapter

from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError
from ck_pro.run_context import RunContext

_PLAIN_TYPES = (str, int, float, bool)


class Tool(KwargsInitializable):
    """A named function for the agent's code: an implementation, and a definition for prompts.

    A subclass defines `execute`. If signature and docstring are not enough for the prompt, it also
    defines `get_function_definition`.
    """

    name: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON schema of the arguments (an object); derived from `execute` when empty."""
    terminal: bool = False
    """Calling it ends the run."""
    on_resume: Literal["again", "answer", "never"] = "answer"
    """How a resumed run treats a recorded call of this tool.

    "again": use the recorded result; repeat a pending call, which is harmless. "answer": use the
    recorded result; report to the model that a pending call may have had its effect. "never": the
    call acted on an object that a resumed run lacks (a page, a worker), so do not run the step
    again, and report its calls to the model."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.name = self.name or type(self).__name__.lower()
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise ConfigError(f"tool name {self.name!r} is not a Python name; give it a `name`")
        if _is_lazy(self._implementation):
            raise ConfigError(
                f"tool '{self.name}' is a coroutine or generator function: nothing would run it; "
                "make it a plain function that returns its result"
            )
        self.description = self.description or self._doc()
        self.parameters = self.parameters or parameters_schema(self._implementation)

    @property
    def _implementation(self) -> Callable[..., Any]:
        """`execute`, or `__call__` if the tool defines only that."""
        own = type(self)
        if own.execute is Tool.execute and own.__call__ is not Tool.__call__:
            return self.__call__
        return self.execute

    def _doc(self) -> str:
        """Return the docstring of the implementation or else the class, but never of `Tool`."""
        name = "__call__" if type(self).execute is Tool.execute else "execute"
        own = [c for c in type(self).__mro__ if issubclass(c, Tool) and c.__module__ != __name__]
        things = [self._implementation, *(vars(c)[name] for c in own if name in vars(c)), *own]
        return next(filter(None, map(own_doc, things)), "")

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool. Raise `ToolError` for errors that the model should see."""
        raise ConfigError(f"tool '{self.name}' defines no execute()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.execute(*args, **kwargs)

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function that one run's code calls; override it to use the run.

        Args:
            run: the run, with model calls, working directory and environment.
        """
        return self._implementation

    def get_function_definition(self, short: bool) -> str:
        """Return the definition for prompts: one line if `short`, else with the description."""
        head = f"{self.name}{signature_text(self._implementation, returns=not self.terminal)}"
        return definition_text(head, self.description, short)


class StopTool(Tool):
    """The special function that ends a task with its answer."""

    name = "stop"
    terminal = True
    on_resume = "again"

    def __init__(self, agent: Any = None, **kwargs: Any) -> None:
        """Make the tool.

        Args:
            agent: ignored; accepted for code written for CK-Pro. Results are in the session.
            kwargs: settings.
        """
        super().__init__(**kwargs)

    def execute(self, output: str, log: str = "") -> dict[str, str]:
        """End the task.

        Args:
            output: the final answer, exactly in the form that the task asks for.
            log: how the answer was found, or what prevented one.
        """
        return {"output": "" if output is None else str(output), "log": str(log or "")}


class FunctionTool(Tool):
    """A tool made from a plain function by `tool_from_function`."""

    def __init__(self, function: Callable[..., Any], **kwargs: Any) -> None:
        self._function = function
        super().__init__(**{"name": _name_of(function), **kwargs})

    def __getattribute__(self, name: str) -> Any:
        # `execute` is the function itself, so that its signature and docstring are visible
        return object.__getattribute__(self, "_function" if name == "execute" else name)

    def updated(self, updates: Any) -> Any:
        """Return a new tool of the same function with these settings."""
        settings = {n: getattr(self, n) for n in self.setting_names()}
        return FunctionTool(self._function, **{**settings, **updates})


def tool_from_function(function: Callable[..., Any], **settings: Any) -> Tool:
    """Make a tool from a function, with name, description and parameters from its definition.

    Args:
        function: a callable with a signature, and preferably a docstring and type hints.
        settings: settings of `Tool` that override those from the function.

    Raises:
        ConfigError: `function` is not callable, or has no name or no known arguments.
    """
    if not callable(function):
        raise ConfigError(f"{function!r} is not a tool: give a Tool, a function, or a name")
    return FunctionTool(function, **settings)


class ToolRegistry:
    """Tools by name, in order of registration.

    Raises:
        ConfigError: two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()):
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool | Callable[..., Any], **settings: Any) -> Tool:
        """Add a tool or a function; return the tool."""
        made = tool if isinstance(tool, Tool) else tool_from_function(tool, **settings)
        if made.name in self._tools:
            raise ConfigError(f"two tools are named '{made.name}'")
        self._tools[made.name] = made
        return made

    def get(self, name: str) -> Tool:
        """Return the tool with this name; raise `KeyError` with the known names otherwise."""
        if name not in self._tools:
            raise KeyError(f"no tool '{name}'; known are: {', '.join(self._tools)}")
        return self._tools[name]

    def definitions(self, short: bool = False) -> str:
        """Return all definitions for a prompt."""
        sep = "\n" if short else "\n\n"
        return sep.join(t.get_function_definition(short) for t in self)

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools in the form of the chat-completions `tools` parameter."""
        return [function_schema(t.name, t.description, t.parameters) for t in self]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def function_schema(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return one entry of the chat-completions `tools` parameter."""
    body = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": body}


def parameters_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON schema (an object) of a function's arguments, from signature and type hints.

    Raises:
        ConfigError: the function is a built-in without a known signature.
    """
    hints = _type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, p in _signature(function).parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        properties[name] = _schema(hints.get(name))
        if p.default is p.empty:
            required.append(name)
        elif p.default is None or isinstance(p.default, _PLAIN_TYPES):
            properties[name]["default"] = p.default
    return {"type": "object", "properties": properties, "required": required}


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(
            f"tool '{name}' has no known signature: wrap it in a Python function"
        ) from None


def _name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", "") or type(function).__name__.lower())


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type hints; none if any cannot be resolved at run time."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return typing.get_type_hints(function)
    except (NameError, AttributeError, TypeError):  # a name for type checkers; not a function
        return {}


def _schema(annotation: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; empty (anything) if JSON has no such type."""
    if annotation is None:
        return {}
    try:
        return TypeAdapter(annotation).json_schema()
    except PydanticUserError:  # such as a data frame
        return {}


def own_doc(thing: Any) -> str:
    """Return a function's or class's own docstring; an inherited one describes something else."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    doc = getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def _is_lazy(function: Callable[..., Any]) -> bool:
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    return any(is_kind(function) for is_kind in kinds)


def signature_text(function: Callable[..., Any], *, returns: bool = True) -> str:
    """Return a function's signature as source text: annotations without quotes.

    Args:
        function: any callable.
        returns: whether to include the return annotation.
    """
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, AttributeError):  # only type checkers can resolve it
        signature = inspect.signature(function)
    if not returns:
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    return str(signature)


def definition_text(head: str, description: str, short: bool) -> str:
    """Format a function for a prompt.

    Args:
        head: name and signature.
        description: what it does; the first line must stand alone.
        short: whether to give one line, instead of a Python function with its docstring.
    """
    if not description.strip():
        return f"- {head}" if short else f"def {head}: ..."
    lines = description.strip().split("\n")
    if short:
        return f"- {head}: {lines[0]}"
    text = "\n".join(lines) if len(lines) == 1 else "\n".join([*lines, ""])
    return f"def {head}:\n" + textwrap.indent(f'"""{text}"""', "    ")
