"""Length limit and stop texts with services that use different parameter names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ck_pro.exceptions import ConfigError, ModelRefused
from ck_pro.model import LLM, CallContext
from ck_pro.model.backends import reply_bounds as bounds
from ck_pro.testing import FakeChatServer, Fault

HELLO = [{"role": "user", "content": "Hello"}]
STOP = ("\nObservation of step",)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_rejected", {})


def ask(server: FakeChatServer, times: int = 1, **settings: Any) -> Any:
    settings = {"call_kwargs": {"model": "m"}, "max_retry_times": 0, **settings}
    llm = LLM(call_target=server.url, **settings)
    replies = [llm(HELLO, context=CallContext(stop=STOP)) for _ in range(times)]
    return replies[-1]


def sent(server: FakeChatServer) -> list[dict[str, Any]]:
    own = ("model", "messages")
    return [{k: v for k, v in call.body.items() if k not in own} for call in server.calls]


def refusing(*names: str, form: str = "openai") -> Any:
    """A service that rejects these parameters."""

    def answer(call: Any) -> Any:
        bad = next((n for n in names if n in call.body), None)
        if bad is None:
            return "fine"
        message = f"Unsupported parameter: '{bad}' is not supported with this model."
        if form == "openai":
            error = {"message": message, "param": bad, "code": "unsupported_parameter"}
            return Fault(400, body=json.dumps({"error": error}))
        if form == "silent":
            return Fault(400, body="Bad Request")
        detail = [{"loc": ["body", bad], "msg": "Extra inputs are not permitted", "input": "stop"}]
        return Fault(422, body=json.dumps({"detail": detail}))

    return answer


def test_a_call_has_a_length_limit_by_default() -> None:
    with FakeChatServer() as server:
        reply = ask(server)
    assert sent(server) == [{"stop": list(STOP), "max_tokens": 16_384}]
    assert reply.params == {"model": "m", "stop": list(STOP), "max_tokens": 16_384}


def test_the_users_parameters_take_precedence() -> None:
    given = {"model": "m", "max_completion_tokens": 5, "stop": ["END"]}
    with FakeChatServer() as server:
        ask(server, call_kwargs=given)
    assert sent(server) == [{"stop": ["END"], "max_completion_tokens": 5}]


def test_the_limit_can_be_switched_off() -> None:
    with FakeChatServer() as server:
        ask(server, max_reply_tokens=None)
    assert sent(server) == [{"stop": list(STOP)}]
    with pytest.raises(ConfigError, match="max_reply_tokens"):
        LLM(max_reply_tokens=0)


@pytest.mark.parametrize("form", ["openai", "fastapi"])
def test_a_rejected_parameter_is_dropped_once_and_remembered(form: str) -> None:
    with FakeChatServer(refusing("stop", form=form)) as server:
        reply = ask(server, times=3)
    assert str(reply) == "fine" and reply.attempts == 1
    assert ["stop" in params for params in sent(server)] == [True, False, False, False]
    assert all(params["max_tokens"] == 16_384 for params in sent(server))
    assert "stop" not in reply.params


def test_the_other_name_of_the_limit_is_tried() -> None:
    with FakeChatServer(refusing("stop", "max_tokens")) as server:
        ask(server, times=2)
    assert sent(server)[-1] == sent(server)[-2] == {"max_completion_tokens": 16_384}
    assert len(server.calls) == 4


def test_all_limits_are_dropped_if_the_error_names_no_parameter() -> None:
    with FakeChatServer(refusing("stop", form="silent")) as server:
        ask(server, times=2)
    assert [bool(params) for params in sent(server)] == [True, False, False]


def test_a_limit_too_large_for_one_prompt_is_dropped_for_that_call_only() -> None:
    message = "maximum context length is 4096 tokens, you requested 16384 in the completion"

    def answer(call: Any) -> Any:
        return Fault(400, message=message) if "max_tokens" in call.body else "fine"

    with FakeChatServer(answer) as server:
        ask(server, times=2)
    assert ["max_tokens" in params for params in sent(server)] == [True, False, True, False]


def test_the_users_own_parameter_is_never_dropped() -> None:
    given = {"model": "m", "stop": ["END"], "max_tokens": 7}
    with FakeChatServer(refusing("stop")) as server, pytest.raises(ModelRefused, match="stop"):
        ask(server, call_kwargs=given)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(400, message="filtered", code="content_filter"),
        Fault(400, message="the prompt is too long"),
        Fault(401, message="unknown parameter: key"),
        Fault(404, message="no such model: unknown"),
    ],
)
def test_a_rejection_of_something_else_is_not_repeated(fault: Fault) -> None:
    with FakeChatServer([fault]) as server, pytest.raises(Exception, match="model at"):
        ask(server)
    assert len(server.calls) == 1


def test_a_failure_without_the_parameter_is_not_remembered() -> None:
    refusal = Fault(400, message="invalid request: stop right there")
    with FakeChatServer([refusal, refusal, refusal, "fine"]) as server:
        with pytest.raises(ModelRefused):
            ask(server)
        ask(server)
    assert "stop" in sent(server)[-1]


def test_the_responses_api_gets_its_name_of_the_limit_and_no_stop_texts() -> None:
    with FakeChatServer() as server:
        ask(server, call_kwargs={"model": "m", "api": "responses"})
    assert {k: v for k, v in sent(server)[0].items() if k != "input"} == {
        "max_output_tokens": 16_384
    }


def test_a_service_that_fails_at_unknown_parameters_gets_none() -> None:
    message = "TypeError: generate() got an unexpected keyword argument 'max_tokens'"

    def answer(call: Any) -> Any:
        return Fault(500, message=message) if "max_tokens" in call.body else "fine"

    with FakeChatServer(answer) as server:
        reply = ask(server, times=2)
    assert str(reply) == "fine" and len(server.calls) == 3


@pytest.mark.parametrize("name", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_every_finish_reason_of_a_truncated_reply_is_recognised(name: str) -> None:
    with FakeChatServer() as server:
        whole = server.completion("half")
        whole["choices"][0]["finish_reason"] = name
        server.answer = lambda call: whole  # type: ignore[method-assign]
        assert ask(server).finish_reason == "length"


# --- the schema of a reply ----------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"todo_list": {"type": "array"}}}
NO_SCHEMA = [
    Fault(400, message="This response_format type is unavailable now"),
    Fault(400, message="json_schema is not supported by this model"),
    Fault(422, message="Failed to parse grammar"),
    Fault(500, message="Unsupported param: response_format"),
]


def ask_for_data(server: FakeChatServer, times: int, **settings: Any) -> list[dict[str, Any]]:
    settings = {"call_kwargs": {"model": "m"}, "max_retry_times": 0, **settings}
    llm = LLM(call_target=server.url, **settings)
    for _ in range(times):
        llm(HELLO, context=CallContext(reply_schema=SCHEMA))
    return sent(server)


def test_the_schema_of_a_reply_is_sent_as_response_format() -> None:
    with FakeChatServer() as server:
        (params,) = ask_for_data(server, 1)
    form = {"name": "reply", "strict": True, "schema": SCHEMA}
    assert params["response_format"] == {"type": "json_schema", "json_schema": form}


@pytest.mark.parametrize("fault", NO_SCHEMA, ids=lambda fault: fault.message[:20])
def test_a_service_that_rejects_the_schema_gets_plain_prompts_from_then_on(fault: Fault) -> None:
    def answer(call: Any) -> Any:
        return fault if "response_format" in call.body else "fine"

    with FakeChatServer(answer) as server:
        found = ask_for_data(server, 3)
    assert ["response_format" in params for params in found] == [True, False, False, False]
    assert all(params["max_tokens"] == 16_384 for params in found)


def test_the_schema_can_be_switched_off_or_replaced() -> None:
    own = {"type": "json_object"}
    with FakeChatServer() as server:
        ask_for_data(server, 1, response_schema=False)
        ask_for_data(server, 1, call_kwargs={"model": "m", "response_format": own})
    assert [params.get("response_format") for params in sent(server)] == [None, own]
