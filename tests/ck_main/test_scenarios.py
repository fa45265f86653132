"""The same scenarios for every agent in every language. Sub-agents are of the same kind.

The browser server is a fake, the models are scripts. Code runs in a real worker.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire
from speeches import SPEECHES, Speech

from ck_main.agent import CKAgent
from ck_pro import AgentSession, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.approval import RuleApprover
from ck_pro.events import Action, RejectAction
from ck_pro.exceptions import ToolError
from ck_pro.journal import read_events
from ck_pro.language import message_text
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import ScriptedLLM
from ck_pro.tools.human import AskHumanTool
from ck_web import WebAgent
from ck_web.computer import ComputerAgent
from ck_web.tools import WebStopTool

KINDS: dict[str, type[MultiStepAgent]] = {
    "agent": MultiStepAgent,
    "main agent": CKAgent,
    "web agent": WebAgent,
    "computer agent": ComputerAgent,
}
SCREEN = ("computer_use", "computer_items")
PAIRS = [
    (kind, language)
    for kind in KINDS
    for language in SPEECHES
    if language not in SCREEN or kind == "computer agent"
]


class Broken(Exception):
    """An error of a library that the project does not know."""


@dataclass
class Team:
    """Makes agents of one kind and language, and counts the calls of their tools."""

    kind: str
    speech: Speech
    wire: FakeWire
    folder: Path
    worked: Counter[str] = field(default_factory=Counter)

    def agent(self, *replies: Any, name: str = "boss", **settings: Any) -> MultiStepAgent:
        """Return an agent with this script."""

        def work(what: str, times: int = 1) -> str:
            """Work."""
            self.worked[what] += times
            return f"{what} is done"

        def fail(how: str) -> str:
            """Never works."""
            errors = (ValueError, KeyError, OSError, MemoryError, ToolError, RecursionError, Broken)
            raise {e.__name__: e for e in errors}[how]("the disk is full")

        on_web = issubclass(KINDS[self.kind], WebAgent)
        if on_web:
            settings["web_env"] = {"server_url": self.wire.url, "target_url": SHOP}
        stop = WebStopTool() if on_web else StopTool()
        settings.setdefault("sub_agents", [])
        settings["templates"] = {"end": None}  # no summary after a limit, which needs a reply
        return KINDS[self.kind](
            name=name,
            description="Helps.",
            model=ScriptedLLM(list(replies)),
            language=self.speech.language(),
            tools=[work, fail, AskHumanTool(), stop],
            **settings,
        )

    def pair(self, boss: list[Any], helper: list[Any], **settings: Any) -> MultiStepAgent:
        """Return an agent with a sub-agent `helper` of the same kind."""
        sub = self.agent(*helper, name="helper")
        return self.agent(*boss, sub_agents=[sub], **settings)

    def run(self, agent: MultiStepAgent, **more: Any) -> AgentSession:
        """Run an agent with a journal; the journal has the same events as the session."""
        with Journal(self.folder / "run") as journal:
            session: AgentSession = agent.run(
                "Do it.", journal=journal, workdir=self.folder / "work", **more
            )
        return self.checked(session)

    def resume(self, agent: MultiStepAgent, **more: Any) -> AgentSession:
        """Resume that run."""
        with Journal(self.folder / "run") as journal:
            session: AgentSession = agent.resume(
                journal=journal, workdir=self.folder / "work", **more
            )
        return self.checked(session)

    def checked(self, session: AgentSession) -> AgentSession:
        stored = sessions_from_events(read_events(self.folder / "run"))[session.id]
        assert json.dumps(stored.to_dict()) == json.dumps(session.to_dict())
        assert not self.wire.browsers or session.status is not Status.DONE
        return session


@pytest.fixture(scope="module")
def wire() -> Iterator[FakeWire]:
    """A fake browser server."""
    with FakeWire() as server:
        yield server


def _pair(kind: str, language: str) -> Any:
    marks = [pytest.mark.worker] if language == "code" else []
    if issubclass(KINDS[kind], WebAgent):
        marks.append(pytest.mark.integration)  # HTTP
    return pytest.param((kind, language), id=f"{kind}, {language}", marks=marks)


@pytest.fixture(params=[_pair(*pair) for pair in PAIRS])
def team(request: pytest.FixtureRequest, wire: FakeWire, tmp_path: Path) -> Team:
    """Return a team of each kind in each language."""
    kind, language = request.param
    return Team(kind, SPEECHES[language], wire, tmp_path)


def seen(session: AgentSession, step: int = 0) -> str:
    """Return the observation of a step as one text."""
    found = session.steps[step]["action"]["observation"]
    return "\n".join(map(str, found)) if isinstance(found, list) else str(found)


def prompt(agent: MultiStepAgent, number: int) -> str:
    model = agent.model
    assert isinstance(model, ScriptedLLM)
    return "\n".join(map(message_text, model.calls[number].messages))


# --- answers and tools --------------------------------------------------------------------------


def test_an_answer_ends_the_run(team: Team) -> None:
    session = team.run(team.agent(team.speech.finish("42")))
    assert (session.status, session.stop_reason) == (Status.DONE, StopReason.FINISHED)
    assert session.final_results["output"] == "42"


def test_stop_ends_the_run_with_answer_and_log(team: Team) -> None:
    session = team.run(team.agent(team.speech.call("stop", output="42", log="I counted.")))
    assert session.final_results == {"output": "42", "log": "I counted."}


def test_the_result_of_a_tool_is_in_the_next_prompt(team: Team) -> None:
    a = team.agent(team.speech.call("work", what="tea"), team.speech.finish("42"))
    session = team.run(a)
    assert "tea is done" in seen(session) and team.worked == {"tea": 1}
    assert "tea is done" in prompt(a, 1) and session.status is Status.DONE


def test_any_exception_of_a_tool_becomes_an_observation(team: Team) -> None:
    names = ["ValueError", "KeyError", "OSError", "MemoryError", "RecursionError", "Broken"]
    replies = [team.speech.call("fail", how=name) for name in names]
    a = team.agent(*replies, team.speech.finish("42"))
    session = team.run(a)
    for number, name in enumerate(names):
        assert name in seen(session, number) and "the disk is full" in seen(session, number)
    assert "the disk is full" in prompt(a, 1) and session.status is Status.DONE


def test_arguments_that_violate_the_schema_become_an_observation(team: Team) -> None:
    wrong = {"times": {"what": "tea", "times": "often"}, "what": {}, "who": {"what": "x", "who": 1}}
    replies = [team.speech.call("work", **arguments) for arguments in wrong.values()]
    a = team.agent(*replies, team.speech.finish("42"))
    session = team.run(a)
    for number, named in enumerate(wrong):
        assert "rror" in seen(session, number) and named in seen(session, number)
        assert named in prompt(a, number + 1)
    assert not team.worked and session.status is Status.DONE


def test_an_unknown_tool_becomes_an_observation(team: Team) -> None:
    a = team.agent(team.speech.call("dance", how="well"), team.speech.finish("42"))
    session = team.run(a)
    assert "dance" in seen(session) and "rror" in seen(session)
    assert session.status is Status.DONE


def test_calls_after_stop_do_not_run(team: Team) -> None:
    calls = [("work", {"what": "tea"}), ("stop", {"output": "42"}), ("work", {"what": "more"})]
    session = team.run(team.agent(team.speech.calls(calls)))
    assert session.final_results["output"] == "42" and team.worked == {"tea": 1}


# --- delegation and ends ------------------------------------------------------------------------


def test_a_sub_agent_returns_its_answer(team: Team) -> None:
    s = team.speech
    boss = [s.call("helper", task="Make tea."), s.finish("42")]
    a = team.pair(boss, [s.call("work", what="tea"), s.finish("hot")])
    session = team.run(a)
    (child,) = session.children.values()
    assert (child.task, child.final_results["output"]) == ("Make tea.", "hot")
    assert "hot" in prompt(a, 1) and session.status is Status.DONE


def test_a_rejected_call_is_reported_and_the_run_continues(team: Team) -> None:
    approver = RuleApprover(reject=[r"^work\("])
    a = team.agent(
        team.speech.call("work", what="tea"), team.speech.finish("42"), approver=approver
    )
    session = team.run(a)
    assert "not allowed" in seen(session) and not team.worked
    assert "not allowed" in prompt(a, 1) and session.status is Status.DONE


def test_an_agent_that_rejects_its_task_ends_with_the_reason(team: Team) -> None:
    a = team.agent(team.speech.call("work", what="tea"))

    def rejects(session: AgentSession, kwargs: Any = None) -> list[Action]:
        return [RejectAction(reason="I make no tea.")]

    a.decide = rejects  # type: ignore[method-assign]
    session = team.run(a)
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.REJECTED)
    assert session.final_results == {"output": "", "log": "I make no tea."}


@pytest.mark.parametrize(
    ("budget", "reason"),
    [({"max_steps": 2}, StopReason.STEPS), ({"max_tokens": 1}, StopReason.TOKENS)],
    ids=["steps", "tokens"],
)
def test_a_used_up_budget_ends_the_run(team: Team, budget: Any, reason: StopReason) -> None:
    replies = [team.speech.call("work", what=str(n)) for n in range(4)]
    a = team.agent(*replies, team.speech.finish("42"))
    session = team.run(a, budget=Budget(**budget))
    assert (session.status, session.stop_reason) == (Status.PROBLEM, reason)
    assert sum(team.worked.values()) < 4


def test_a_used_up_budget_is_raised_on_resume(team: Team) -> None:
    s = team.speech
    a = team.agent(s.call("work", what="tea"), s.finish("42"))
    session = team.run(a, budget=Budget(max_steps=1))
    assert session.stop_reason is StopReason.STEPS
    session = team.resume(a, budget=Budget(max_steps=9))
    assert (session.final_results["output"], team.worked) == ("42", {"tea": 1})


# --- stops inside a sub-agent -------------------------------------------------------------------


def test_a_denied_approval_in_a_sub_agent_stops_the_tree_and_resumes_there(team: Team) -> None:
    s = team.speech
    boss = [s.call("work", what="water"), s.call("helper", task="Make tea."), s.finish("42")]
    helper = [s.call("work", what="cups"), s.call("work", what="tea"), s.finish("hot")]
    a = team.pair(boss, helper, approver=RuleApprover(stop=[r"^work\(.*tea"]))
    session = team.run(a)
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)
    (child,) = session.children.values()
    assert child.status is Status.SENSITIVE_ACTION
    assert team.worked == {"water": 1, "cups": 1}
    session = team.resume(a, approve=True)
    assert session.status is Status.DONE, session.message
    assert team.worked == {"water": 1, "cups": 1, "tea": 1}
    assert [c.id for c in session.children.values()] == [child.id]


def test_a_question_in_a_sub_agent_stops_the_tree_and_resumes_there(team: Team) -> None:
    s = team.speech
    boss = [s.call("work", what="water"), s.call("helper", task="Make tea."), s.finish("42")]
    helper = [s.call("work", what="cups"), s.call("ask_human", question="Milk?"), s.finish("hot")]
    a = team.pair(boss, helper)
    session = team.run(a)
    assert (session.status, session.stop_reason) == (Status.HUMAN_INTERVENTION, StopReason.HUMAN)
    assert "boss/helper: a person must help: Milk?" in session.message
    session = team.resume(a, answer="oat milk")
    assert session.status is Status.DONE, session.message
    (child,) = session.children.values()
    assert "oat milk" in seen(child, 1) and team.worked == {"water": 1, "cups": 1}


def test_a_run_killed_inside_a_sub_agent_resumes_there(team: Team) -> None:
    s = team.speech
    boss = [s.call("helper", task="Make tea."), s.finish("42")]
    a = team.pair(boss, [s.call("work", what="cups"), s.finish("hot")])
    helper = a.sub_agents[0].model.backend
    answer = helper.complete

    def killed(request: Any) -> Any:
        if helper.recorded():
            raise KeyboardInterrupt
        return answer(request)

    helper.complete = killed
    with pytest.raises(KeyboardInterrupt):
        team.run(a)
    helper.complete = answer
    session = team.resume(a)
    assert session.status is Status.DONE, session.message
    (child,) = session.children.values()
    assert child.final_results["output"] == "hot" and team.worked == {"cups": 1}
