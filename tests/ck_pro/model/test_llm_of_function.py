"""A Python function as the model."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ck_pro import LLM, Budget
from ck_pro.exceptions import Cancelled, ConfigError, ContentFiltered, InputError, ModelRefused
from ck_pro.model import CallContext, Reply

CALL = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESPONSE = {
    "choices": [{"message": {"content": "hi", "tool_calls": [CALL]}, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    "model": "m-1",
}


def test_the_function_gets_messages_and_tools() -> None:
    seen: list[Any] = []

    def generate_response(prompt: Any) -> str:
        seen.extend([list(prompt), prompt.messages, prompt.tools, prompt.params["temperature"]])
        return "hello"

    llm = LLM.of(generate_response, call_kwargs={"temperature": 0.5})
    reply = llm("hi", tools=[{"type": "function"}])
    message = {"role": "user", "content": "hi"}
    assert seen == [[message], [message], [{"type": "function"}], 0.5]
    assert reply == "hello" and reply.usage.estimated
    assert reply.model == "generate_response"
    assert llm.describe() == "the function generate_response"


@pytest.mark.parametrize(
    "value",
    [
        RESPONSE,
        SimpleNamespace(model_dump=lambda: RESPONSE),
        RESPONSE["choices"][0]["message"],  # type: ignore[index]
        Reply("hi", tool_calls=[CALL]),
    ],
)
def test_the_function_may_return_a_message_or_a_response(value: Any) -> None:
    reply = LLM.of(lambda prompt: value)("t")
    assert reply == "hi" and reply.tool_calls == [CALL]
    if value is RESPONSE:
        assert (reply.usage.total_tokens, reply.finish_reason, reply.model) == (9, "length", "m-1")


def test_another_dict_is_the_text_of_a_call() -> None:
    assert LLM.of(lambda prompt: {"tool": "f", "args": {}})("t") == '{"tool": "f", "args": {}}'


def test_errors_of_the_function_are_one_line() -> None:
    def broken(prompt: Any) -> str:
        raise ValueError("no key")

    def filtered(prompt: Any) -> str:
        raise ContentFiltered("not this")

    with pytest.raises(ModelRefused, match="the function broken raised ValueError: no key"):
        LLM.of(broken)("t")
    with pytest.raises(ContentFiltered, match="not this"):
        LLM.of(filtered)("t")
    with pytest.raises(ModelRefused, match="returned int; return the reply as text"):
        LLM.of(lambda prompt: 3)("t")

    async def later(prompt: Any) -> str:
        return "x"

    for wrong in (3, later):
        with pytest.raises(ConfigError, match="is not a plain function"):
            LLM.of(wrong)  # type: ignore[arg-type]


def test_a_cancel_does_not_wait_for_the_function() -> None:
    cancel, free = threading.Event(), threading.Event()

    def slow(prompt: Any) -> str:
        cancel.set()
        free.wait(60)
        return "late"

    with pytest.raises(Cancelled):
        LLM.of(slow)("t", context=CallContext(cancel=cancel))
    free.set()


def test_a_money_limit_needs_a_price() -> None:
    context = CallContext(budget=Budget(max_money=1))
    with pytest.raises(ModelRefused, match="price"):
        LLM.of(lambda prompt: "x")("t", context=context)
    priced = LLM.of(lambda prompt: "x", price={"prompt": 1, "completion": 1})
    assert priced("t", context=context) == "x"


@pytest.mark.parametrize("messages", [None, 5, ["hi"], [{"content": "hi"}], {"role": "user"}])
def test_messages_that_are_no_chat_messages_are_reported(messages: Any) -> None:
    llm = LLM.of(lambda prompt: "hi")
    with pytest.raises(InputError, match=r"^messages: .* is not a"):
        llm(messages)
