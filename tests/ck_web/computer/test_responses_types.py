"""Requests to the Responses API, checked with the types of the openai package, in both forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from computer_items import CHECK
from drawn_computers import DrawnComputer
from pydantic import ConfigDict, TypeAdapter, ValidationError

from ck_pro.model import Reply
from ck_pro.testing import ChatCall, FakeChatServer
from ck_web import ComputerAgent

pytestmark = pytest.mark.integration

responses = pytest.importorskip("openai.types.responses")
ONE_OF_MANY = ConfigDict(extra="forbid")
GREET = {
    "type": "function",
    "name": "greet",
    "description": "Greet.",
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


def checker() -> Callable[[dict[str, Any]], None]:
    """Return a function that raises if a request is not what the openai package sends."""
    inputs = TypeAdapter(list[responses.ResponseInputItemParam], config=ONE_OF_MANY)
    tools = TypeAdapter(list[responses.ToolParam], config=ONE_OF_MANY)
    known = responses.response_create_params.ResponseCreateParamsNonStreaming.__annotations__
    base = responses.response_create_params.ResponseCreateParamsBase.__annotations__

    def check(body: dict[str, Any]) -> None:
        assert body.keys() <= {*known, *base}
        preview = any(t["type"] == "computer_use_preview" for t in body["tools"])
        items = [dict(item) for item in body["input"]]
        for item in items:
            if item.get("type") == "computer_call_output" and preview:
                # documented for the preview tool, and missing in the package's types
                item["output"] = {k: v for k, v in item["output"].items() if k != "current_url"}
        inputs.validate_python(items)
        tools.validate_python(body["tools"])
        assert not preview or body["truncation"] == "auto"
        _check_pairs(items)

    return check


def _check_pairs(items: Iterable[dict[str, Any]]) -> None:
    """Each call has one output, after it; the service refuses other requests."""
    calls = [i["call_id"] for i in items if str(i.get("type")).endswith("_call")]
    outputs = [i["call_id"] for i in items if str(i.get("type")).endswith("_call_output")]
    assert sorted(calls) == sorted(outputs) and len(set(calls)) == len(calls)


def items_of(form: str) -> list[list[dict[str, Any]]]:
    """Output items of four replies, as the service sends them in a form."""
    head = {"type": "computer_call", "status": "completed", "pending_safety_checks": []}
    click = {"type": "click", "button": "left", "x": 10, "y": 20}
    first: dict[str, Any] = {**head, "id": "cu_1", "call_id": "c1", "action": click}
    second: dict[str, Any] = {**head, "id": "cu_2", "call_id": "c2"}
    second["pending_safety_checks"] = [CHECK]
    acts = [{**click, "x": 60}, {"type": "keypress", "keys": ["ENTER"]}]
    if form == "computer":
        second["actions"] = acts
    else:
        second["action"] = acts[0]
    call = {"type": "function_call", "id": "fc_1", "call_id": "f1", "name": "greet"}
    third = {**call, "arguments": '{"name": "Ada"}', "status": "completed"}
    return [[REASONING, first], [second], [third]]


@pytest.fixture(params=["http", "gpt"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function from a server to its `call_target`: by requests, and by the openai package."""
    if request.param == "http":
        return lambda server: server.url

    def named(server: FakeChatServer) -> str:
        monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        return "gpt:computer-use-preview"

    return named


@pytest.mark.parametrize("form", ["computer", "computer_use_preview"])
def test_every_request_has_the_types_of_the_openai_package(form: str, target: Any) -> None:
    check, script = checker(), items_of(form)
    wrong: list[Exception] = []

    def reply(call: ChatCall) -> Reply:
        try:
            check(call.body)
        except (ValidationError, AssertionError) as e:
            wrong.append(e)
        at = len(server.calls) - 1
        return Reply("", items=script[at]) if at < len(script) else Reply("Done.")

    with FakeChatServer(reply) as server:
        agent = ComputerAgent(
            model={"call_target": target(server)},
            computer=DrawnComputer(),
            language=form,
            tools=[GREET],
            acknowledge_safety_check_callback=lambda message: True,
        )
        items: list[Any] = [{"role": "user", "content": "Draw and greet."}]
        items += agent.run_full_turn(items, print_steps=False)
        items.append({"role": "user", "content": "Thanks."})
        items += agent.run_full_turn(items, print_steps=False)
        bodies = [c.body for c in server.calls]
    assert wrong == []
    assert len(bodies) == 5 and items[-1]["content"][0]["text"] == "Done."
    last = bodies[-1]["input"]
    outputs = [i for i in last if i.get("type") == "computer_call_output"]
    assert [o["call_id"] for o in outputs] == ["c1", "c2"]
    assert outputs[1]["acknowledged_safety_checks"] == [CHECK]
    assert bodies[0]["tools"][0] == (
        {"type": "computer"}
        if form == "computer"
        else {
            "type": "computer_use_preview",
            **{"display_width": 200, "display_height": 150, "environment": "linux"},
        }
    )


def test_the_check_finds_wrong_requests() -> None:
    check = checker()
    tools = [{"type": "computer"}]
    good = {"role": "user", "content": "hi"}
    check({"model": "m", "input": [good], "tools": tools})
    call = {"type": "function_call", "call_id": "f", "name": "n", "arguments": "{}"}
    for body in (
        {"input": [{**good, "colour": "red"}], "tools": tools},
        {"input": [good], "tools": [{"type": "computer_use_preview"}]},
        {"input": [good, call], "tools": tools},
        {"input": [good], "tools": tools, "max_tokens": 3},
    ):
        with pytest.raises((ValidationError, AssertionError)):
            check(body)
