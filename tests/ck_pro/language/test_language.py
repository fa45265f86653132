"""Parse replies and lay out prompts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.events import CodeAction, MessageAction, ToolCall
from ck_pro.exceptions import ParseError
from ck_pro.executor.extract import extract_code
from ck_pro.language import (
    CodeLanguage,
    FunctionCallingLanguage,
    compose_prompt,
    parse_literal,
    parse_thought_code,
)
from ck_pro.model import Reply


@pytest.mark.parametrize(
    ("reply", "thought", "code"),
    [
        ("Thought: go\n```python\nx = 1\n```", "go", "x = 1"),
        ("go\n```\nx = 1\n```\nafter", "go", "x = 1"),
        ("```py\na\n```\nand\n```python\nb\n```", "", "a\n\nb"),
        ("ended\n```python\nx = 1", "ended", "x = 1"),
        ("t\n~~~python\nx\n~~~", "t", "x"),
        ("**Thought:** t\n\nCode:\n```python\nx\n```", "t", "x"),
        ("<|python_tag|>print(1)<|eom_id|>", "", "print(1)"),
        ('t\n```python\ns = """\n```\n"""\n```', "t", 's = """\n```\n"""'),
        ("t\n  ```python\n  if x:\n      y\n  ```", "t", "if x:\n    y"),
        ("t\n```json\n{}\n```\nso\n```python\nx\n```", "t\n```json\n{}\n```\nso", "x"),
        ("t\n````python\ns = '```'\n````", "t", "s = '```'"),
        ("Thought: t\n<code>\nx = 1\n", "t", "x = 1"),
        ("t\n<execute>\nx\n</execute>\nmore", "t", "x"),
        ("no code at all", "no code at all", ""),
    ],
)
def test_thought_and_code_are_separated(reply: str, thought: str, code: str) -> None:
    assert parse_thought_code(reply) == {"thought": thought, "code": code}


@pytest.mark.parametrize(
    ("reply", "thought"),
    [
        ("Now I run the code\n```python\nx\n```", "Now I run the code"),
        ("Thoughtful reading\n```\nx = 1\n```", "Thoughtful reading"),
        ("I call print(1) now\n```python\nprint(1)\n```", "I call print(1) now"),
        ("Thought\nhm\n```py\nx\n```", "hm"),
    ],
)
def test_thoughts_keep_words_that_look_like_labels(reply: str, thought: str) -> None:
    assert parse_thought_code(reply)["thought"] == thought


@pytest.mark.timeout(20)
@pytest.mark.parametrize("filler", [" ", "\n", "`", "#", "* ", "\t\n", "'", '"""', "```\n"])
def test_every_reply_is_parsed_fast(filler: str) -> None:
    much = filler * (20_000 // len(filler))
    for text in ("x" + much + "y", "Thought:" + much, much):
        parse_thought_code(text)


def test_a_reply_without_code_is_reported_to_the_model() -> None:
    with pytest.raises(ParseError, match="```python"):
        CodeLanguage().parse("I would rather talk.")
    assert CodeLanguage().parse("```\nx\n```") == [CodeAction(code="x")]


@given(st.text())
def test_any_reply_is_parsed_or_raises_a_parse_error(reply: str) -> None:
    try:
        CodeLanguage().parse(reply)
    except ParseError:
        assert not extract_code(reply).strip()


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="`~<\r\n"), min_size=1))
def test_fenced_code_is_returned_unchanged(line: str) -> None:
    if line.strip():
        assert extract_code(f"t\n```python\n{line}\n```").strip() == line.strip()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': [1]}", {"a": [1]}),
        ('{"a": true, "b": null}', {"a": True, "b": None}),
        ("Sure!\n```python\n{'a': 1}\n```", {"a": 1}),
        ("```\nstate = {'a': 1}\n```", {"a": 1}),
        ("well {'a': 1} so", {"a": 1}),
    ],
)
def test_literals_are_parsed(text: str, value: object) -> None:
    assert parse_literal(text) == value


@pytest.mark.parametrize("text", ["", "nothing", "{a: 1}", "{'a': open('x')}", "__import__('os')"])
def test_other_texts_are_not_literals(text: str) -> None:
    with pytest.raises(ParseError):
        parse_literal(text)


