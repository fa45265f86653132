"""Tools from decorators, and the arguments of their calls: schema, checks, messages."""

from __future__ import annotations

import json
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from ck_pro import AgentSession, Journal, MultiStepAgent, StopTool, ToolRegistry
from ck_pro.approval import Decision, describe
from ck_pro.arguments import signature_text, type_hints
from ck_pro.events import Action
from ck_pro.exceptions import ConfigError
from ck_pro.journal import read_events
from ck_pro.model import Reply
from ck_pro.testing import ScriptedLLM
from ck_pro.tool import Tool, tool


class Address(BaseModel):
    """Where to send an order."""

    street: str
    zip: str = Field(min_length=4)


class Book(BaseModel):
    title: str


class Genre(Enum):
    NOVEL = "novel"
    ESSAY = "essay"


class Order(BaseModel):
    item: str
    count: int = Field(ge=1, le=9)
    to: Address


@tool
def order(
    goods: list[Order],
    speed: Literal["slow", "fast"] = "slow",
    tip: Annotated[float, Field(ge=0, description="US dollars")] = 0,
) -> str:
    """Order goods."""
    return " ".join(f"{type(g).__name__}:{g.count}*{g.item}>{g.to.zip}" for g in goods) + f" {tip}"


GOODS = [{"item": "lamp", "count": "2", "to": {"street": "High St", "zip": "12345"}}]


