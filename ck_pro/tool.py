"""`Tool`: a function that an agent's code may call, with the text that tells the model so."""

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

_PLAIN_TYPES = (str, int, float, bool)


class Tool(KwargsInitializable):
    """A named function for the agent's code: an implementation, and a definition for prompts.

    A subclass defines `execute` and, where a signature and a docstring do not say enough,
    `get_function_definition`.
    """

    name: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON schema of the arguments (an object); derived from `execute` when empty."""
    terminal: bool = False
    """Calling it ends the run."""
    on_resume: Literal["again", "answer", "never"] = "answer"
    """What a resumed run does about a call of it that was recorded when the run was cut off.
    "again": the recorded result is used, and a call that was under way is done again (it does no
    harm). "answer": the recorded result is used; a call under way may have had its effect, and the
    model is told so. "never": its effect was on something that a resumed run does not have (a page,
    a worker), so the step is not run again at all, and the model is told what was called."""

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
        """`execute`, or `__call__` of a tool that defines that alone."""
        own = type(self)
        if own.execute is Tool.execute and own.__call__ is not Tool.__call__:
            return self.__call__
        return self.execute

    def _doc(self) -> str:
        """The docstring of the implementation, else of the class; none that `Tool` itself has."""
        name = "__call__" if type(self).execute is Tool.execute else "execute"
        own = [c for c in type(self).__mro__ if issubclass(c, Tool) and c.__module__ != __name__]
        things = [self._implementation, *(vars(c)[name] for c in own if name in vars(c)), *own]
        return next(filter(None, map(own_doc, things)), "")

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """What the tool does. Raises `ToolError` for what the model should read."""
        raise ConfigError(f"tool '{self.name}' defines no execute()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.execute(*args, **kwargs)

    def bind(self, run: Any) -> Callable[..., Any]:
        """The function that the code of one run calls; override it to use the run.

        Args:
            run: the `ck_pro.agent.Run`: model calls, working directory, environment.
        """
        return self._implementation

    def get_function_definition(self, short: bool) -> str:
        """The tool as prompts show it: one line when `short`, else with its description."""
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
            agent: accepted for code that was written for CK-Pro. Results are in the session.
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
    """A plain function as a tool; made by `tool_from_function`."""

    def __init__(self, function: Callable[..., Any], **kwargs: Any) -> None:
        self._function = function
        super().__init__(**{"name": _name_of(function), **kwargs})

    def __getattribute__(self, name: str) -> Any:
        # the function itself, so that its signature and docstring are what everyone sees
        return object.__getattribute__(self, "_function" if name == "execute" else name)

    def updated(self, updates: Any) -> Any:
        """A new tool of the same function with these settings."""
        settings = {n: getattr(self, n) for n in self.setting_names()}
        return FunctionTool(self._function, **{**settings, **updates})


def tool_from_function(function: Callable[..., Any], **settings: Any) -> Tool:
    """A tool that calls `function`; name, description and parameters come from it.

    Args:
        function: any callable with a signature and, better, a docstring and type hints.
        settings: settings of `Tool` that override what the function says.

    Raises:
        ConfigError: `function` cannot be called, or tells no name or arguments.
    """
    if not callable(function):
        raise ConfigError(f"{function!r} is no tool: give a Tool, a function, or a name")
    return FunctionTool(function, **settings)


class ToolRegistry:
    """Tools by name, in order of registration.

    Raises:
        ConfigError: two tools of one name.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()):
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool | Callable[..., Any], **settings: Any) -> Tool:
        """Add a tool, or a function as one; returns the tool."""
        made = tool if isinstance(tool, Tool) else tool_from_function(tool, **settings)
        if made.name in self._tools:
            raise ConfigError(f"two tools are named '{made.name}'")
        self._tools[made.name] = made
        return made

    def get(self, name: str) -> Tool:
        """The tool of that name; `KeyError` with the known names otherwise."""
        if name not in self._tools:
            raise KeyError(f"no tool '{name}'; known are: {', '.join(self._tools)}")
        return self._tools[name]

    def definitions(self, short: bool = False) -> str:
        """All definitions for a prompt."""
        sep = "\n" if short else "\n\n"
        return sep.join(t.get_function_definition(short) for t in self)

    def schemas(self) -> list[dict[str, Any]]:
        """The tools in the form of the chat-completions `tools` parameter."""
        return [function_schema(t.name, t.description, t.parameters) for t in self]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def function_schema(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """One entry of the chat-completions `tools` parameter."""
    body = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": body}


def parameters_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """JSON schema (an object) of a function's arguments, from its signature and type hints.

    Raises:
        ConfigError: a built-in function that does not tell its arguments.
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
            f"tool '{name}' does not tell its arguments: wrap it in a function of your own"
        ) from None


def _name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", "") or type(function).__name__.lower())


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The hints that can be resolved at run time; none of a function that has others."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return typing.get_type_hints(function)
    except (NameError, AttributeError, TypeError):  # a name for type checkers only; no function
        return {}


def _schema(annotation: Any) -> dict[str, Any]:
    """JSON schema of a type; an empty one (anything) for a type that JSON does not have."""
    if annotation is None:
        return {}
    try:
        return TypeAdapter(annotation).json_schema()
    except PydanticUserError:  # a data frame, say
        return {}


def own_doc(thing: Any) -> str:
    """The docstring of a function or class itself: an inherited one tells of something else."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    doc = getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def _is_lazy(function: Callable[..., Any]) -> bool:
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    return any(is_kind(function) for is_kind in kinds)


def signature_text(function: Callable[..., Any], *, returns: bool = True) -> str:
    """A function's signature as a person writes it: annotations without quotes.

    Args:
        function: any callable.
        returns: also show the return annotation.
    """
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, AttributeError):  # an annotation that only type checkers can resolve
        signature = inspect.signature(function)
    if not returns:
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    return str(signature)


def definition_text(head: str, description: str, short: bool) -> str:
    """A function as prompts show it.

    Args:
        head: name and signature.
        description: what it does; its first line must say it alone.
        short: one line only, else the form of a Python function with its docstring.
    """
    if not description.strip():
        return f"- {head}" if short else f"def {head}: ..."
    lines = description.strip().split("\n")
    if short:
        return f"- {head}: {lines[0]}"
    text = "\n".join(lines) if len(lines) == 1 else "\n".join([*lines, ""])
    return f"def {head}:\n" + textwrap.indent(f'"""{text}"""', "    ")
