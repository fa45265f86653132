"""`Tool`: a function for an agent's code, with its definition for prompts."""

from __future__ import annotations

import functools
import inspect
import keyword
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, overload

from ck_pro.arguments import parameters_schema, shown_function
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError
from ck_pro.run_context import RunContext


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
    tags: list[str] = []
    """Labels for `ToolRegistry.tagged`."""
    checks_arguments: ClassVar[bool] = True
    """Whether a run checks and converts the arguments by the type hints of the function."""
    synonyms: ClassVar[Mapping[str, str]] = {}
    """Other names of parameters that calls may use."""
    package: ClassVar[str] = ""
    """Folder of the package whose functions run its calls in the worker; see `LocalCall`."""
    on_resume: Literal["again", "answer", "never"] = "answer"
    """How a resumed run treats a recorded call of this tool.

    "again": use the recorded result; repeat a pending call, which is harmless. "answer": use the
    recorded result; report to the model that a pending call may have had its effect. "never": the
    call acted on an object that a resumed run may lack (a page, a worker). Without that object, do
    not run the step again, and report its calls to the model."""

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
    def element_roles(self) -> Sequence[str]:
        """Roles of the page elements that it acts on by its argument `id`; "*" stands for any role.

        A person who is the model selects an element on the page, and gets calls of such tools.
        """
        return ()

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

    def readable(self) -> list[str]:
        """Return files and folders that calls of the tool read in the worker."""
        return []

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
        implementation, returns = self._implementation, not self.terminal
        signature, notes = shown_function(implementation, returns=returns, short=short)
        text = f"{self.description}\n\n{notes}".strip() if notes else self.description
        return definition_text(f"{self.name}{signature}", text, short)


class StopTool(Tool):
    """The special function that ends a task with its answer."""

    name = "stop"
    terminal = True
    on_resume = "again"
    synonyms = {"answer": "output", "summary": "log"}
    checks_arguments = False  # every value is an answer

    def __init__(self, agent: object = None, **kwargs: Any) -> None:
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

    @property
    def execute(self) -> Callable[..., Any]:
        """The function itself, so that its signature and docstring are visible."""
        return self._function

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


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(**settings: Any) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Any = None, /, **settings: Any) -> Any:
    """Make a tool from a function, as a decorator: `@tool` or `@tool(name=..., terminal=True)`.

    Args:
        function: the decorated function. The tool can be called like it.
        settings: settings of `Tool` that override those from the function.
    """
    if function is not None:
        return tool_from_function(function, **settings)
    return lambda decorated: tool_from_function(decorated, **settings)


class AgentFunction(Protocol):
    """A function that an agent's code can call: a `Tool`, or an agent as a function."""

    name: str
    description: str

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        ...

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for the code of one run; see `Tool.bind`."""
        ...

    def get_function_definition(self, short: bool) -> str:
        """Return the definition for prompts."""
        ...


class ToolRegistry(Sequence[AgentFunction]):
    """The functions of an agent by name, in order; `MultiStepAgent.functions()` returns it.

    Args:
        tools: tools, agents and plain functions.

    Raises:
        ConfigError: two of them have the same name.
    """

    def __init__(self, tools: Iterable[AgentFunction | Callable[..., Any]] = ()):
        self._by_name: dict[str, AgentFunction] = {}
        for tool in tools:
            self.register(tool)

    @overload
    def register(
        self, tool: AgentFunction | Callable[..., Any], **settings: Any
    ) -> AgentFunction: ...

    @overload
    def register(self, **settings: Any) -> Callable[[Callable[..., Any]], Tool]: ...

    def register(self, tool: Any = None, **settings: Any) -> Any:
        """Add a tool, an agent, or a function with settings of its tool; return what was added.

        Without `tool`, return a decorator: `@registry.register(tags=["files"])`.
        """
        if tool is None:
            return lambda decorated: self.register(decorated, **settings)
        known = hasattr(tool, "get_function_definition")
        if known and settings:
            tool = tool.updated(settings)
        made = tool if known else tool_from_function(tool, **settings)
        if made.name in self._by_name:
            raise ConfigError(f"two functions are named {made.name!r}")
        self._by_name[made.name] = made
        return made

    def tagged(self, *tags: str) -> ToolRegistry:
        """Return a registry of the tools that have at least one of these tags."""
        wanted = set(tags)
        return ToolRegistry(f for f in self if wanted.intersection(getattr(f, "tags", ())))

    def get(self, name: str) -> AgentFunction | None:
        """Return the function with this name, or None."""
        return self._by_name.get(name)

    @property
    def names(self) -> list[str]:
        """The names in order."""
        return list(self._by_name)

    @property
    def terminal(self) -> list[str]:
        """Names of the functions that end a run."""
        return [f.name for f in self if getattr(f, "terminal", False)]

    def definitions(self, short: bool = False) -> str:
        """Return all definitions for a prompt."""
        separator = "\n" if short else "\n\n"
        return separator.join(f.get_function_definition(short) for f in self)

    @overload
    def __getitem__(self, index: int) -> AgentFunction: ...

    @overload
    def __getitem__(self, index: slice) -> list[AgentFunction]: ...

    def __getitem__(self, index: int | slice) -> AgentFunction | list[AgentFunction]:
        return list(self._by_name.values())[index]

    def __iter__(self) -> Iterator[AgentFunction]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def function_schema(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return one entry of the chat-completions `tools` parameter."""
    body = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": body}


def _name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", "") or type(function).__name__.lower())


def own_doc(thing: Any) -> str:
    """Return a function's or class's own docstring; an inherited one describes something else."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    doc = getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def _is_lazy(function: Callable[..., Any]) -> bool:
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    return any(is_kind(function) for is_kind in kinds)


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