def test_native_function_calls_are_parsed() -> None:
    class Reply(str):
        tool_calls = [{"id": "1", "function": {"name": "f", "arguments": '{"x": 2}'}}]

    language = FunctionCallingLanguage()
    assert language.parse(Reply("")) == [ToolCall(name="f", arguments={"x": 2}, call_id="1")]
    assert language.parse("the answer") == [MessageAction(content="the answer")]
    Reply.tool_calls = [{"function": {"name": "f", "arguments": "{"}}]
    with pytest.raises(ParseError, match="arguments of f"):
        language.parse(Reply(""))


@pytest.mark.parametrize("call", ["x", None, {"function": None}, {"function": "f"}])
def test_malformed_native_calls_are_reported(call: object) -> None:
    with pytest.raises(ParseError, match="malformed"):
        FunctionCallingLanguage().parse(Reply("", tool_calls=[call]))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("go\n```python\nprint(1)\nprint(2", False),
        ("go\n```python\nprint(1)\n", False),
        ("just thinking, at great", False),
        ("go\n```python\nprint(1)\n```", True),
        ("go\n```python\nprint(1)\n```\nThis prints", True),
    ],
)
def test_truncated_code_does_not_run(text: str, whole: bool) -> None:
    reply = Reply(text, finish_reason="length")
    if whole:
        (action,) = CodeLanguage().parse(reply)
        assert isinstance(action, CodeAction) and action.code == "print(1)"
        assert "truncated" in action.note
        return
    with pytest.raises(ParseError, match="truncated"):
        CodeLanguage().parse(reply)


def test_a_truncated_answer_does_not_end_the_run() -> None:
    with pytest.raises(ParseError, match="truncated"):
        FunctionCallingLanguage().parse(Reply("The answer is", finish_reason="length"))


def test_prompts_grow_only_at_the_end() -> None:
    history = [
        {"role": "assistant", "content": "a0"},
        {"role": "user", "content": "o0"},
    ]
    one = compose_prompt("sys", "task", [], "page 0", "act")
    two = compose_prompt("sys", "task", history, "page 1", "act")
    assert [m["role"] for m in two] == ["system", "user", "assistant", "user"]
    assert two[3]["content"] == "o0\n\npage 1\n\nact"
    assert one[0] == two[0] and one[1]["content"].startswith(two[1]["content"])
    assert one.instructions == "sys\n\nact"


def test_prompts_with_images_have_parts() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    prompt = compose_prompt("s", "t", [], [{"type": "text", "text": "see"}, image], "act")
    kinds = [p["type"] for p in prompt[-1]["content"]]
    assert kinds == ["text", "text", "image_url", "text"]


# --- observations that a model invents after its code ------------------------------------------

_FIRST, _LATER = "```python\nfirst()\n```", "```python\nlater()\n```"
INVENTED = [
    "Observation: {'output': 42}",
    "Observation of step 3:\n42",
    "# Observation\n42",
    "**Observation:** 42",
    "> Observation: 42",
    "[Observation]\n42",
    "Let me wait. Observation: 42",
    "Output:\n```\n42\n```",
    "### Execution result\n42",
    "Tool result: 42",
    "```output\n42\n```",
    "```tool_outputs\n42\n```",
    "```text\nObservation: 42\n```",
    "```\nOutput: 42\n```",
    "Step 1 result: 42",
    "The observation is: 42",
    "Observation - 42",
    "| Observation | 42 |",
    '{"observation": 42}',
    "<|end|><|start|>functions.python to=assistant<|message|>42<|end|><|start|>assistant",
    "User: thanks, continue",
    "Human: continue",
    "<|im_end|>\n<|im_start|>user\n42<|im_end|>\n<|im_start|>assistant",
    "<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n42",
    "<|observation|>\n42",
    "<end_of_turn>\n<start_of_turn>user\n42",
    "[INST] continue [/INST]",
    "<tool_response>\n42\n</tool_response>",
    "<observation>42</observation>",
    "# Progress so far\n{}",
    "# Current page (data, not instructions)\nURL: http://x.test/",
    "# Files in the working directory\nfound.txt",
    "\uff2fbservation\uff1a 42",
    "Obser\u200bvation: 42",
    "Call 1, first (call_a):\n```\n42\n```",
    "(Earlier steps omitted.)\nsearch",
    "# Notes\n- Continue",
    "# Available functions\ndef f(): ...",
    "观察结果\uff1a42",
]


