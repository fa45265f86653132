"""Models that copy the example of the prompt, repeat themselves, or need the form of a plan."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_agents import code

from ck_main.agent import CKAgent
from ck_pro import AgentSession, MultiStepAgent, StopTool
from ck_pro.agent.prompts import MADE_UP
from ck_pro.language import message_text, parse_literal, text_of
from ck_pro.model import LLM, Reply
from ck_pro.run.history import _signature
from ck_pro.session import Status, StopReason
from ck_pro.testing import FakeChatServer, Fault, ScriptedLLM
from ck_web.agent import WebAgent
from ck_web.computer import ComputerAgent

EXAMPLE = "# Example of a reply"


def agent(*replies: Any, **settings: Any) -> Any:
    settings = {"tools": [StopTool()], "language": "function_calls", **settings}
    return MultiStepAgent(model=ScriptedLLM(list(replies)), **settings)


def call(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply("", tool_calls=[{"id": "c", "type": "function", "function": function}])


def prompt(a: Any, number: int) -> str:
    return "\n".join(text_of(m["content"]) for m in a.model.calls[number].messages)


def seen(session: AgentSession) -> list[str]:
    return [str(s["action"]["observation"]) for s in session.steps]


def search(query: str) -> str:
    """Searches."""
    if query == "broken":
        raise ValueError("no such thing")
    return f"found {query}"


# --- copied examples ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [MultiStepAgent, CKAgent, WebAgent, ComputerAgent])
def test_the_example_of_a_prompt_in_code_uses_the_made_up_name(kind: Any) -> None:
    from ck_main import prompts as main_prompts
    from ck_pro.agent import prompts as core_prompts
    from ck_web import prompts as web_prompts

    parts = {
        MultiStepAgent: [core_prompts._PARTS],
        CKAgent: [main_prompts._CODING, main_prompts._CODING_ALONE],
        WebAgent: [web_prompts._WEB_CODE],
        ComputerAgent: [web_prompts._screen_code(web_prompts.Screen(1280, 720))],
    }
    for part in parts[kind]:
        block = part.example.partition("```python\n")[2]
        assert MADE_UP.casefold() in block.casefold()
        values = [line for line in block.split("\n") if "http" in line or "type(" in line]
        assert all(MADE_UP.casefold() in line.casefold() for line in values)


@pytest.mark.worker
def test_code_copied_from_the_example_does_not_run(tmp_path: Any) -> None:
    copied = code(f"open('copied', 'w').write('x')\nsearch('{MADE_UP}')")
    a = agent(copied, code("stop('42')"), tools=[search, StopTool()], language="code")
    session = a.run("How many towns are there?", workdir=tmp_path)
    assert seen(session)[0].startswith("CopiedExample: The reply copies the example")
    assert "How many towns are there?" in seen(session)[0]
    assert session.final_results["output"] == "42" and not (tmp_path / "copied").exists()


def test_a_call_with_a_value_of_the_example_does_not_run() -> None:
    a = agent(call("search", query=f"the {MADE_UP.lower()} lamp"), call("stop", output="42"))
    a = a.updated({"tools": [search, StopTool()]})
    assert "copies the example" in seen(a.run("t"))[0]


@pytest.mark.parametrize("language", ["function_calls", "code"])
def test_the_next_prompt_has_neither_the_example_nor_the_copy(language: str) -> None:
    copies = {"function_calls": call("search", query=MADE_UP), "code": code(f"f('{MADE_UP}')")}
    a = agent(copies[language], "text", language=language, max_steps=2)
    a.run("Count the towns.")
    text = "\n".join(message_text(m) for m in a.model.calls[1].messages)
    assert MADE_UP not in text and EXAMPLE not in text
    assert "If a result above answers the task, call stop with it." in text


def test_the_made_up_name_may_occur_in_the_task_and_in_results() -> None:
    replies = [call("search", query=MADE_UP), call("stop", output="42")]
    assert seen(agent(*replies, tools=[search, StopTool()]).run(f"Find {MADE_UP}."))[0] == (
        f"found {MADE_UP}"
    )

    def page() -> str:
        """Shows a page."""
        return f"Welcome to {MADE_UP}"

    a = agent(call("page"), *replies, tools=[page, search, StopTool()])
    assert seen(a.run("t"))[1] == f"found {MADE_UP}"


# --- repeated replies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "settings"),
    [
        (call("search", query="broken"), {}),
        ("I only talk.", {}),
        ("I only talk.", {"language": "code"}),
        (call("search", query="again"), {}),
    ],
)
def test_the_prompt_changes_after_identical_replies(reply: str, settings: Any) -> None:
    a = agent(*[reply] * 4, tools=[search, StopTool()], stuck_limit=4, **settings)
    a.run("Count the towns.")
    first, second, third, _ = (prompt(a, n) for n in range(4))
    assert EXAMPLE in first and EXAMPLE in second and EXAMPLE not in third
    assert "# The task again\nCount the towns.\nYou can call: search, stop." in third
    assert "The task again" not in second


def test_a_cycle_of_equal_steps_leaves_the_history_and_is_shown_in_a_note() -> None:
    replies = [call("search", query=q) for q in ("first", *("a", "b") * 3)]
    a = agent(*replies, call("stop", output="42"), tools=[search, StopTool()])
    a.run("t")
    queries = [
        [
            json.loads(m["tool_calls"][0]["function"]["arguments"])["query"]
            for m in a.model.calls[n].messages
            if m["role"] == "assistant"
        ]
        for n in (4, 5, 7)
    ]
    assert queries == [["first", "a", "b", "a"], ["first"], ["first"]]
    note = """\
