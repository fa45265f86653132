"""Agents with function calls, and models that write calls as text."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_main.agent import CKAgent
from ck_pro import AgentSession, MultiStepAgent, StopTool
from ck_pro.approval import describe
from ck_pro.events import MessageAction, ToolCall
from ck_pro.exceptions import ParseError
from ck_pro.language import END_FORM, FunctionCallingLanguage, text_of
from ck_pro.model import Reply
from ck_pro.session import Status, StopReason
from ck_pro.testing import ScriptedLLM

LANGUAGE = FunctionCallingLanguage()
SEARCH = {"query": "b", "count": 3}
WRITTEN = [
    "search(query='b', count=3)",
    'search(query="b", count=3)',
    "I will search.\nsearch(query='b', count=3)",
    "functions.search(query='b', count=3)",
    "Action: search(query='b', count=3)",
    'Action: search\nAction Input: {"query": "b", "count": 3}',
    "search(\n    query='b',\n    count=3,\n)",
    '{"name": "search", "arguments": {"query": "b", "count": 3}}',
    '{"name": "search", "parameters": {"query": "b", "count": 3}}',
    '{"tool": "search", "input": {"query": "b", "count": 3}}',
    '{"function": {"name": "search", "arguments": "{\\"query\\": \\"b\\", \\"count\\": 3}"}}',
    '[{"name": "search", "arguments": {"query": "b", "count": 3}}]',
    '{"tool_calls": [{"function": {"name": "search", "arguments": {"query": "b", "count": 3}}}]}',
    'Now:\n```json\n{"name": "search", "arguments": {"query": "b", "count": 3}}\n```',
    '<tool_call>\n{"name": "search", "arguments": {"query": "b", "count": 3}}\n</tool_call>',
    '<tool_call>{"name": "search", "arguments": {"query": "b", "count": 3}}</tool_call>',
    '[TOOL_CALLS][{"name": "search", "arguments": {"query": "b", "count": 3}}]',
    '<|tool_call|>[{"name": "search", "arguments": {"query": "b", "count": 3}}]',
    '<function=search>{"query": "b", "count": 3}</function>',
    "<tool_call>\n<function=search>\n<parameter=query>\nb\n</parameter>\n"
    "<parameter=count>\n3\n</parameter>\n</function>\n</tool_call>",
    '<function_calls><invoke name="search"><parameter name="query">b</parameter>'
    '<parameter name="count">3</parameter></invoke></function_calls>',
    "`search(query='b', count=3)`",
    "[search(query='b', count=3)]",
    "<think>search(query='no')</think>search(query='b', count=3)",
]


def calls(*made: tuple[str, dict[str, Any]]) -> Reply:
    """A reply with native calls."""
    found = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(a)}}
        for n, (name, a) in enumerate(made)
    ]
    return Reply("", tool_calls=found)


def agent(*replies: Any, kind: type[MultiStepAgent] = MultiStepAgent, **settings: Any) -> Any:
    settings = {"tools": [search, StopTool()], "language": "function_calls", **settings}
    return kind(model=ScriptedLLM(list(replies)), **settings)


def search(query: str, count: int = 1) -> str:
    """Searches."""
    return f"found {query * count}"


def seen(session: AgentSession) -> list[Any]:
    return [s["action"]["observation"] for s in session.steps]


STOP = calls(("stop", {"output": "42"}))


@pytest.mark.parametrize("reply", WRITTEN)
def test_a_call_written_as_text_is_parsed(reply: str) -> None:
    assert LANGUAGE.parse(reply) == [ToolCall(name="search", arguments=SEARCH)]
    session = agent(reply, STOP).run("t")
    assert seen(session)[0] == "found bbb" and session.final_results["output"] == "42"


def test_several_calls_as_text_run_in_order() -> None:
    session = agent("search(query='a')\nsearch(query='b')\nstop(output='42')").run("t")
    assert seen(session)[0][:2] == ["found a", "found b"] and session.status is Status.DONE


@pytest.mark.parametrize(
    "between",
    [
        "Observation: found b",
        "User: continue",
        "<tool_response>b</tool_response>",
        "Call 1, search (c0):\n```\nfound b\n```",
        "Call 1, search:\nfound b",
    ],
)
def test_a_call_after_an_invented_result_does_not_run(between: str) -> None:
    first = f"search(query='b')\n{between}\nstop(output='99')"
    session = agent(first, STOP).run("t")
    assert session.final_results["output"] == "42"
    assert "invented" in seen(session)[0] and "found b" in seen(session)[0]
    assert session.to_dict()["info"]["unreadable"] == {"action": 1}


@pytest.mark.parametrize(
    "reply",
    [
        "```python\nstop(output='99')\n```",
        "Thought: so\n```python\nresult = search(query='b')\nprint(result)\n```",
        "~~~py\nstop('99')\n~~~",
        "print(search(query='b'))",
        "search('b')",
        "import os",
    ],
)
def test_python_is_neither_run_nor_taken_as_the_answer(reply: str) -> None:
    with pytest.raises(ParseError, match="code does not run here"):
        LANGUAGE.parse(reply)
    session = agent(reply, STOP).run("t")
    assert session.final_results["output"] == "42" and "code does not run" in seen(session)[0]


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is 42.",
        '{"answer": 42}',
        '{"name": "Ada", "age": 36}',
        "I would call stop(output='42') now.",
    ],
)
def test_a_message_ends_the_run_only_without_a_terminal_function(reply: str) -> None:
    session = agent(reply, STOP).run("t")
    assert len(session.steps) == 2 and session.final_results["output"] == "42"
    assert "call stop with the answer" in seen(session)[0]


def test_the_message_of_an_agent_without_stop_is_its_answer() -> None:
    assert LANGUAGE.parse("so") == [MessageAction(content="so")]
    session = agent("It is 42.", tools=[search]).run("t")
    assert (session.status, session.final_results["output"]) == (Status.DONE, "It is 42.")


@pytest.mark.parametrize(
    "reply",
    [
        "I will call search(query='b') now.",
        "First search('b'), then I answer.",
        'So: {"name": "search", "arguments": {"query": "b"',
        'The call is {"tool": "search", "input": "b"}.',
        "- search(query=the town)",
    ],
)
def test_prose_shaped_like_a_call_is_never_the_answer(reply: str) -> None:
    session = agent(reply, "It is 42.", tools=[search]).run("t")
    assert session.final_results["output"] == "It is 42."
    assert seen(session)[0].startswith("ParseError: The reply has a call of search inside its text")


@pytest.mark.parametrize(
    "answer",
    [
        "research(x) is a function.",
        '{"name": "Ada"}',
        "See re.search(x) for it.",
        "I search (a lot).",
    ],
)
def test_an_answer_that_only_resembles_a_call_is_the_answer(answer: str) -> None:
    session = agent(answer, tools=[search]).run("t")
    assert (len(session.steps), session.final_results["output"]) == (1, answer)


def test_a_model_that_only_talks_is_stopped_as_stuck() -> None:
    session = agent(*["It is 42."] * 9, stuck_limit=3).run("t")
    assert session.stop_reason is StopReason.STUCK and session.status is not Status.DONE
    assert session.to_dict()["info"]["unreadable"] == {"action": 3}


def test_calls_after_stop_do_not_run() -> None:
    ran: list[str] = []

    def order(what: str) -> str:
        """Orders."""
        ran.append(what)
        return what

    made = calls(("stop", {"output": "42"}), ("order", {"what": "lamp"}), ("stop", {"output": "9"}))
    session = agent(made, tools=[order, StopTool()]).run("t")
    assert (ran, session.final_results["output"]) == ([], "42")
    assert seen(session)[0][-1] == (
        "Not called, because the work has ended: order(what='lamp'), stop(output='9')"
    )


@pytest.mark.parametrize("text", ["", "the answer is"])
def test_no_call_of_a_truncated_reply_runs(text: str) -> None:
    cut = [{"id": "c", "function": {"name": "stop", "arguments": ""}}]
    for found in (cut, []):
        reply = Reply(text, tool_calls=found, finish_reason="length")
        with pytest.raises(ParseError, match="none of its calls ran"):
            LANGUAGE.parse(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "<tool_call>{broken</tool_call>",
        "<function=search>",
        "<\uff5ctool\u2581calls\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>search",
        '<|channel|>commentary to=functions.search <|message|>{"query": "b"}<|call|>',
        "[TOOL_CALLS]search{broken",
    ],
)
def test_a_malformed_call_is_reported(reply: str) -> None:
    with pytest.raises(ParseError, match="malformed"):
        LANGUAGE.parse(reply)


@pytest.mark.parametrize("filler", ["f(\n", "<function=x>\n", "{\n", "[f(a=1),\n", "<parameter=a>"])
def test_a_long_reply_is_parsed_fast(filler: str) -> None:
    with contextlib.suppress(ParseError):
        LANGUAGE.parse(filler * (100_000 // len(filler)))


# --- plans and final results --------------------------------------------------------------------

PLAN = {"completed_list": [], "todo_list": ["a"], "experience": [], "information": []}


@pytest.mark.parametrize(
    "plan",
    [
        calls(("update_plan", PLAN)),
        json.dumps(PLAN),
        f"Thought: so\n```json\n{json.dumps(PLAN)}\n```",
        json.dumps({"name": "update_plan", "arguments": PLAN}),
    ],
)
def test_the_main_agent_plans_and_acts_by_function_calls(plan: str) -> None:
    a = agent(plan, STOP, kind=CKAgent, tools=["stop"], sub_agents=[], planning="separate")
    session = a.run("t")
    assert session.status is Status.DONE and session.state == PLAN
    assert session.to_dict()["info"].get("unreadable") is None
    tools = [[t["function"]["name"] for t in c.params["tools"]] for c in a.model.calls]
    assert tools == [["stop", "update_plan"]] * 2
    for call in a.model.calls:
        text = "\n".join(text_of(m["content"]) for m in call.messages)
        assert "python" not in text.casefold() and "```python" not in text


def test_a_plan_can_be_updated_in_the_action_phase() -> None:
    reply = calls(("update_plan", PLAN), ("stop", {"output": "42"}))
    session = agent(reply, kind=CKAgent, tools=["stop"], sub_agents=[]).run("t")
    assert session.state == PLAN and session.status is Status.DONE
    assert seen(session)[0][0] == "The plan is updated."
    assert session.call_stat()["__ALL__"]["llm_call"] == 1


@pytest.mark.parametrize(
    "end",
    [calls(("report_result", {"output": "42", "log": "so"})), '{"output": "42", "log": "so"}'],
)
def test_the_end_phase_is_a_function_call_too(end: str) -> None:
    a = agent(STOP, end, templates={"action": "agent_action", "end": "agent_end"})
    session = a.run("t")
    assert session.final_results == {"output": "42", "log": "so"}
    assert [t["function"]["name"] for t in a.model.calls[1].params["tools"]] == [END_FORM.name]


# --- properties ---------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_a_call_is_parsed_as_the_history_shows_it(arguments: dict[str, Any]) -> None:
    import keyword

    if any(keyword.iskeyword(name) for name in arguments):
        return
    call = ToolCall(name="search", arguments=arguments)
    assert LANGUAGE.parse(describe(call)) == [call]


@given(st.text())
def test_any_reply_is_calls_a_message_or_a_parse_error(reply: str) -> None:
    try:
        actions = LANGUAGE.parse(reply)
    except ParseError:
        return
    assert actions and all(isinstance(a, ToolCall | MessageAction) for a in actions)
