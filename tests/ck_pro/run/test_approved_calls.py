"""`resume(approve=True)`: one recorded action that an approver stopped runs, once."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from agent_trees import Watched, call, code

from ck_pro import LLM, AgentSession, Journal, MultiStepAgent, StopTool
from ck_pro.approval import TerminalApprover
from ck_pro.exceptions import InputError
from ck_pro.journal import read_events
from ck_pro.language import text_of
from ck_pro.model import Reply
from ck_pro.model.backends.manual import ManualBackend
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import read_interrupted_run
from ck_pro.run.user_replies import same_action, waiting_approval
from ck_pro.session import Status
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tools.human import AskHumanTool

pytestmark = pytest.mark.worker

GATED = {"approver": {"stop": [r"work\(name='pay"]}}

FUNCTION = {"name": "work", "arguments": '{"name": "pay"}'}
PAY = Reply("so", tool_calls=[{"id": "c1", "type": "function", "function": FUNCTION}])


def prompts(team: Watched) -> str:
    return "".join(text_of(m["content"]) for c in team.model.calls for m in c.messages)


@pytest.mark.parametrize("language", ["code", "function_calls"])
def test_the_approved_call_runs_in_a_sub_agent_and_nothing_runs_twice(
    tmp_path: Path, language: str
) -> None:
    if language == "code":
        replies: Any = {
            "main:action": [code("print(work('a'))\nstop(leaf('Pay.')['output'])")],
            "leaf:action": [code("print(work('b'))\nstop(work('pay'))")],
        }
    else:
        replies = {
            "main:action": [call("leaf", task="Pay."), call("stop", output="paid")],
            "leaf:action": [PAY, call("stop", output="paid")],
        }
    team = Watched(replies, common={"language": language}, **GATED)
    session = team.run(tmp_path / "run")
    assert session.status is Status.SENSITIVE_ACTION
    asked = session.asked
    assert asked is not None and asked["action"]["arguments"] == {"name": "pay"}
    session = team.resume(tmp_path / "run", approve=True)
    assert session.status is Status.DONE, session.message
    assert set(team.worked.values()) == {1} and team.worked["pay"] == 1


def test_the_approved_call_runs_also_if_the_code_cannot_run_again(tmp_path: Path) -> None:
    wrote = code("open('note.txt', 'w').write('x')\nprint(work('pay'))")
    team = Watched({"main:action": [wrote, code("stop('so')")]}, **GATED)
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", approve=True)
    assert session.status is Status.DONE and team.worked["pay"] == 1
    observation = session.steps[0]["action"]["observation"]
    assert "work(name='pay') returned pay done" in observation
    assert "The next action did not run" not in observation


def test_an_approval_is_used_up_by_its_call(tmp_path: Path) -> None:
    team = Watched({"main:action": [code("work('pay')\nstop(work('pay'))")]}, **GATED)
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", approve=True)
    assert session.status is Status.SENSITIVE_ACTION and team.worked["pay"] == 1
    session = team.resume(tmp_path / "run")
    assert session.status is Status.SENSITIVE_ACTION and team.worked["pay"] == 1
    session = team.resume(tmp_path / "run", approve=True)
    assert session.status is Status.DONE and team.worked["pay"] == 2


def test_an_approval_covers_no_other_arguments_and_no_sub_agent(tmp_path: Path) -> None:
    replies = {
        "main:action": [code("open('x', 'w')\nwork('pay 1')"), code("stop(leaf('x')['output'])")],
        "leaf:action": [code("stop(work('pay 1'))")],
    }
    team = Watched(replies, **GATED)
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", approve=True)
    assert session.message.startswith("main/leaf: stopped") and team.worked["pay 1"] == 1


def test_an_approved_action_with_a_masked_secret_is_left_to_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2hunter2")
    wrote = code("open('note.txt', 'w').write('x')\nprint(work('pay hunter2hunter2'))")
    team = Watched({"main:action": [wrote, code("stop(work('pay hunter2hunter2'))")]}, **GATED)
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", approve=True)
    assert session.status is Status.DONE and team.worked["pay hunter2hunter2"] == 1
    assert "The user approved this action, but it has not run: work(name='pay ***')" in prompts(
        team
    )


def test_a_run_that_waits_for_nothing_has_nothing_to_approve(tmp_path: Path) -> None:
    team = Watched({"main:action": [code("stop(ask_human('pay?'))")]})
    team.run(tmp_path / "run")
    with pytest.raises(InputError, match="no action of this run waits for approval"):
        team.resume(tmp_path / "run", approve=True)


def test_an_action_is_the_same_whatever_the_id_of_its_call() -> None:
    one = {"kind": "browser", "name": "click", "target": "4", "element": "button 'Buy'", "url": "u"}
    assert same_action(one, {**one, "target": "9", "call_id": "x"})
    assert not same_action(one, {**one, "url": "v"})
    assert not same_action(one, {**one, "element": "button 'Buy all'"})
    assert not same_action({**one, "element": ""}, {**one, "element": "", "target": "9"})


class HeldEnvironment(FakeEnvironment):
    """An environment that survives a kill while it is held."""

    held: bool = False

    def hold(self, held: bool) -> bool:
        self.held = held
        return held

    def lease(self) -> dict[str, Any] | None:
        return {"where": "desk"} if self.held else None


def test_the_environments_of_a_run_are_held_while_a_person_is_asked(tmp_path: Path) -> None:
    environment = HeldEnvironment()
    held: list[bool] = []

    class Person:
        def answer(self, question: str) -> str:
            held.append(environment.held)
            return "yes"

    class WithEnvironment(MultiStepAgent):
        def init_run(self, session: Any) -> None:
            session.run.environment = environment

    model = ScriptedLLM([code("print(ask_human('Well?'))"), "Done."])
    agent = WithEnvironment(name="main", model=model, tools=[AskHumanTool()], person=Person())
    with Journal(tmp_path / "j") as journal:
        agent.run("t", journal=journal, workdir=tmp_path, max_steps=1)
    assert held == [True] and not environment.held
    leased = [e["data"]["lease"] for e in read_events(tmp_path / "j") if e["kind"] == "leased"]
    assert leased == [{"where": "desk"}]


@pytest.mark.parametrize("asks", ["approver", "model"])
def test_the_environments_of_a_run_are_held_at_every_wait_for_a_person(
    tmp_path: Path, asks: str
) -> None:
    environment = HeldEnvironment()
    held: list[bool] = []

    class Terminal(StringIO):
        def readline(self, *args: Any) -> str:
            held.append(environment.held)
            return super().readline(*args)

    class WithEnvironment(MultiStepAgent):
        def init_run(self, session: Any) -> None:
            session.run.environment = environment

    step, out = code("stop('42', '')"), StringIO()
    terminal = Terminal("yes\n" if asks == "approver" else f"{step}\n/send\n")
    settings: dict[str, Any] = {"model": ScriptedLLM([step])}
    if asks == "approver":
        settings["approver"] = TerminalApprover(terminal, out)
    else:
        settings["model"] = LLM(backend=ManualBackend(terminal, out))
    agent = WithEnvironment(name="main", tools=[StopTool()], end_always=False, **settings)
    with Journal(tmp_path / "j") as journal:
        session = agent.run("t", journal=journal, workdir=tmp_path, max_steps=1)
    assert session.status is Status.DONE
    assert held and all(held) and not environment.held
    leased = [e["data"]["lease"] for e in read_events(tmp_path / "j") if e["kind"] == "leased"]
    assert leased == [{"where": "desk"}]


def test_a_fork_does_not_use_the_environment_of_its_original() -> None:
    found = InterruptedSession(AgentSession("t"))
    facts = {"sid": "s", "parent": None, "i": 0, "phase": None, "time": 1.0}
    found.apply({"kind": "leased", "data": {"lease": {"browserId": "b1"}}, **facts})  # type: ignore[typeddict-item]
    assert found.lease == {"browserId": "b1"}
    found.apply({"kind": "resumed", "data": {"redo": False, "learned": ""}, **facts})  # type: ignore[typeddict-item]
    assert found.lease == {"browserId": "b1"}, "a killed resume reconnects as well"
    found.apply({"kind": "forked", "data": {"origin": "o", "at": 1}, **facts})  # type: ignore[typeddict-item]
    assert found.lease is None


@pytest.mark.parametrize("killed", [True, False])
def test_an_unused_approval_outlives_a_kill_but_no_other_stop(tmp_path: Path, killed: bool) -> None:
    team = Watched({"main:action": [code("work('pay')"), code("stop('x')")]}, **GATED)
    team.run(tmp_path / "run")
    events = list(read_events(tmp_path / "run"))
    (approval,) = [waiting_approval(read_interrupted_run(events)[0])]  # type: ignore[arg-type]
    resumed = {"redo": False, "learned": "", "approved": approval}
    status = events[-1]
    events.append({**status, "kind": "resumed", "data": resumed})
    events += [] if killed else [status]
    main, _ = read_interrupted_run(events)
    assert main is not None and main.approvals == ([approval] if killed else [])
