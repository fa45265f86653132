"""Functions of every kind as tools."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest

from ck_pro import MultiStepAgent, StopTool, ToolRegistry
from ck_pro.exceptions import ConfigError
from ck_pro.testing import ScriptedLLM
from ck_pro.tool import Tool, tool_from_function

if TYPE_CHECKING:
    from decimal import Decimal


class Unknown:
    """A type that no JSON schema describes."""


def test_types_that_json_does_not_have_are_anything() -> None:
    def mean(frame: Unknown, digits: int = 2) -> float: ...

    assert tool_from_function(mean).parameters == {
        "type": "object",
        "properties": {"frame": {}, "digits": {"type": "integer", "default": 2}},
        "required": ["frame"],
    }


def test_hints_for_type_checkers_alone() -> None:
    def halve(x: Decimal) -> Decimal:
        """Half of it."""
        return x / 2

    tool = tool_from_function(halve)
    assert tool.parameters["properties"] == {"x": {}}
    assert "halve(x: 'Decimal')" in tool.get_function_definition(short=True)


def test_a_partial_function() -> None:
    def power(base: int, exponent: int) -> int:
        return base**exponent

    tool = tool_from_function(functools.partial(power, 2))
    assert tool.name == "power" and tool(3) == 8
    assert tool.parameters["properties"] == {"exponent": {"type": "integer"}}


def test_a_callable_object() -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            return a + 1

    tool = tool_from_function(Adder())
    assert tool.name == "adder" and tool(1) == 2


async def fetch(url: str) -> None: ...


def pages(n: int) -> Any:
    yield n


@pytest.mark.parametrize("function", [fetch, pages])
def test_what_nothing_would_run_is_refused(function: Any) -> None:
    with pytest.raises(ConfigError, match="make it a plain function"):
        tool_from_function(function)


def test_functions_without_name_or_signature() -> None:
    with pytest.raises(ConfigError, match="has no known signature"):
        tool_from_function(max)
    with pytest.raises(ConfigError, match="give it a `name`"):
        tool_from_function(lambda: 1)
    with pytest.raises(ConfigError, match="3 is not a tool"):
        tool_from_function(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not a Python name"):
        Tool(name="two words")


def test_a_docstring_of_tool_itself_is_no_description() -> None:
    class Plain(Tool):
        def execute(self, a: int) -> int:
            return a

    class Documented(Plain):
        """Doubles a number."""

    class Called(Tool):
        def __call__(self, a: int) -> int:
            return a

    class Told(Plain):
        def execute(self, a: int) -> int:
            """Halves a number."""
            return a

    class Below(Told):
        """Not this one."""

        def execute(self, a: int) -> int:
            return a

    given = [tool().description for tool in (Plain, Documented, Called, Told, Below)]
    assert given == ["", "Doubles a number.", "", "Halves a number.", "Halves a number."]
    assert Plain().get_function_definition(short=True) == "- plain(a: int) -> int"
    assert Plain().get_function_definition(short=False) == "def plain(a: int) -> int: ..."


def test_an_agents_functions_are_a_registry() -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    helper = MultiStepAgent(name="helper", model=ScriptedLLM([]), tools=[StopTool()])
    agent = MultiStepAgent(model=ScriptedLLM([]), tools=[add, StopTool()], sub_agents=[helper])
    functions = agent.functions()
    assert isinstance(functions, ToolRegistry)
    assert functions.names == ["helper", "add", "stop"] and functions.terminal == ["stop"]
    assert functions.get("helper") is functions[0] is helper and functions.get("x") is None
    assert functions.definitions(short=True).splitlines()[1] == (
        "- add(a: int, b: int) -> int: Add two numbers."
    )
    agent.active_functions = ["stop"]
    assert [f.name for f in agent.functions()] == ["stop"]


def test_names_that_are_given_twice_or_are_keywords_are_refused() -> None:
    registry = ToolRegistry([StopTool()])
    with pytest.raises(ConfigError, match="two functions are named 'stop'"):
        registry.register(lambda: None, name="stop")
    with pytest.raises(ConfigError, match="agent name 'class' is not a Python name"):
        MultiStepAgent(name="class", model=ScriptedLLM([]))
    agent = MultiStepAgent(model=ScriptedLLM([]), tools=[StopTool(), StopTool()])
    with pytest.raises(ConfigError, match="agent: two functions are named 'stop'"):
        agent.check()
