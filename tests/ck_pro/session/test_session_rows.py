"""Sessions from rows, added steps, and names that CK-Pro programs use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ck_pro import AgentSession, AskLLMTool, MultiStepAgent, StopTool
from ck_pro.exceptions import ConfigError, InputError
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import LLM, Reply
from ck_pro.session import Status, StopReason
from ck_pro.template import TemplatedString
from ck_pro.testing import ScriptedLLM


def call(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply("", tool_calls=[{"id": "c", "type": "function", "function": function}])


def agent(*replies: Any, **settings: Any) -> MultiStepAgent:
    settings = {"language": FunctionCallingLanguage(), "tools": [StopTool()], **settings}
    return MultiStepAgent(model=ScriptedLLM(replies=list(replies)), **settings)


def look(where: str) -> str:
    """Look at a place."""
    return f"seen {where}"


def nested_run(**settings: Any) -> AgentSession:
    sub = agent(call("look", where="x"), Reply("deep"), name="helper", tools=[look, AskLLMTool()])
    main = agent(
        call("ask_llm", query="q"),
        Reply("answered"),
        call("helper", task="go"),
        Reply("42"),
        name="main",
        sub_agents=[sub],
        tools=[AskLLMTool()],
        **settings,
    )
    session = main.run("What?", level=2)
    assert isinstance(session, AgentSession)
    return session


def test_a_session_is_rebuilt_from_its_row() -> None:
    session = nested_run()
    row = session.to_dict()
    assert "sub_sessions" in row["steps"][1]["action"]
    made = AgentSession.from_dict(json.loads(json.dumps(row)))
    assert json.dumps(made.to_dict()) == json.dumps(row)
    assert (made.status, made.stop_reason) == (Status.DONE, StopReason.FINISHED)
    assert made.final_results == session.final_results and made.info["level"] == 2
    assert [c.agent for c in made.children.values()] == ["helper"]
    assert made.get_current_step() == session.get_current_step()
    assert made.search("seen") == session.search("seen")
    assert AgentSession.from_dict({"id": "task0000", "session": row}).to_dict() == row


def test_a_session_without_texts_is_rebuilt() -> None:
    row = nested_run(store_io=False).to_dict()
    assert AgentSession.from_dict(row).to_dict() == row


def test_a_row_of_another_program_may_lack_keys() -> None:
    sub = {"task": "sub", "steps": [{"action": {"code": "x", "observation": "seen"}}]}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    prompt = [{"role": "user", "content": [image]}]
    steps = [
        {"step_idx": 7, "plan": None, "action": {"observation": [{"output": "o", "session": sub}]}},
        {"plan": {"state": {"todo": 1}, "llm_input": prompt, "llm_output": "p"}, "action": None},
        {"end": {"final_results": {"output": "yes", "log": ""}}, "extra": 1},
    ]
    made = AgentSession.from_dict({"task": None, "steps": steps, "info": None})
    assert made.num_of_steps() == 3 and made.status is Status.DONE and made.state == {"todo": 1}
    assert made.final_results == {"output": "yes", "log": ""}
    row = made.to_dict()
    assert [s["step_idx"] for s in row["steps"]] == [0, 1, 2] and row["steps"][2]["extra"] == 1
    shown = row["steps"][0]["action"]["observation"][0]["session"]
    assert shown["steps"][0]["action"]["observation"] == "seen" and shown["id"]
    assert row["steps"][1]["plan"]["llm_input"] == prompt
    again = AgentSession.from_dict(json.loads(json.dumps(row)))
    assert again.to_dict() == row


@pytest.mark.parametrize(
    "row",
    [
        None, 3, "x", [], {}, {"steps": None}, {"steps": "x"}, {"steps": [3]}, {"session": {}},
        {"steps": [{"action": 3}]}, {"steps": [], "info": 3},
        {"steps": [], "info": {"status": "no"}},
        {"steps": [{"action": {"sub_sessions": [{}]}}]}, {"steps": [], "info": {"call_stat": 3}},
        {"steps": [], "info": {"call_stat": {"web_agent": 3}}},
    ],
)  # fmt: skip
def test_a_row_without_a_session_raises_in_one_line(row: Any) -> None:
    with pytest.raises(InputError, match="not a session of an output row: ") as caught:
        AgentSession.from_dict(row)
    assert "\n" not in str(caught.value)


def test_a_row_nested_too_deeply_raises() -> None:
    row: dict[str, Any] = {"steps": []}
    for _ in range(3000):
        row = {"steps": [{"action": {"sub_sessions": [row]}}]}
    with pytest.raises(InputError, match="nested too deeply"):
        AgentSession.from_dict(row)


def test_steps_can_be_added() -> None:
    session = AgentSession("t")
    assert session.num_of_steps() == 0 and session.get_current_step() is None
    assert session.get_latest_steps() == session.get_latest_steps(3, True) == []
    for n in range(4):
        made = session.add_step({"action": {"code": str(n)}})
        assert made is session.get_current_step() and made["step_idx"] == n
    codes = lambda steps: [s["action"]["code"] for s in steps]  # noqa: E731
    assert codes(session.get_latest_steps()) == ["0", "1", "2"]
    assert codes(session.get_latest_steps(2)) == ["1", "2"]
    assert codes(session.get_latest_steps(2, include_last=True)) == ["2", "3"]
    assert codes(session.get_latest_steps(9, True)) == ["0", "1", "2", "3"]
    assert codes(session.to_dict()["steps"]) == ["0", "1", "2", "3"]


def test_no_step_can_be_added_to_a_running_session() -> None:
    seen: list[str] = []

    def meddle(where: str) -> str:
        """Add a step."""
        with pytest.raises(InputError, match="this session is running"):
            session.add_step({})
        seen.append(where)
        return "done"

    session = AgentSession("t")
    agent(call("meddle", where="x"), Reply("42"), tools=[meddle]).run("t", session=session)
    assert seen == ["x"] and session.num_of_steps() == 2


# --- other names ---------------------------------------------------------------------------------


def test_facts_are_keyword_arguments_of_run() -> None:
    session = agent(Reply("42")).run("t", level=3, target_url="http://x.test", info={"a": 1})
    assert {"level": 3, "target_url": "http://x.test", "a": 1}.items() <= session.info.items()
    with pytest.raises(InputError, match=r"unknown argument 'max_step'; did you mean 'max_steps'"):
        agent(Reply("42")).run("t", max_step=3)


def test_a_stop_tool_accepts_an_agent() -> None:
    one = agent(Reply("42"))
    tool = StopTool(agent=one)
    assert tool.execute("x") == {"output": "x", "log": ""} and "agent" not in tool.to_dict()
    assert MultiStepAgent(model=one.model, tools=[tool]).updated({"max_steps": 2}).max_steps == 2


@pytest.mark.parametrize("llm", ["gpt:x", {"call_target": "gpt:x"}, LLM(call_target="gpt:x")])
def test_the_model_of_ask_llm_can_be_set_later(llm: Any) -> None:
    tool = AskLLMTool()
    tool.set_llm(llm)
    assert tool.model is not None and tool.model.call_target == "gpt:x"
    with pytest.raises(ConfigError):
        tool.set_llm({"call_tarGET": "x"})


def test_templates_get_the_documented_values() -> None:
    seen: list[Any] = []

    def template(
        recent_steps: Any, current_step: Any, subagent_tool_str_short: str, functions_short: str,
        subagent_tool_str_long: str, functions_long: str,
    ) -> str:  # fmt: skip
        assert subagent_tool_str_short == functions_short
        assert subagent_tool_str_long == functions_long
        seen.append(([s["step_idx"] for s in recent_steps], current_step["step_idx"]))
        return "Act."

    replies = [call("look", where=str(n)) for n in range(3)]
    a = agent(*replies, Reply("42"), tools=[look], templates={"action": template}, recent_steps=2)
    a.run("t")
    assert seen == [([], 0), ([0], 1), ([0, 1], 2), ([1, 2], 3)]
    text = TemplatedString("{recent_steps} {current_step} {subagent_tool_str_short}")
    agent(Reply("42"), templates={"action": text}).run("t")


def test_a_model_call_outside_of_a_run_raises_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"session .* is not running"):
        agent(Reply("42"))._call_model(AgentSession("t"), "action", {})