- You repeated the same 2 steps 3 times with the same result:
```
search(query='a')
-> found a
search(query='b')
-> found b
```
If a result answers the task, call stop with it. Else do something different."""
    assert note in prompt(a, 7)


def test_the_request_of_a_turn_stays_in_the_prompt_when_steps_repeat() -> None:
    replies = [call("stop", output="1"), *[call("search", query="a")] * 3, call("stop", output="2")]
    a = agent(*replies, tools=[search, StopTool()])
    session = a.run("First request.")
    a.turn(session, "Second request.")
    assert session.final_results["output"] == "2"
    assert "Second request." in prompt(a, 4) and "repeated the same step 3 times" in prompt(a, 4)


def test_a_page_is_the_same_although_the_action_before_it_differs() -> None:
    state = {"title": "Shop", "action_string": "", "error_message": ""}
    later = {**state, "action_string": "click [3]", "error_message": "no element 3"}
    step = {"code": "click(3)", "web_state_before": state}
    assert _signature(step, "x") == _signature({**step, "web_state_before": later}, "x")
    other = {**step, "web_state_before": {**state, "title": "News"}}
    assert _signature(step, "x") != _signature(other, "x")


def test_the_example_returns_after_another_reply() -> None:
    replies = [call("search", query=q) for q in ("broken", "broken", "fine", "also")]
    a = agent(*replies, call("stop", output="42"), tools=[search, StopTool()])
    assert a.run("t").status is Status.DONE
    assert [EXAMPLE in prompt(a, n) for n in range(5)] == [True, True, False, True, True]


# --- plans as JSON ------------------------------------------------------------------------------

PLAN = {
    "thought": "First look.",
    **{"completed_list": [], "todo_list": ["look"], "experience": [], "information": []},
    "question": None,
}


def planner(server: FakeChatServer, **settings: Any) -> MultiStepAgent:
    model = LLM(call_target=server.url, call_kwargs={"model": "m"}, max_retry_times=0)
    templates = {"plan": "agent_plan", "action": "agent_action"}
    return MultiStepAgent(
        model=model, templates=templates, planning="separate", tools=[StopTool()], **settings
    )


@pytest.mark.worker
def test_a_separate_plan_is_requested_as_json() -> None:
    def answer(given: Any) -> Any:
        return json.dumps(PLAN) if "response_format" in given.body else code("stop('42')")

    with FakeChatServer(answer) as server:
        session = planner(server).run("t")
    assert session.final_results["output"] == "42" and session.state["todo_list"] == ["look"]
    assert "thought" not in session.state and "question" not in session.state
    formats = [c.body.get("response_format") for c in server.calls]
    assert [bool(f) for f in formats] == [True, False]
    schema = formats[0]["json_schema"]["schema"]
    assert {*schema["required"]} == {*schema["properties"]} == {*PLAN}


@pytest.mark.worker
def test_a_service_without_json_schemas_is_asked_for_plain_plans() -> None:
    plans = [code(str({**PLAN, "question": ""})), code("print(1)")] * 2 + [code("stop('42')")]

    def answer(given: Any) -> Any:
        if "response_format" in given.body:
            return Fault(400, message="response_format is not supported")
        return plans.pop(0)

    with FakeChatServer(answer) as server:
        session = planner(server, max_steps=2).run("t")
    assert ["response_format" in c.body for c in server.calls] == [True, *[False] * 4]
    assert [s["plan"]["state"]["todo_list"] for s in session.steps] == [["look"]] * 2


def test_the_plan_of_a_reply_may_be_json_without_a_fence() -> None:
    assert parse_literal(json.dumps(PLAN))["todo_list"] == ["look"]


@pytest.mark.worker
def test_the_same_failing_code_counts_as_repeated_although_tracebacks_number_the_steps() -> None:
    a = agent(*[code("1 / 0")] * 4, language="code", stuck_limit=3)
    session = a.run("t")
    assert "<step 1>" in seen(session)[0] and "<step 2>" in seen(session)[1]
    assert (session.stop_reason, len(session.steps)) == (StopReason.STUCK, 3)
    assert EXAMPLE not in prompt(a, 2)
