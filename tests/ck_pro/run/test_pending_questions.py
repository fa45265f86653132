"""A step that ends while the user is asked: the decision counts, and no action runs afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from agent_trees import code

from ck_pro import Journal, MultiStepAgent, StopTool
from ck_pro.approval import Decision
from ck_pro.approval.questions import Questions
from ck_pro.events import Action
from ck_pro.journal import read_events
from ck_pro.run.exposed_functions import ExposedFunctions
from ck_pro.session import Status, StopReason
from ck_pro.testing import ScriptedLLM
from ck_pro.tools.human import AskHumanTool

pytestmark = pytest.mark.worker

THREAD = "import os, threading\nthreading.Thread(target={call}, daemon=True).start()\nwait()\n"
ENDINGS = {"stop": "stop('early')", "exit": "os._exit(0)", "error": "1 / 0", "end": "print('end')"}


class Desk:
    """An approver and a person that decide when the step has ended; and a tool, `erase`."""

    def __init__(self) -> None:
        self.verdict: Literal["approve", "stop"] = "stop"
        self.erased: list[str] = []
        self.asked, self.ended, self.checked = (threading.Event() for _ in range(3))

    def review(self, action: Action) -> Decision:
        if getattr(action, "name", "") != "erase":
            return Decision()
        self.decide()
        return Decision(self.verdict, "think")

    def answer(self, question: str) -> str | None:
        self.decide()
        return None

    def decide(self) -> None:
        self.asked.set()
        assert self.ended.wait(60)

    def erase(self, path: str) -> str:
        """Erase a file."""
        self.erased.append(path)
        return f"erased {path}"

    def wait(self) -> None:
        """Wait until the user is asked."""
        assert self.asked.wait(60)

    def agent(self, name: str, *replies: str, **settings: Any) -> MultiStepAgent:
        tools = [self.erase, self.wait, AskHumanTool(), StopTool()]
        model = ScriptedLLM([code(reply) for reply in replies])
        return MultiStepAgent(
            name=name, description="Works.", model=model, tools=tools, end_always=False, **settings
        )


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk()
    settle, require_current = Questions.settle, ExposedFunctions.require_current

    def settling(self: Questions, check: Any) -> None:
        if desk.asked.is_set():
            desk.ended.set()
        settle(self, check)

    def checking(self: ExposedFunctions, name: str) -> None:
        try:
            require_current(self, name)
        finally:
            if name == "erase":
                desk.checked.set()

    monkeypatch.setattr(Questions, "settle", settling)
    monkeypatch.setattr(ExposedFunctions, "require_current", checking)
    yield desk
    desk.ended.set()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("nested", [False, True])
def test_a_stop_that_is_decided_after_the_step_ended_stops_the_run(
    desk: Desk, tmp_path: Path, ending: str, nested: bool
) -> None:
    call = "helper" if nested else "erase"
    thread = THREAD.format(call=f"lambda: {call}('a')") + ENDINGS[ending]
    helper = desk.agent("helper", "erase('a')\nstop('helped')")
    agent = desk.agent("main", thread, "stop('next')", approver=desk, sub_agents=[helper])
    with Journal(tmp_path / "run") as journal:
        session = agent.run("t", journal=journal, workdir=tmp_path / "work")
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)
    where = "main/helper: " if nested else ""
    assert session.message == f"{where}stopped for the user's decision: erase(path='a'): think"
    assert desk.erased == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_question_without_an_answer_stops_the_run(
    desk: Desk, tmp_path: Path, ending: str
) -> None:
    thread = THREAD.format(call="lambda: ask_human('The code?')") + ENDINGS[ending]
    session = desk.agent("main", thread, "stop('next')", person=desk).run("t", workdir=tmp_path)
    assert (session.status, session.stop_reason) == (Status.HUMAN_INTERVENTION, StopReason.HUMAN)
    assert session.message.endswith("The code?")


def test_an_action_that_is_approved_after_its_step_ended_does_not_run(
    desk: Desk, tmp_path: Path
) -> None:
    desk.verdict = "approve"
    thread = THREAD.format(call="lambda: erase('a')") + ENDINGS["exit"]
    agent = desk.agent("main", thread, "stop('next')", approver=desk)
    with Journal(tmp_path / "run") as journal:
        session = agent.run("t", journal=journal, workdir=tmp_path / "work")
    assert session.final_results == {"output": "next", "log": ""}
    assert desk.checked.wait(60) and desk.erased == []
    started = [e["data"]["name"] for e in read_events(tmp_path / "run") if e["kind"] == "started"]
    assert "erase" not in started
