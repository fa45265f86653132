"""The same scenarios in every language of an agent: code blocks, function calls, computer items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from speeches import IN_CODE, OTHERS, SPEECHES, Call, Speech

from ck_pro import AgentSession, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.approval import AutoApprover, Decision, RuleApprover, describe
from ck_pro.events import Action, ComputerAction, ComputerObservation, Observation
from ck_pro.journal import read_events
from ck_pro.language import text_of
from ck_pro.model import LLM
from ck_pro.model.recordings.record import RecordBackend
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tool import tool_from_function
from ck_pro.tools.computer import ComputerTool


@pytest.fixture(params=[IN_CODE, *OTHERS])
def speech(request: pytest.FixtureRequest) -> Speech:
    """Return each language."""
    return SPEECHES[request.param]


IMAGE = "data:image/png;base64,AAAA"


def screen(action: Action) -> Observation:
    """Return the screen of a fake computer after an action."""
    return ComputerObservation(text=f"done: {action}", image=IMAGE, current_url="http://x.test/")


class Person(MultiStepAgent):
    """An agent with a fake computer."""

    def init_run(self, session: AgentSession) -> None:
        self.world = session.run.environment = FakeEnvironment(["a screen"], respond=screen)


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


def fail(why: str) -> str:
    """Never works."""
    raise ValueError(why)


TOOLS = [tool_from_function(add), tool_from_function(fail), ComputerTool(), StopTool()]


def agent(speech: Speech, *replies: Any, **settings: Any) -> Person:
    settings = {"name": "main", "tools": TOOLS, "language": speech.language(), **settings}
    return Person(model=ScriptedLLM(list(replies)), **settings)


def seen(session: AgentSession, step: int) -> str:
    """Return the observation of a step as one text."""
    found = session.steps[step]["action"]["observation"]
    return "\n".join(map(str, found)) if isinstance(found, list) else str(found)


def prompt(a: MultiStepAgent, call: int) -> str:
    model = a.model
    assert isinstance(model, ScriptedLLM)
    return "\n".join(text_of(m["content"]) for m in model.calls[call].messages)


def test_a_terminal_action_ends_the_run(speech: Speech) -> None:
    session = agent(speech, speech.finish("42")).run("t")
    assert (session.status, session.stop_reason) == (Status.DONE, StopReason.FINISHED)
    assert session.final_results["output"] == "42"


def test_the_terminal_tool_ends_every_run(speech: Speech) -> None:
    session = agent(speech, speech.call("stop", output="42", log="so")).run("t")
    assert session.final_results == {"output": "42", "log": "so"}


def test_a_tool_call_and_its_result_appear_in_the_next_prompt(speech: Speech) -> None:
    a = agent(speech, speech.call("add", a=1, b=2), speech.finish("3"))
    session = a.run("t")
    assert "3" in seen(session, 0)
    assert "add(a=1, b=2)" in session.steps[0]["action"]["code"]
    assert "3" in prompt(a, 1).split("so", 1)[1]
    assert session.to_dict()["info"]["call_stat"]["__main__"]["llm_call"] == 2


def test_a_computer_action_returns_a_screen(speech: Speech) -> None:
    a = agent(speech, speech.call("computer", action="click", x=3, y=4), speech.finish("ok"))
    session = a.run("t")
    (action,) = a.world.actions
    assert isinstance(action, ComputerAction) and (action.x, action.y) == (3, 4)
    assert "done: computer(action='click', x=3, y=4)" in seen(session, 0)
    said = session.steps[0]["action"]["code"].replace('"', "'")
    assert "computer(action='click', x=3, y=4)" in said and said in prompt(a, 1)
    (shown,) = session.steps[0]["action"]["screens"]
    assert (shown["image"], shown["current_url"]) == (IMAGE, "http://x.test/")


def test_one_reply_may_contain_several_calls(speech: Speech) -> None:
    calls = [
        ("add", {"a": 1, "b": 2}),
        ("computer", {"action": "type", "text": "x"}),
        ("add", {"a": 20, "b": 2}),
    ]
    a = agent(speech, speech.calls(calls), speech.finish("ok"))
    session = a.run("t")
    text = seen(session, 0)
    assert 0 <= text.index("3") < text.index("done: computer") < text.index("22")


def test_a_sub_agent_returns_its_result(speech: Speech) -> None:
    helper = agent(speech, speech.finish("deep"), name="helper", description="Helps.")
    a = agent(speech, speech.call("helper", task="dig"), speech.finish("ok"), sub_agents=[helper])
    row = a.run("t").to_dict()
    action = row["steps"][0]["action"]
    assert action["observation"]["output"] == "deep"
    assert [s["task"] for s in action["sub_sessions"]] == ["dig"]


def test_a_malformed_reply_becomes_an_observation(speech: Speech) -> None:
    a = agent(speech, speech.broken, speech.finish("ok"))
    session = a.run("t")
    assert seen(session, 0).startswith("ParseError: ")
    assert session.status is Status.DONE and "ParseError: " in prompt(a, 1)


def test_an_exception_of_a_tool_becomes_an_observation(speech: Speech) -> None:
    session = agent(speech, speech.call("fail", why="broken pipe"), speech.finish("ok")).run("t")
    assert "ValueError: broken pipe" in seen(session, 0)
    assert session.status is Status.DONE


def test_an_unknown_tool_becomes_an_observation(speech: Speech) -> None:
    session = agent(speech, speech.call("nothing", x=1), speech.finish("ok")).run("t")
    assert "nothing" in seen(session, 0) and "rror" in seen(session, 0)
    assert session.status is Status.DONE


def test_a_step_limit_ends_the_run(speech: Speech) -> None:
    replies = [speech.call("add", a=n, b=1) for n in range(5)]
    session = agent(speech, *replies, max_steps=3).run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.STEPS, 3)
    session = agent(speech, *replies).run("t", budget=Budget(max_tokens=1))
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.TOKENS)


def test_equal_steps_end_a_run(speech: Speech) -> None:
    replies = [speech.call("computer", action="wait")] * 9
    session = agent(speech, *replies, stuck_limit=3).run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.STUCK, 3)


@pytest.mark.parametrize("call", [("fail", {"why": "x"}), ("computer", {"action": "wait"})])
def test_the_model_sees_a_rejection_and_the_run_continues(speech: Speech, call: Call) -> None:
    approver = RuleApprover(reject=[r"^fail\(", "wait"])
    a = agent(speech, speech.calls([call]), speech.finish("ok"), approver=approver)
    session = a.run("t")
    assert "not allowed" in seen(session, 0) and session.status is Status.DONE
    assert a.world.actions == [] and "not allowed" in prompt(a, 1)


def test_every_call_is_reviewed_and_recorded_once(speech: Speech, tmp_path: Path) -> None:
    reviewed: list[str] = []

    class Asking(AutoApprover):
        def review(self, action: Action) -> Decision:
            reviewed.append(describe(action))
            return super().review(action)

    calls: list[Call] = [("computer", {"action": "wait", "ms": 5}), ("add", {"a": 1, "b": 2})]
    a = agent(speech, speech.calls(calls), speech.finish("ok"), approver=Asking())
    with Journal(tmp_path / "journal") as journal:
        a.run("t", journal=journal)
    assert reviewed[:2] == ["computer(action='wait', ms=5)", "add(a=1, b=2)"]
    started = [
        e["data"]["name"] for e in read_events(tmp_path / "journal") if e["kind"] == "started"
    ]
    assert started[:2] == ["computer", "add"] and len(started) == len(reviewed)


@pytest.mark.parametrize("call", [("fail", {"why": "x"}), ("computer", {"action": "wait"})])
def test_a_stop_by_the_approver_ends_the_run(speech: Speech, call: Call) -> None:
    approver = RuleApprover(stop=[r"^fail\(", "wait"])
    a = agent(speech, speech.calls([call]), approver=approver)
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)
    assert a.world.actions == []


def test_rows_are_rebuilt_from_the_journal(speech: Speech, tmp_path: Path) -> None:
    replies = [speech.call("computer", action="click", x=1, y=2), speech.finish("ok")]
    with Journal(tmp_path / "journal") as journal:
        session = agent(speech, *replies).run("t", journal=journal)
    (rebuilt,) = sessions_from_events(read_events(tmp_path / "journal")).values()
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


@pytest.mark.parametrize("name", OTHERS)
def test_an_interrupted_action_is_not_repeated(name: str, tmp_path: Path) -> None:
    speech = SPEECHES[name]
    click = speech.call("computer", action="click", x=1, y=2)

    def killed(action: Action) -> Observation:
        raise KeyboardInterrupt

    class Killed(Person):
        def init_run(self, session: AgentSession) -> None:
            session.run.environment = FakeEnvironment(respond=killed)

    settings = {"name": "main", "language": speech.language(), "tools": [ComputerTool()]}
    first = Killed(model=ScriptedLLM([click]), **settings)
    with Journal(tmp_path / "journal") as journal, pytest.raises(KeyboardInterrupt):
        first.run("t", journal=journal)
    second = agent(speech, speech.finish("ok"))
    with Journal(tmp_path / "journal") as journal:
        session = second.resume(journal=journal)
    assert session.status is Status.DONE and second.world.actions == []
    assert "may have had an effect" in seen(session, 0)
    assert "- computer(action='click', x=1, y=2)" in seen(session, 0)
    assert "may have had" in prompt(second, 0)


def test_store_io_off_stores_no_items_and_images(speech: Speech) -> None:
    replies = [speech.call("computer", action="click", x=1, y=2), speech.finish("ok")]
    a = agent(speech, *replies, store_io=False)
    row = json.dumps(a.run("t").to_dict())
    assert IMAGE not in row and '"items"' not in row
    assert "done: computer(action='click', x=1, y=2)" in prompt(a, 1)


def test_a_recorded_run_can_be_replayed(speech: Speech, tmp_path: Path) -> None:
    replies = [
        speech.call("computer", action="click", x=1, y=2),
        speech.call("add", a=1, b=2),
        speech.finish("ok"),
    ]
    a = agent(speech)
    path = tmp_path / "replies.jsonl"
    inner = ScriptedLLM(replies).backend
    assert inner is not None
    recorded = a.updated({"model": LLM(backend=RecordBackend(path, inner))}).run("t")
    replayed = a.updated({"model": LLM(call_target=f"replay:{path}")}).run("t")
    for session in (recorded, replayed):
        assert session.final_results["output"] == "ok", session.message
    observed = [[s["action"]["observation"] for s in x.steps] for x in (recorded, replayed)]
    assert observed[0] == observed[1]
    items = [[s["action"]["llm_info"].get("items") for s in x.steps] for x in (recorded, replayed)]
    assert items[0] == items[1]


def test_the_history_shows_calls_and_observations_in_order(speech: Speech) -> None:
    replies = [speech.call("add", a=n, b=100) for n in (1, 2, 3)]
    a = agent(speech, *replies, speech.finish("ok"), recent_steps=2)
    a.run("t")
    model = a.model
    assert isinstance(model, ScriptedLLM)
    last = prompt(a, 3)
    assert "103" in last and "102" in last and "101" not in last
    assert "(Earlier steps omitted.)" in last
    roles = [m["role"] for m in model.calls[3].messages]
    assert roles[:3] == ["system", "user", "assistant"] and roles[-1] == "user"