def calls(*given: tuple[str, dict[str, Any]]) -> Reply:
    made = [
        {"id": f"c{i}", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(given)
    ]
    return Reply("", tool_calls=made)


def run(*replies: str, tools: Any, **settings: Any) -> AgentSession:
    agent = MultiStepAgent(
        **{"model": ScriptedLLM(replies), "tools": tools, "language": "function_calls", **settings}
    )
    session: AgentSession = agent.run("t")
    return session


def observed(session: AgentSession, step: int = 0) -> Any:
    return session.steps[step]["action"]["observation"]


def test_the_schema_has_models_literals_and_fields() -> None:
    schema = order.parameters
    assert schema["required"] == ["goods"]
    assert schema["properties"]["speed"]["enum"] == ["slow", "fast"]
    assert schema["properties"]["tip"]["description"] == "US dollars"
    assert schema["properties"]["tip"]["minimum"] == 0
    assert schema["properties"]["goods"]["items"] == {"$ref": "#/$defs/Order"}
    assert set(schema["$defs"]) == {"Order", "Address"}  # where the references point to
    assert '"title"' not in json.dumps(schema)


def test_enums_and_fields_named_title_are_described() -> None:
    def lend(book: Book, genre: Genre) -> str:
        return f"{book.title!r} {genre}"

    made = tool(lend)
    assert made.parameters["properties"]["book"]["properties"] == {"title": {"type": "string"}}
    text = made.get_function_definition(short=False)
    assert "lend(book: Book, genre: Genre)" in text and '"enum": ["novel", "essay"]' in text
    session = run(calls(("lend", {"book": {"title": 3}, "genre": "poem"})), "x", tools=[made])
    assert "Input should be 'novel' or 'essay' (got 'poem')" in observed(session)


def test_a_definition_for_prompts_explains_models_and_limits() -> None:
    text = order.get_function_definition(short=False)
    assert "tip: float = 0" in text and "FieldInfo" not in text
    assert 'tip: US dollars {"minimum": 0}' in text
    assert '"maximum": 9' in text
    assert "Args" not in order.get_function_definition(short=True)


def test_a_dict_becomes_a_model_and_numbers_as_text_are_converted() -> None:
    session = run(calls(("order", {"goods": GOODS})), "done", tools=[order])
    assert observed(session) == "Order:2*lamp>12345 0"


def test_wrong_arguments_name_every_problem_and_the_signature() -> None:
    wrong = [{"item": "lamp", "count": 12, "to": {"street": "High St", "zip": "1"}}]
    call = ("order", {"goods": wrong, "speed": "medium", "tip": -1})
    session = run(calls(call), "done", tools=[order])
    assert observed(session) == (
        "ToolError: argument 'goods'[0]['count']: Input should be less than or equal to 9 (got 12);"
        " argument 'goods'[0]['to']['zip']: String should have at least 4 characters (got '1'); "
        "argument 'speed': Input should be 'slow' or 'fast' (got 'medium'); "
        "argument 'tip': Input should be greater than or equal to 0 (got -1). The signature is "
        "order(goods: list[Order], speed: Literal['slow', 'fast'] = 'slow', "
        "tip: float = 0)"
    )


def test_missing_and_unknown_arguments_show_the_signature() -> None:
    session = run(calls(("order", {"good": []})), calls(("order", {})), "x", tools=[order])
    assert "missing a required argument: 'goods'" in observed(session)
    assert "missing" in observed(session, 1) and "tip: float = 0)" in observed(session, 1)


def test_a_wrong_call_runs_nothing_and_asks_no_approver(tmp_path: Path) -> None:
    reviewed: list[str] = []

    class Watching:
        def review(self, action: Action) -> Decision:
            reviewed.append(describe(action))
            return Decision()

    made: list[int] = []

    def double(n: int) -> int:
        made.append(n)
        return 2 * n

    with Journal(tmp_path) as journal:
        agent = MultiStepAgent(
            model=ScriptedLLM([calls(("double", {"n": "x"})), calls(("double", {"n": "4"})), "8"]),
            language="function_calls",
            tools=[double],
            approver=Watching(),
        )
        agent.run("t", journal=journal)
    assert made == [4] and reviewed == ["double(n=4)"]
    started = [e["data"]["arguments"] for e in read_events(tmp_path) if e["kind"] == "started"]
    assert started == [{"n": 4}]


def test_values_that_fit_stay_as_they_are() -> None:
    seen: list[Any] = []

    def take(a: float, b: str, c: Any, d: Decimal, e: list[float]) -> None:
        seen.extend([a, b, c, d, e])

    run(calls(("take", {"a": 3, "b": 4, "c": [1], "d": "1.5", "e": [1]})), "x", tools=[take])
    assert seen == [3, "4", [1], Decimal("1.5"), [1.0]]
    assert type(seen[0]) is int


def test_an_answer_may_be_any_value() -> None:
    session = run(calls(("stop", {"output": [1, 2]})), tools=[StopTool()])
    assert session.final_results == {"output": "[1, 2]", "log": ""}


def test_decorated_tools_keep_their_settings_and_can_be_called() -> None:
    registry = ToolRegistry()

    @registry.register(name="add", description="Sum.", tags=["maths"])
    def plus(a: int, b: int) -> int:
        return a + b

    @registry.register(tags=["text", "maths"])
    def digits(n: int) -> str:
        """Digits of a number."""
        return " ".join(str(n))

    @registry.register(terminal=True)
    def terminate(message: str) -> str:
        """End with a message."""
        return f"{message}!"

    assert plus(1, 2) == 3 and isinstance(plus, Tool)
    assert registry.names == ["add", "digits", "terminate"] and registry.terminal == ["terminate"]
    assert registry.tagged("text").names == ["digits"]
    assert registry.tagged("text", "maths").names == ["add", "digits"]
    session = run(
        calls(("add", {"a": 1, "b": 2})), calls(("terminate", {"message": "3"})), tools=registry
    )
    assert observed(session) == "3" and session.final_results["output"] == "3!"  # type: ignore[index]


def test_a_tool_registered_later_can_be_called() -> None:
    registry = ToolRegistry([StopTool()])
    model = ScriptedLLM([calls(("late", {})), calls(("stop", {"output": "x"}))])
    agent = MultiStepAgent(model=model, language="function_calls", tools=[registry])

    @registry.register
    def late() -> str:
        """Registered after the agent was made."""
        return "called"

    assert observed(agent.run("t")) == "called"
    assert agent.functions().names == ["stop", "late"]


def test_settings_of_a_registered_tool_object_are_updated() -> None:
    registry = ToolRegistry()
    registry.register(StopTool(), name="finish")
    assert registry.names == ["finish"]
    with pytest.raises(ConfigError, match="two functions are named 'finish'"):
        registry.register(tool(name="finish")(len_of))


def len_of(text: str) -> int:
    """Length of a text."""
    return len(text)


@pytest.mark.worker
def test_code_gets_the_error_as_an_exception_that_it_can_catch() -> None:
    code = (
        "```python\ntry:\n    order([{'item': 'lamp'}])\n"
        "except Exception as e:\n    print(type(e).__name__, e)\n```"
    )
    agent = MultiStepAgent(model=ScriptedLLM([code]), tools=[order], max_steps=1)
    assert observed(agent.run("t")).startswith("ToolError argument 'goods'[0]['count']: Field req")


def test_a_type_defined_after_the_function_is_resolved_later() -> None:
    names: dict[str, object] = {}
    exec("def order(of: Later) -> int: ...", names)
    function = names["order"]
    assert callable(function)
    assert (signature_text(function), type_hints(function)) == ("(of: 'Later') -> 'int'", {})
    names["Later"] = bool
    assert signature_text(function) == "(of: bool) -> int"
    assert type_hints(function) == {"of": bool, "return": int}


def test_a_method_has_a_signature_as_function_and_another_on_an_object() -> None:
    class Counter:
        def add(self, n: int) -> int:
            return n

    for _ in range(2):
        assert signature_text(Counter.add) == "(self, n: int) -> int"
        assert signature_text(Counter().add) == "(n: int) -> int"
        assert signature_text(Counter().add, returns=False) == "(n: int)"
