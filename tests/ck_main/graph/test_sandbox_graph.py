"""The sandbox state machine, run by LangGraph itself with its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire
from scripted_agents import code

pytest.importorskip("langgraph", reason="needs the extra langgraph")
from langgraph.checkpoint.memory import InMemorySaver

from ck_main.graph import SandboxGraph
from ck_pro.journal import read_events
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.sandbox import BrowserSandboxes, SandboxManager

pytestmark = [pytest.mark.integration, pytest.mark.worker]
THREAD = {"configurable": {"thread_id": "t"}}
REQUEST: Any = {"user_request": "Look at the lamps."}


@pytest.fixture
def wire() -> Iterator[FakeWire]:
    """A fake browser server."""
    with FakeWire() as server:
        yield server


class Machine:
    """A graph with scripted models, and a manager of browsers of the fake server."""

    def __init__(self, wire: FakeWire, folder: Path, plan: Any, *steps: str, **settings: Any):
        self.agent = WebAgent(
            model=ScriptedLLM([code(step) for step in steps]), planning="off", **settings
        )
        self.planner = ScriptedLLM([plan if isinstance(plan, str) else json.dumps(plan)])
        self.manager = SandboxManager(provider=BrowserSandboxes({"server_url": wire.url}))
        made = SandboxGraph(self.manager, self.agent, planner=self.planner, folder=folder)
        self.graph = made.compiled(checkpointer=InMemorySaver())

    def run(self, given: Any = REQUEST) -> dict[str, Any]:
        found: dict[str, Any] = self.graph.invoke(given, THREAD)
        return found


PLAN = {
    "application_platform": "google-chrome",
    "steps": [f"Open {SHOP}", "Open the lamps and report the title."],
}


def test_a_request_is_planned_and_executed_in_one_sandbox(wire: FakeWire, tmp_path: Path) -> None:
    machine = Machine(wire, tmp_path, PLAN, "stop('open')", "click(3)", "stop('Lamps')")
    end = machine.run()
    assert (end["status"], end["outputs"]) == ("done", ["open", "Lamps"])
    assert (end["application_platform"], end["current_step"]) == ("browser", 2)
    assert end["sandbox_id"] == "b1" and end["sandbox_url"] == wire.url
    assert end["sandbox_expires_at"].endswith("+00:00")
    assert len(end["screenshots"]) == 1, "equal pictures are stored once"
    assert wire.count("getBrowser") == 1 and list(wire.browsers) == ["b1"]
    second = str(machine.agent.model.calls[1].messages)
    assert "Result: open" in second, "a step must know the results of the earlier ones"
    nodes = [c.next for c in machine.graph.get_state_history(THREAD)]
    visited = [name for names in reversed(nodes) for name in names if name != "__start__"]
    assert visited == ["sandbox_manager", "planner", "executor", "sandbox_manager", "executor"]
    machine.manager.close()
    assert not wire.browsers
    journals = [json.dumps(list(read_events(p))) for p in tmp_path.iterdir() if p.name != "work"]
    assert len(journals) == 3 and all('"model_call"' in text for text in journals)


def test_an_unclear_request_asks_and_continues_with_the_answer(
    wire: FakeWire, tmp_path: Path
) -> None:
    machine = Machine(wire, tmp_path, {"question": "Which lamp?"}, "stop('red')")
    asked = machine.run()
    assert (asked["status"], asked["message"]) == ("ambiguity", "Which lamp?")
    again = Machine(wire, tmp_path, {"steps": ["Find the red lamp."]}, "stop('red')")
    again.graph = SandboxGraph(
        machine.manager, again.agent, planner=again.planner, folder=tmp_path
    ).compiled(checkpointer=machine.graph.checkpointer)
    end = again.run({"answer": "the red one"})
    assert end["status"] == "done" and "Answer: the red one" in str(again.planner.calls[0].messages)
    machine.manager.close()


def test_a_stop_for_a_person_resumes_in_the_same_page(wire: FakeWire, tmp_path: Path) -> None:
    plan = {"steps": [f"Open {SHOP} and ask."]}
    steps = ("click(3)", "found = ask_human('The code?')\nstop(found)")
    machine = Machine(wire, tmp_path, plan, *steps)
    asked = machine.run()
    assert asked["status"] == "human-intervention" and "The code?" in asked["message"]
    assert wire.browsers["b1"]["history"][-1].endswith("/lamps")
    end = machine.run({"answer": "4321"})
    assert (end["status"], end["outputs"]) == ("done", ["4321"])
    assert wire.count("getBrowser") == 1 and len(machine.planner.calls) == 1
    machine.manager.close()


def test_a_sensitive_action_runs_after_approval_once(wire: FakeWire, tmp_path: Path) -> None:
    wire.target_facts = {"target": "button 'Buy'"}
    plan, steps = {"steps": [f"Open {SHOP} and buy."]}, ("click(5)\nstop('bought')",)
    machine = Machine(wire, tmp_path, plan, *steps, approver={"stop": ["button 'Buy'"]})
    stopped = machine.run()
    assert stopped["status"] == "sensitive-action" and "Buy" in stopped["message"]
    clicks = [body for body in wire.acted if body["actionName"] == "click"]
    assert not clicks
    end = machine.run({"approve": True})
    clicks = [body for body in wire.acted if body["actionName"] == "click"]
    assert (end["status"], len(clicks)) == ("done", 1)
    machine.manager.close()


def test_a_given_sandbox_is_used_and_stays(wire: FakeWire, tmp_path: Path) -> None:
    with SandboxManager(provider=BrowserSandboxes({"server_url": wire.url})) as other:
        given = other.ensure()
        machine = Machine(wire, tmp_path, {"steps": [f"Open {SHOP}"]}, "stop('x')")
        state = {**REQUEST, "sandbox_id": given.id, "sandbox_url": given.url}
        assert machine.run(state)["sandbox_id"] == given.id
        machine.manager.close()
        assert list(wire.browsers) == [given.id]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("no plan", "has no plan"),
        ({"steps": []}, "neither steps nor a question"),
        ({"steps": ["x"], "application_platform": "vscode"}, "known are: browser, desktop"),
        (
            {"steps": ["x"], "application_platform": "desktop"},
            "chose a desktop, but the sandbox is a browser",
        ),
    ],
)
def test_an_unusable_plan_is_a_problem(
    wire: FakeWire, tmp_path: Path, plan: Any, message: str
) -> None:
    machine = Machine(wire, tmp_path, plan)
    end = machine.run()
    assert end["status"] == "problem" and message in end["message"]
    machine.manager.close()


def test_a_sandbox_that_is_gone_is_a_problem(wire: FakeWire, tmp_path: Path) -> None:
    machine = Machine(wire, tmp_path, PLAN)
    end = machine.run({**REQUEST, "sandbox_id": "gone", "sandbox_url": wire.url})
    assert end["status"] == "problem" and "no such browser" in end["message"]
    assert not machine.planner.calls
