"""The Responses API: prompts as input items, and parsing of responses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from computer_items import CHECK, PICTURE, computer_call, items_language
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import (
    CKError,
    ContentFiltered,
    ParseError,
)
from ck_pro.language import (
    ComputerUseLanguage,
    compose_prompt,
)
from ck_pro.language.computer import OMITTED, UNCHANGED
from ck_pro.model import Reply
from ck_pro.model.backends.responses import parse_response
from ck_pro.model.backends.responses_input import request_body, wants_responses
from ck_pro.model.shorten import estimate_tokens, fit
from ck_pro.template import TemplatedString

# --- prompts -----------------------------------------------------------------------------------


def step(n: int, items: list[dict[str, Any]], observation: Any, *screens: Any) -> dict[str, Any]:
    reply = {"output": [*items], "status": "completed", "model": "m"}
    raw = parse_response("x", 200, json.dumps(reply), {})
    info = {"items": raw.items, "tool_calls": raw.tool_calls}
    action = {"thought": "", "code": "c", "observation": observation, "llm_output": raw.text}
    return {"step_idx": n, "action": {**action, "llm_info": info, "screens": list(screens)}}


def shot(call_id: str = "c1", image: str = PICTURE, **facts: Any) -> dict[str, Any]:
    return {"call_id": call_id, "image": image, "current_url": "http://x.test/", **facts}


def wire(language: ComputerUseLanguage, *steps: dict[str, Any], current: Any = "now") -> list[Any]:
    """Return the input items of a prompt with these finished steps."""
    history = [m for s in steps for m in language.history(s, str(s["action"]["observation"]))]
    template = TemplatedString(lambda: compose_prompt("sys", "task", history, current, "act"))
    params = language.call_kwargs([])
    body = request_body(language.render(template, {}), params)
    assert body["truncation"] == "auto" and body["tools"] == params["tools"]
    return list(body["input"])


def test_a_step_is_sent_back_as_its_output_items() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = computer_call(checks=[CHECK])
    acknowledged = shot(acknowledged_safety_checks=[CHECK])
    sent = wire(items_language(), step(0, [reasoning, call], "clicked", acknowledged))
    assert [i.get("role") or i["type"] for i in sent] == [
        *("system", "user", "reasoning", "computer_call", "computer_call_output", "user", "user")
    ]
    assert sent[2:4] == [reasoning, call]
    assert sent[4] == {
        "type": "computer_call_output",
        "call_id": "c1",
        "acknowledged_safety_checks": [CHECK],
        "output": {
            "type": "computer_screenshot",
            "image_url": PICTURE,
            "current_url": "http://x.test/",
        },
    }
    assert sent[5]["content"] == "clicked" and sent[6]["content"].endswith("now\n\nact")


def test_a_call_without_a_screenshot_is_sent_as_text() -> None:
    refused = step(0, [computer_call()], "not allowed")
    unacknowledged = step(1, [computer_call("c2", checks=[CHECK])], "hm", shot("c2"))
    sent = wire(items_language(), refused, unacknowledged)
    assert [i["role"] for i in sent] == ["system", "user", *["assistant", "user"] * 2, "user"]
    assert '"action": "click"' in sent[2]["content"] and sent[3]["content"] == "not allowed"
    parts = sent[5]["content"]
    assert [p["type"] for p in parts] == ["input_text", "input_image"]


def test_each_function_call_and_batch_gets_its_output() -> None:
    call = {"type": "function_call", "call_id": "f1", "name": "add", "arguments": "{}"}
    acts = [{"type": "click", "button": "left", "x": 1, "y": 2}, {"type": "wait"}]
    batch = {**computer_call("c1"), "action": None, "actions": acts}
    done = step(0, [call, batch], ["3", "clicked", "waited"], shot(), shot("c1#2", PICTURE + "B"))
    sent = wire(items_language(), done)
    assert [i["type"] for i in sent[2:6]] == [
        "function_call",
        "computer_call",
        "function_call_output",
        "computer_call_output",
    ]
    assert sent[4]["output"] == "3" and sent[5]["output"]["image_url"] == PICTURE + "B"
    assert sent[6]["content"] == "clicked\nwaited"


def test_older_screenshots_are_omitted_in_batches_and_none_is_sent_twice() -> None:
    def shown(count: int) -> list[str]:
        steps = [
            step(n, [computer_call(f"c{n}")], "ok", shot(f"c{n}", f"{PICTURE}{n}"))
            for n in range(count)
        ]
        image = {"type": "image_url", "image_url": {"url": f"{PICTURE}{count - 1}"}}
        sent = wire(items_language(screenshots=2), *steps, current=[image])
        assert sum(OMITTED in str(i.get("content")) for i in sent) == count - sum(
            i.get("type") == "computer_call_output" for i in sent
        )
        assert "input_image" not in str(sent[-1])
        return [i["call_id"] for i in sent if i.get("type") == "computer_call_output"]

    assert [len(shown(n)) for n in range(1, 8)] == [1, 2, 3, 2, 3, 2, 3]
    assert shown(5) == ["c2", "c3", "c4"]


def test_a_screenshot_is_omitted_if_the_next_one_shows_the_same() -> None:
    contents = ["a", "a", "b", "a", "a", "a"]
    steps = [
        step(n, [computer_call(f"c{n}")], "ok", shot(f"c{n}", f"{PICTURE}{n}", content=content))
        for n, content in enumerate(contents)
    ]
    sent = wire(items_language(screenshots=4), *steps)
    assert "screen_content" not in str(sent)
    shown = [i["call_id"] for i in sent if i.get("type") == "computer_call_output"]
    assert shown == ["c1", "c2", "c5"] and str(sent).count(UNCHANGED) == 3
    equal = [step(n, [computer_call(f"c{n}")], "ok", shot(f"c{n}")) for n in range(3)]
    shown = [i for i in wire(items_language(), *equal) if i.get("type") == "computer_call_output"]
    assert [i["call_id"] for i in shown] == ["c2"]


@pytest.mark.parametrize("limit", [7000, 4000, 2000, 1000, 600, 250])
def test_shortened_prompts_keep_calls_and_outputs_together(limit: int) -> None:
    language, history = items_language(screenshots=10), []
    for n in range(6):
        reasoning = {"type": "reasoning", "id": f"r{n}", "summary": []}
        items = [reasoning, computer_call(f"c{n}")]
        done = step(n, items, "ok " * 50, shot(f"c{n}", f"{PICTURE}{n}"))
        history += language.history(done, done["action"]["observation"])
    prompt = compose_prompt("sys" * 100, "task", history, "now", "act")
    sent, shortened = fit(prompt, limit)
    assert shortened and estimate_tokens(sent) <= limit
    items = request_body(sent, language.call_kwargs([]))["input"]
    calls = [i["call_id"] for i in items if i.get("type") == "computer_call"]
    outputs = [i["call_id"] for i in items if i.get("type") == "computer_call_output"]
    assert calls == outputs == sorted(calls) and len(calls) < 6
    assert sum(i.get("type") == "reasoning" for i in items) == len(calls)
    assert items[-1]["content"] == "now\n\nact"


def test_chat_messages_are_translated() -> None:
    image = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
    call = {"id": "f", "type": "function", "function": {"name": "g", "arguments": {"a": 1}}}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, image]},
        {"role": "assistant", "content": "calling", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "f", "content": "result"},
        {"role": "assistant", "content": [{"type": "text", "text": "said"}]},
    ]
    tool = {"type": "function", "function": {"name": "g", "parameters": {}}}
    params = {
        "tools": [tool],
        "tool_choice": {"type": "function", "function": {"name": "g"}},
        "max_tokens": 9,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "api": "responses",
        "model": "left to the caller",
    }
    assert request_body(messages, params) == {
        "tools": [{"type": "function", "name": "g", "parameters": {}, "strict": False}],
        "tool_choice": {"type": "function", "name": "g"},
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "input": [
            {"role": "system", "content": "s"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": PICTURE, "detail": "low"},
                ],
            },
            {"role": "assistant", "content": "calling"},
            {"type": "function_call", "call_id": "f", "name": "g", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "f", "output": "result"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "said"}]},
        ],
    }


def test_tools_items_and_the_parameter_select_the_api() -> None:
    assert not wants_responses({"tools": [{"type": "function"}]}, [])
    assert wants_responses({"tools": [{"type": "computer"}]}, [])
    assert wants_responses({}, [{"role": "assistant", "content": "", "items": [{}]}])
    assert wants_responses({"api": "responses"}, []) and not wants_responses(
        {"api": "chat", "tools": [{"type": "computer"}]}, []
    )


# --- responses ---------------------------------------------------------------------------------


def test_a_response_is_parsed() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    output = [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "I click."}]},
        computer_call(),
    ]
    body = json.dumps({"model": "m-1", "status": "completed", "output": output, "usage": usage})
    raw = parse_response("x", 200, body, {})
    assert (raw.text, raw.reasoning, raw.model) == ("I click.", "hm", "m-1")
    assert (raw.items, raw.finish_reason) == (output, "tool_calls")
    assert raw.usage is not None
    assert (raw.usage.cached_tokens, raw.usage.reasoning_tokens) == (60, 4)
    (call,) = raw.tool_calls
    given = json.loads(call["function"]["arguments"])
    assert given == {"action": "click", "button": "left", "x": 1, "y": 2}


CUT = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
REFUSAL = {"type": "message", "content": [{"type": "refusal", "refusal": "I won't"}]}


@pytest.mark.parametrize(
    ("status", "data", "error", "message"),
    [
        (200, {"error": {"code": "server_error", "message": "oops"}}, "Transient", "oops"),
        (200, {"error": {"code": "invalid_prompt", "message": "bad"}}, "ModelRefused", "bad"),
        (200, {"status": "failed"}, "Transient", "status 'failed'"),
        (429, {"error": {"message": "slow down"}}, "Transient", "slow down"),
        (404, {"error": {"message": "no route"}}, "ModelRefused", "no route"),
        (200, {"choices": []}, "Transient", "not a response of the Responses API"),
        (200, [1], "Transient", "not a response of the Responses API"),
        (200, {"output": [], **CUT}, "FilteredReply", "content filter"),
        (200, {"output": [REFUSAL]}, "FilteredReply", "I won't"),
    ],
)
def test_failed_responses_raise(status: int, data: Any, error: str, message: str) -> None:
    with pytest.raises(CKError, match=message) as caught:
        parse_response("x", status, json.dumps(data), {})
    assert type(caught.value).__name__ == error
    assert isinstance(caught.value, ContentFiltered) == (error == "FilteredReply")


def test_a_truncated_response_is_reported() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "so fa"}]}
    cut = {"output": [message], "status": "incomplete"}
    data = {**cut, "incomplete_details": {"reason": "max_output_tokens"}}
    assert parse_response("x", 200, json.dumps(data), {}).finish_reason == "length"
    with pytest.raises(CKError, match="truncated or not JSON"):
        parse_response("x", 200, '{"output": [', {})


JUNK: list[Any] = [
    None,
    1,
    "x",
    [],
    {},
    [1],
    [{}],
    {"type": "click"},
    [{"type": "click"}],
    {"x": []},
]
FIELDS = ("content", "action", "actions", "summary", "call_id", "arguments", "name")
junk = st.sampled_from(JUNK)
kinds = st.sampled_from(["message", "computer_call", "function_call", "reasoning", None, {}])
odd_items = st.fixed_dictionaries({"type": kinds}, optional=dict.fromkeys(FIELDS, junk))


@given(st.lists(odd_items | junk, max_size=3) | junk, junk)
def test_any_response_is_parsed_or_raises_a_model_error(output: Any, other: Any) -> None:
    body = {"output": output, "usage": other, "incomplete_details": other, "status": "incomplete"}
    try:
        raw = parse_response("x", 200, json.dumps(body), {})
    except CKError:
        return
    try:
        items_language().parse(Reply(raw.text, items=raw.items, tool_calls=raw.tool_calls))
    except ParseError:
        pass