@pytest.mark.parametrize("invented", INVENTED)
def test_code_after_an_invented_observation_does_not_run(invented: str) -> None:
    (action,) = CodeLanguage().parse(f"Thought: so\n{_FIRST}\n{invented}\n{_LATER}")
    assert isinstance(action, CodeAction)
    assert action.code == "first()" and "invented" in action.note


@pytest.mark.parametrize(
    "between",
    [
        "",
        "Then I look at the result and continue.",
        "Thought: the output of that is a list.",
        "## Next step",
        "1. observe\n2. act",
        "```text\na tree of files\n```",
        "The result of that is what I need.",
        "Results follow in the next step.",
        "The user: Ada.",
        "```json\n{'a': 1}\n```",
    ],
)
def test_all_blocks_run_if_only_prose_is_between_them(between: str) -> None:
    (action,) = CodeLanguage().parse(f"{_FIRST}\n{between}\n{_LATER}")
    assert isinstance(action, CodeAction)
    assert (action.code, action.note) == ("first()\n\nlater()", "")


@pytest.mark.parametrize(
    "reply",
    [
        "```python\nfirst()\nObservation: {'output': 1}\n```python\nlater()\n```",
        "```python\nfirst()\nObservation: {'output': 1}\nlater()\n```",
        "```python\nfirst()\n<|im_end|>\n<|im_start|>user\nlater()",
        "```\nfirst()\n```\nOutput: 1\n```\nlater()\n```",
        "```\nfirst()\n```\nOutput: 1\n```python\nlater()\n```",
        "~~~python\nfirst()\n~~~\nObservation: 1\n~~~python\nlater()\n~~~",
        "<|im_start|>assistant\n```python\nfirst()\n```<|im_end|>\n<|im_start|>user\nlater()",
        "<code>\nfirst()\n</code>\nObservation: 1\n<code>\nlater()\n</code>",
        "<|python_tag|>first()<|eom_id|><|start_header_id|>ipython<|end_header_id|>later()",
        "first()\nObservation: 1\nlater()",
    ],
)
def test_no_form_of_code_runs_after_an_invented_observation(reply: str) -> None:
    (action,) = CodeLanguage().parse(reply)
    assert isinstance(action, CodeAction)
    assert action.code == "first()" and "invented" in action.note


@pytest.mark.parametrize(
    "code",
    [
        "text = '''\nObservation: 1\n'''\nprint(text)",
        "# Output:\nprint(1)",
        "Output: list[str] = []\nprint(Output)",
        "data = {\n    'user': 1,\n}",
        "print('''<|im_start|>user''')",
    ],
)
def test_code_that_mentions_observations_runs_completely(code: str) -> None:
    (action,) = CodeLanguage().parse(f"```python\n{code}\n```")
    assert isinstance(action, CodeAction) and (action.code, action.note) == (code, "")


def test_a_reply_that_invents_a_turn_before_any_code_has_no_code() -> None:
    turn = "<|im_start|>user\nFound 42.<|im_end|>\n<|im_start|>assistant\n"
    with pytest.raises(ParseError, match="contains no code"):
        CodeLanguage().parse(f"I will search.\n{turn}{_LATER}")


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_code_in_an_unclosed_thought_does_not_run(finish: str) -> None:
    with pytest.raises(ParseError):
        CodeLanguage().parse(Reply(f"<think>I could do\n{_FIRST}\nbut", finish_reason=finish))


def test_an_end_token_alone_is_not_an_invented_turn() -> None:
    (action,) = CodeLanguage().parse(f"so\n{_FIRST}<|im_end|>\n")
    assert isinstance(action, CodeAction) and action.note == ""


@given(st.text(max_size=60), st.sampled_from(INVENTED), st.text(max_size=60))
def test_text_after_an_invented_observation_is_never_code(
    before: str, invented: str, after: str
) -> None:
    own = "".join(c for c in before if c not in "`~<")
    code = extract_code(f"{own}\n{_FIRST}\n{invented}\n{after}\n{_LATER}\n{after}")
    assert "later()" not in code


@given(st.lists(st.sampled_from(["say", "so", "now", "1.", "##", "-", "\n", "it's", "(a)"])))
def test_plain_prose_never_hides_a_block(words: list[str]) -> None:
    code = extract_code(f"{_FIRST}\n{' '.join(words)}\n{_LATER}")
    assert code == "first()\n\nlater()"
