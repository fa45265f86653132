"""Replies that a person composes from parts, and the languages that read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.events import CodeAction, ToolCall
from ck_pro.exceptions import ParseError
from ck_pro.language import CodeLanguage, FunctionCallingLanguage
from ck_pro.language.composing import compose_calls
from ck_pro.model import Reply

CLICK = {
    "name": "click",
    "parameters": {"type": "object", "properties": {"id": {}, "link_name": {}}, "required": ["id"]},
}
_NAME = st.text("abcxyz_", min_size=1, max_size=6)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAME, inner, max_size=3),
    max_leaves=6,
)


@given(st.text(max_size=200))
def test_any_string_literal_in_code_survives_its_fence(text: str) -> None:
    code = f"print({text!r})\nclick(3)"
    reply = CodeLanguage().compose({"thought": "Look.", "code": code})
    try:
        (action,) = CodeLanguage().parse(reply.text)
    except ParseError:
        return  # the dry run shows it before the reply is sent
    assert isinstance(action, CodeAction)
    assert action.code == code or action.note or "<|" in text or "\uff5c" in text


@pytest.mark.parametrize("text", ["```", "```python\nx\n```", "````", "~~~", "Thought: no"])
def test_code_with_fences_in_a_text_is_read_back(text: str) -> None:
    code = f"note = '''\n{text}\n'''\nprint(note)"
    reply = CodeLanguage().compose({"thought": "Look.", "code": code})
    (action,) = CodeLanguage().parse(reply.text)
    assert isinstance(action, CodeAction) and (action.thought, action.code) == ("Look.", code)


def test_a_plan_stands_in_a_block_before_the_code() -> None:
    plan = "{'todo_list': ['a'], 'completed_list': []}"
    reply = CodeLanguage().compose({"thought": "So.", "plan": plan, "code": "print(1)"})
    found, rest = CodeLanguage().split_plan(Reply(reply.text))
    assert found == plan
    (action,) = CodeLanguage().parse(rest)
    assert isinstance(action, CodeAction) and action.code == "print(1)"


def test_a_whole_reply_stays_as_written() -> None:
    for language in (CodeLanguage(), FunctionCallingLanguage()):
        assert language.compose({"text": "as it is ```"}).text == "as it is ```"


@given(st.lists(st.tuples(_NAME, st.dictionaries(_NAME, _VALUE, max_size=3)), max_size=4))
def test_calls_written_as_python_become_native_calls(
    calls: list[tuple[str, dict[str, object]]],
) -> None:
    lines = [f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in calls]
    composed = compose_calls("\n".join(lines), [])
    read = [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in composed]
    assert read == calls
    if calls:
        reply = FunctionCallingLanguage().compose({"thought": "Go.", "code": "\n".join(lines)})
        actions = FunctionCallingLanguage().parse(Reply(reply.text, tool_calls=reply.tool_calls))
        assert [(a.name, a.arguments) for a in actions if isinstance(a, ToolCall)] == calls


def test_positional_arguments_get_the_names_of_the_function() -> None:
    (call,) = compose_calls("click(3, 'Next')", [CLICK])
    assert json.loads(call["function"]["arguments"]) == {"id": 3, "link_name": "Next"}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("click(3", r"line 1: not a call: '\(' was never closed"),
        ("x = 3", "line 1: not a call; write name"),
        ("click(1, 2, 3)", "line 1: name the arguments of click"),
        ("\nother(3)", "line 2: name the arguments of other"),
        ("click(3, id=4)", "line 1: click has two values for id"),
        ("click(**a)", r"line 1: write the arguments of click one by one, without \*\*"),
        ("click(id=find())", "line 1: id of click is not a plain value"),
        ("click(id=1e999)", "line 1: id of click is not a plain value"),
    ],
)
def test_a_malformed_call_is_reported_with_its_line(code: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        compose_calls(code, [CLICK])


@given(st.text(max_size=100))
def test_no_text_crashes_the_parser_of_calls(text: str) -> None:
    try:
        compose_calls(text, [CLICK])
    except ParseError as e:
        assert "\n" not in str(e).partition(":")[0]
