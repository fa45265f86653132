"""Limits of a run, and everything that can end one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code, helper

from ck_pro import AgentSession, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.approval import RuleApprover
from ck_pro.environment import Environment
from ck_pro.events import Observation
from ck_pro.exceptions import (
    InputError,
    ModelUnavailable,
    ReplayError,
)
from ck_pro.journal import read_events
from ck_pro.session import Status, StopReason
from ck_pro.testing import ScriptedLLM
from ck_pro.tool import tool_from_function

pytestmark = pytest.mark.worker


def test_a_run_ends_after_max_steps() -> None:
    a = agent(lambda messages, context: code(f"print({context.step})"), max_steps=3)
    session = a.run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.STEPS, 3)
    assert session.final_results == {
        "output": "",
        "log": "The run ended without an answer.",
    }


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"max_tokens": 1}, StopReason.TOKENS),
        ({"max_steps": 2}, StopReason.STEPS),
        ({"max_seconds": 0.0}, StopReason.TIME),
    ],
)
def test_limits_hold_for_the_whole_tree_of_agents(
    budget: dict[str, Any], reason: StopReason
) -> None:
    sub = helper(lambda messages, context: code(f"print({context.step})"))
    a = agent(lambda messages, context: code("print(helper('x'))"), sub_agents=[sub])
    session = a.run("t", budget=Budget(**budget))
    assert (session.status, session.stop_reason) == (Status.PROBLEM, reason)
    assert len(session.steps) >= 1
    assert "max_" in session.message


def test_the_time_limit_kills_endless_code() -> None:
    a = agent(lambda messages, context: code("while True: pass"))
    session = a.run("t", budget=Budget(max_seconds=1.0))
    assert session.stop_reason is StopReason.TIME


class Watched(MultiStepAgent):
    ended: list[str] = []

    def end_run(self, session: AgentSession) -> None:
        self.ended.append(session.id)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ModelUnavailable("unreachable"), StopReason.MODEL_FAILURE),
        (RuntimeError("our bug"), StopReason.INTERNAL_ERROR),
    ],
)
def test_every_ending_cleans_up_and_returns_a_row(
    fault: Exception, reason: StopReason, caplog: pytest.LogCaptureFixture
) -> None:
    a = Watched(name="main", model=ScriptedLLM(replies=[fault]))
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.PROBLEM, reason)
    assert a.ended == [session.id] and session.run is None
    assert str(fault) in session.message
    assert len(session.to_dict()["steps"]) == 1
    assert ("our bug" in caplog.text) == (reason is StopReason.INTERNAL_ERROR)


def test_a_mismatched_recording_in_a_sub_agent_ends_the_whole_run() -> None:
    sub = helper(ReplayError("no reply"))
    a = agent(code("try:\n    helper('x')\nexcept BaseException: pass"), sub_agents=[sub])
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.MODEL_FAILURE)
    assert session.message == "no reply"
    assert [c.stop_reason for c in session.children.values()] == [StopReason.MODEL_FAILURE]


class Fragile(Environment):
    def observe(self) -> Observation:
        return Observation()

    def execute(self, action: Any) -> Observation:
        return Observation()

    def close(self) -> None:
        raise RuntimeError("cannot close")


def test_errors_of_close_and_on_event_keep_the_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class InFragile(MultiStepAgent):
        def init_run(self, session: AgentSession) -> None:
            session.run.environment = Fragile()

    def display(event: dict[str, Any]) -> None:
        raise ValueError("display broken")

    a = InFragile(model=ScriptedLLM([code("stop('kept')")]), tools=[StopTool()])
    session = a.run("t", on_event=display)
    assert (session.status, session.final_results["output"]) == (Status.DONE, "kept")
    assert "cannot close" in caplog.text and caplog.text.count("on_event failed") == 1


def test_a_session_runs_once_also_step_by_step() -> None:
    a = agent(code("stop(1)"), code("stop(2)"))
    session = AgentSession("t")
    assert [s["step_idx"] for s in a.yield_session_run(session)] == [0]
    with pytest.raises(InputError, match="not new"):
        a.run("u", session=session)
    by_hand = AgentSession("t")
    assert a.step(by_hand, {})["action"]["code"] == "stop(2)"
    assert by_hand.finish == {"output": "2", "log": ""}
    by_hand.run.close()


def test_ctrl_c_is_recorded_and_raised(tmp_path: Path) -> None:
    def interrupted(messages: Any, context: Any) -> str:
        raise KeyboardInterrupt

    a = Watched(name="main", model=ScriptedLLM(replies=interrupted))
    session = AgentSession()
    with Journal(tmp_path) as journal, pytest.raises(KeyboardInterrupt):
        a.run("t", session=session, journal=journal)
    assert (session.status, session.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)
    assert a.ended == [session.id]
    assert list(read_events(tmp_path))[-1]["data"]["status"] == "in_progress"


def test_a_cancel_from_another_thread_stops_running_code() -> None:
    cancel = threading.Event()

    def ready() -> None:
        cancel.set()

    sub = helper(code("ready()\nwhile True: pass"), tools=[ready])
    a = agent(code("helper('x')"), sub_agents=[sub])
    session = a.run("t", cancel=cancel)
    assert (session.status, session.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)


def test_no_sub_agent_outlives_the_step_that_called_it(tmp_path: Path) -> None:
    at_work = threading.Event()

    def slow_reply(messages: Any, context: Any) -> str:
        at_work.set()
        assert context.cancel.wait(30)
        return code("stop(1)")

    left_behind = (
        "import threading\nthreading.Thread(target=helper, args=['x'], daemon=True).start()\n"
        "wait_for_it()\n"
        "stop('ok')"
    )
    a = agent(
        code(left_behind),
        sub_agents=[helper(slow_reply)],
        tools=[StopTool(), tool_from_function(lambda: at_work.wait(30), name="wait_for_it")],
    )
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    (child,) = session.children.values()
    assert session.status is Status.DONE
    assert (child.status, child.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)
    kinds = [(e["kind"], e["sid"] == child.id) for e in read_events(tmp_path)]
    assert kinds.index(("status", True)) < kinds.index(("observation", False))


def test_a_stop_by_the_guard_ends_with_sensitive_action() -> None:
    def delete(path: str) -> str:
        raise AssertionError("must not be called")

    a = agent(
        code("try:\n    delete('x')\nexcept BaseException:\n    pass\nprint('continued')"),
        tools=[StopTool(), delete],
        approver=RuleApprover(stop=[r"^delete\("]),
    )
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)


def test_a_stream_may_be_closed_early() -> None:
    a = Watched(name="main", model=ScriptedLLM(replies=[code("print(1)"), code("print(2)")]))
    session = AgentSession()
    steps = a.run("t", session=session, stream=True)
    assert next(steps)["action"]["observation"] == "1"
    steps.close()
    assert session.status is Status.IN_PROGRESS and a.ended == [session.id]
