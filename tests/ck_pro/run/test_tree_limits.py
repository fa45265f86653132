"""Limits hold for a whole tree of agents, for every kind of use, and after a resume."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import code

from ck_pro import AgentSession, AskLLMTool, Journal, MultiStepAgent, Status, StopTool
from ck_pro.exceptions import LimitReached
from ck_pro.journal import read_events
from ck_pro.model import Budget, CallContext, Reply, Usage
from ck_pro.session import StopReason, sessions_from_events
from ck_pro.testing import ScriptedLLM
from ck_pro.testing.scripted import ScriptedBackend

CALL_TOKENS, CALL_MONEY, CALL_SECONDS = 100, 0.25, 1000.0
LIMITS: dict[str, tuple[dict[str, Any], int]] = {
    "steps": ({"max_steps": 9}, 9),
    "time": ({"max_seconds": 9 * CALL_SECONDS}, 9),
    "tokens": ({"max_tokens": 9 * CALL_TOKENS}, 9),
    "money": ({"max_money": 9 * CALL_MONEY}, 9),
}
AT_ONCE = 3

ONE_BY_ONE = "for n in range(3): print(middle(f'{n}'))"
AT_THE_SAME_TIME = (
    "from concurrent.futures import ThreadPoolExecutor\n"
    f"with ThreadPoolExecutor({AT_ONCE}) as pool: print(list(pool.map(middle, '012')))"
)
LOWEST = {"code": "print('again')", "ask_llm": "print(ask_llm('what?'))", "nested": "ask_more()"}


class Paid(ScriptedBackend):
    """A scripted model with a price."""

    free = False


class Tree:
    """Agents in three levels, each of which calls the next without end."""

    def __init__(self, main: str, lowest: str, limits: Mapping[str, Any], **settings: Any):
        self.now, self.calls = CALL_SECONDS, 0
        self._lock = threading.Lock()
        self.code = {"main": main, "middle": "print(leaf('x'))", "leaf": LOWEST[lowest]}
        price = {"prompt": 1e6 * CALL_MONEY / CALL_TOKENS, "completion": 0.0}
        model = ScriptedLLM(backend=Paid(self._reply), price=price)
        self.budget = Budget(**limits, clock=self._clock)

        class AskMore(AskLLMTool):
            """A tool that calls a model twice."""

            name = "ask_more"

            def bind(self, run: Any) -> Callable[..., Any]:
                ask = super().bind(run)

                def ask_more() -> str:
                    """Ask twice."""
                    return str(ask("this?")) + str(ask("that?"))

                return ask_more

        free = {"stuck_limit": 1000, "max_steps": 100, "model": model, **settings}
        tools = [AskLLMTool(), AskMore(), StopTool()]
        leaf = MultiStepAgent(name="leaf", tools=tools, **free)
        middle = MultiStepAgent(name="middle", sub_agents=[leaf], tools=[StopTool()], **free)
        self.agent = MultiStepAgent(name="main", sub_agents=[middle], tools=[StopTool()], **free)

    def _clock(self) -> float:
        return self.now

    def _reply(self, messages: list[Any], context: CallContext) -> Reply:
        with self._lock:
            self.calls += 1
            self.now += CALL_SECONDS
        name = context.agent_path[-1]
        text = "Well." if context.phase.startswith("tool:") else code(self.code[name])
        return Reply(text, usage=Usage(prompt_tokens=CALL_TOKENS))


def used(tree: Tree, reason: str) -> float:
    """Return the usage of the tree, in calls or steps."""
    found = tree.budget.snapshot()
    if reason == "steps":
        return float(found["steps"])
    by = {"time": CALL_SECONDS, "tokens": CALL_TOKENS, "money": CALL_MONEY}[reason]
    return float(found["seconds" if reason == "time" else reason]) / by


def check_told(session: AgentSession, reason: str, below: int = 1) -> None:
    """Assert that the run and all sessions report the limit."""
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason(reason))
    assert "the limit of" in session.message
    every = [session]
    for one in every:
        every += one.children.values()
    assert len(every) > below
    assert {s.stop_reason for s in every} == {StopReason(reason)}
    assert all(s.status is Status.PROBLEM and s.steps for s in every)


@pytest.mark.worker
@pytest.mark.parametrize("reason", LIMITS)
@pytest.mark.parametrize("main", [ONE_BY_ONE, AT_THE_SAME_TIME], ids=["one by one", "at once"])
@pytest.mark.parametrize("lowest", LOWEST)
def test_a_limit_ends_the_whole_tree(reason: str, main: str, lowest: str, tmp_path: Path) -> None:
    limits, most = LIMITS[reason]
    tree = Tree(main, lowest, limits)
    with Journal(tmp_path) as journal:
        session = tree.agent.run("Work.", budget=tree.budget, journal=journal)
    check_told(session, reason)
    in_flight = 0 if reason == "steps" or main == ONE_BY_ONE else AT_ONCE - 1
    assert most <= used(tree, reason) <= most + in_flight
    sessions = sessions_from_events(read_events(tmp_path))
    assert {s.stop_reason for s in sessions.values()} == {StopReason(reason)}


@pytest.mark.worker
@pytest.mark.parametrize("reason", LIMITS)
def test_usage_before_a_resume_counts(reason: str, tmp_path: Path) -> None:
    limits, most = LIMITS[reason]
    half = {name: value * 4 // 9 for name, value in limits.items()}
    first = Tree(ONE_BY_ONE, "ask_llm", half)
    clock = first._clock
    with Journal(tmp_path, clock=clock) as journal:
        session = first.agent.run("Work.", budget=first.budget, journal=journal)
    check_told(session, reason)
    second = Tree(ONE_BY_ONE, "ask_llm", limits)
    with Journal(tmp_path, clock=second._clock) as journal:
        session = second.agent.resume(budget=second.budget, journal=journal)
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason(reason))
    assert used(second, reason) == most
    if reason == "steps":
        steps = [e["data"] for e in read_events(tmp_path) if e["kind"] == "step"]
        assert sum(data.get("taken", True) for data in steps) == most
    else:
        assert first.calls + second.calls == most


@pytest.mark.worker
def test_a_loop_of_sub_agent_calls_ends_with_the_steps() -> None:
    tree = Tree("while True: print(middle('x'))", "code", {"max_steps": 5})
    session = tree.agent.run("Work.", budget=tree.budget)
    check_told(session, "steps")
    assert used(tree, "steps") == 5 and len(session.children) <= 3


@pytest.mark.worker
def test_code_in_the_last_step_may_still_answer() -> None:
    tree = Tree("stop(middle('x')['log'])", "code", {"max_steps": 1})
    session = tree.agent.run("Work.", budget=tree.budget)
    assert session.status is Status.DONE
    assert "[ended with status problem: the limit of 1 steps" in session.final_results["output"]


def test_only_one_of_several_agents_gets_the_last_step() -> None:
    top = Budget(max_steps=50)
    budgets = [Budget(parent=Budget(parent=top)) for _ in range(4)]
    refused = itertools.count()

    def take(budget: Budget) -> None:
        for _ in range(20):
            try:
                budget.take_step()
            except LimitReached:
                next(refused)

    threads = [threading.Thread(target=take, args=(b,)) for b in budgets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert top.snapshot()["steps"] == 50 and next(refused) == 30
