"""Calls of a sub-agent that continue an earlier one, and what a sub-agent returns at a limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code, prompts

from ck_pro import AgentSession, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.agent import AgentResult
from ck_pro.environment import Environment
from ck_pro.journal import read_events
from ck_pro.session import Status, sessions_from_events
from ck_pro.session.observed import observation_text
from ck_pro.testing import ScriptedLLM

pytestmark = pytest.mark.worker


class Counter(Environment):
    """An environment that another one can continue, by the number that it was opened as."""

    opened: list[int] = []
    open_now: set[int] = set()

    def __init__(self, lease: Any):
        self.number = lease["number"] if lease else len(self.opened)
        if not lease:
            self.opened.append(self.number)
        self.open_now.add(self.number)

    def suspend(self) -> dict[str, Any]:
        return {"number": self.number}

    def close(self) -> None:
        self.open_now.discard(self.number)


class Continuing(MultiStepAgent):
    """A sub-agent with an environment, whose calls can continue earlier ones."""

    name: str = "helper"
    tools: list[Any] = [StopTool()]
    max_steps = 2
    can_continue = True

    def __call__(self, task: str, continue_from: Any = None, **kwargs: Any) -> AgentResult:
        earlier = getattr(continue_from, "session", None)
        return super().__call__(task, continue_from=earlier, **kwargs)

    def init_run(self, session: AgentSession) -> None:
        session.run.environment = Counter(session.run.lease)

    def discard_environment(self, lease: Any) -> None:
        Counter(lease).close()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Counter.opened, Counter.open_now = [], set()


def team(caller: list[str], *replies: str) -> tuple[MultiStepAgent, Continuing]:
    sub = Continuing(model=ScriptedLLM(list(replies)))
    return agent(*map(code, caller), sub_agents=[sub]), sub


def seen(session: AgentSession, step: int) -> str:
    return observation_text(session.steps[step]["action"]["observation"])


def test_a_second_call_continues_environment_and_variables() -> None:
    a, sub = team(
        ["r = helper('one')", "print(helper('two', continue_from=r))", "stop(1)"],
        code("import re\nfound = ['a', 'b']\nstop('x')"),
        code("stop(re.sub('x', 'y', 'x') + ', '.join(found))"),
    )
    session = a.run("t")
    assert "{'output': 'ya, b'" in seen(session, 1)
    assert Counter.opened == [0] and Counter.open_now == set()
    second = prompts(sub)[1]
    assert (
        "This continues an earlier task of yours, in the same environment. That task was: one"
        in second
    )
    assert "found: list of 2 str\nimport re" in second and "found:" not in prompts(sub)[0]


def test_without_continue_from_a_call_starts_anew() -> None:
    a, _ = team(
        ["r = helper('one')", "print(helper('two')['output'])", "stop(1)"],
        code("found = 1\nstop('x')"),
        code("stop(str('found' in globals()))"),
    )
    assert seen(a.run("t"), 1) == "False"
    assert Counter.opened == [0, 1] and Counter.open_now == set()


def test_a_sub_agent_at_its_limit_returns_its_variables_and_can_be_continued(
    tmp_path: Path,
) -> None:
    a, _ = team(
        [
            "r = helper('one')\nprint(r['output'] == '', len(r['variables']['rows']), r['log'])",
            "print(helper('two', continue_from=r)['output'])",
            "stop(1)",
        ],
        code("rows = [{'n': 1, 'name': 'ä'}] * 3\nclass Odd: ...\nodd, unit = Odd(), {1.5, None}"),
        code("rows.append({'n': 2})"),
        code("stop(len(rows))"),
    )
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    assert seen(session, 0).startswith("True 4 ") and "did not finish within 2 steps" in (
        seen(session, 0)
    )
    assert "[result['variables'] has: rows, unit]" in seen(session, 0)
    assert seen(session, 1) == "4"
    child = next(iter(session.children.values()))
    assert child.status is Status.PROBLEM
    assert child.to_dict()["info"]["variables"]["rows"][0] == {"n": 1, "name": "ä"}
    rebuilt = next(iter(sessions_from_events(read_events(tmp_path)).values()))
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())
    assert AgentSession.from_dict(child.to_dict()).variables == child.variables


def test_the_main_agent_keeps_its_variables_at_a_limit_in_the_row() -> None:
    a = agent(code("W = ['a', 'b']\nbig = 'x' * 100_000"), max_steps=1)
    session = a.run("t")
    assert session.to_dict()["info"]["variables"] == {"W": ["a", "b"]}
    done = agent(code("W = ['a', 'b']\nstop(1)")).run("t")
    assert "variables" not in done.to_dict()["info"]


@pytest.mark.parametrize("last", ["import time\ntime.sleep(60)", "while True: pass"])
def test_variables_survive_the_kill_of_a_later_step_by_the_time_limit(last: str) -> None:
    now = [0.0]

    def pass_time() -> None:
        now[0] = 99.0

    replies = [code("W = ['a']\npass_time()"), code(f"W.append('b')\n{last}")]
    a = agent(*replies, tools=[pass_time, StopTool()])
    session = a.run("t", budget=Budget(max_seconds=100.0, clock=lambda: now[0]))
    assert session.status is Status.PROBLEM and session.variables == {"W": ["a"]}


def test_variables_survive_endless_code_of_the_end_phase() -> None:
    templates = {"action": "agent_action", "end": "agent_end"}
    endless = code("while True: pass")
    settings = {"max_steps": 1, "templates": templates, "executor": {"timeout": 0.3}}
    a = agent(code("W = ['a']"), endless, endless, **settings)
    session = a.run("t")
    assert session.variables == {"W": ["a"]}
    assert "W: list" in prompts(a)[1] and "W: list" not in prompts(a)[2]


def test_only_the_latest_resources_are_kept_and_all_end_with_the_caller() -> None:
    a, sub = team(
        ["r = [helper(str(n)) for n in range(6)]", "helper('x', continue_from=r[0])", "stop(1)"],
        *[code(f"mine = {n}\nstop('x')") for n in range(6)],
        code("stop('mine' in globals())"),
    )
    a.run("t")
    assert "Its variables are lost." in prompts(sub)[6]
    assert Counter.open_now == set()


def test_an_earlier_result_means_its_environment_as_it_is_now() -> None:
    a, sub = team(
        [
            "r = helper('one')",
            "s = helper('two', continue_from=r)",
            "print(helper('three', continue_from=s)['output'])",
            "print(helper('four', continue_from=r)['output'])",
            "stop(1)",
        ],
        code("n = 1\nstop('x')"),
        code("n += 1\nstop('x')"),
        code("n += 1\nstop(n)"),
        code("stop(n)"),
    )
    session = a.run("t")
    assert (seen(session, 2), seen(session, 3)) == ("3", "3") and len(prompts(sub)) == 4
    assert Counter.opened == [0]
