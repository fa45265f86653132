"""Stops of sub-agents under harder conditions: several questions, kills, limits, lost replies."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from agent_trees import ASKING, SPREAD, Watched, call, code, plan

from ck_pro import AgentSession, Budget, MultiStepAgent, StopTool
from ck_pro.agent.stepper import Stepper
from ck_pro.events import FinishAction
from ck_pro.exceptions import HumanNeeded
from ck_pro.journal import EVENTS_FILE, Journal, read_events
from ck_pro.language import text_of
from ck_pro.model import CallContext
from ck_pro.session import Status, StopReason
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tools.human import AskHumanTool

pytestmark = pytest.mark.worker


def prompts(team: Watched) -> str:
    return "\n".join(text_of(m["content"]) for made in team.model.calls for m in made.messages)


def test_parallel_sub_agents_that_all_ask_are_answered_one_by_one(tmp_path: Path) -> None:
    def reply(messages: list[Any], context: CallContext) -> str:
        if context.agent_path == ("main",):
            return code(SPREAD)
        return code(f"stop(ask_human('Code of {context.task}?'))")

    team = Watched(reply)
    session = team.run(tmp_path / "run")
    for _ in range(3):
        assert session.status is Status.HUMAN_INTERVENTION
        task = session.message.removesuffix("?").rpartition(" ")[2]
        session = team.resume(tmp_path / "run", answer=f"{task}!")
    assert session.status is Status.DONE, session.message
    assert session.final_results["output"] == "fast! slow! asks!"
    assert len(session.children) == 3


def test_of_equal_questions_only_the_one_that_was_asked_is_answered(tmp_path: Path) -> None:
    def reply(messages: list[Any], context: CallContext) -> str:
        if context.agent_path == ("main",):
            return code(SPREAD)
        return code("stop(ask_human('The code?'))")

    team = Watched(reply)
    team.run(tmp_path / "run")
    for n in range(3):
        session = team.resume(tmp_path / "run", answer=str(n))
    assert session.status is Status.DONE, session.message
    assert sorted(session.final_results["output"].split()) == ["0", "1", "2"]


def test_a_wrong_answer_and_the_same_question_again(tmp_path: Path) -> None:
    asks = "while (given := ask_human('The code?')) != 'right':\n    work(given)\nstop(given)"
    team = Watched(
        {"main:action": [code("stop(leaf('x')['output'])")], "leaf:action": [code(asks)]}
    )
    team.run(tmp_path / "run")
    for answer in ("wrong", "worse"):
        session = team.resume(tmp_path / "run", answer=answer)
        assert session.message == "main/leaf: a person must help: The code?"
    session = team.resume(tmp_path / "run", answer="right")
    assert session.status is Status.DONE and session.final_results["output"] == "right"
    assert team.worked == Counter(wrong=1, worse=1)


def test_an_agent_in_the_middle_may_take_the_stop_as_a_message(tmp_path: Path) -> None:
    replies = {
        "main:action": [code("stop(mid('Open it.')['output'])")],
        "mid:action": [code("print(leaf('Ask.')['log'])"), code("stop(ask_human('Then you?'))")],
        "leaf:action": [code("ask_human('The code?')")],
    }
    team = Watched(replies, mid={"sub_agent_stops": "message"})
    session = team.run(tmp_path / "run")
    assert session.message == "main/mid: a person must help: Then you?"
    (mid,) = session.children.values()
    assert "a person must help: The code?" in str(mid.steps[0]["action"]["observation"])
    session = team.resume(tmp_path / "run", answer="yes")
    assert session.status is Status.DONE and session.final_results["output"] == "yes"


def test_a_run_that_stores_no_replies_finishes_the_sub_agent_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    replies = {
        "main:action": [
            code("print(work('main'))\nprint(leaf('Ask.'))"),
            code("stop('main')"),
        ],
        "leaf:action": [
            code("print(work('leaf'))\nprint(ask_human('The code?'))"),
            code("stop('leaf')"),
        ],
    }
    team = Watched(replies, common={"store_io": False})
    assert team.run(tmp_path / "run").status is Status.HUMAN_INTERVENTION
    session = team.resume(tmp_path / "run", answer="4321")
    assert session.status is Status.DONE and team.worked == Counter(main=1, leaf=1)
    (leaf,) = session.children.values()
    assert "ask_human(question='The code?') returned 4321" in str(leaf.steps[0]["action"])
    assert "leaf(task='Ask.') returned {'output': 'leaf'" in str(session.steps[0]["action"])


@pytest.mark.parametrize("every", [3])
def test_a_resumed_run_may_be_killed_anywhere_and_be_resumed_again(
    tmp_path: Path, every: int
) -> None:
    # a call of `work` that the kill interrupts is not repeated: that agent ends in a further step
    replies = {name: [*said, code("stop('else')")] for name, said in ASKING.items()}
    team = Watched(replies)
    team.run(tmp_path / "whole")
    events = tmp_path / "whole" / EVENTS_FILE
    before = len(events.read_bytes().splitlines())
    team.resume(tmp_path / "whole", answer="4321")
    lines = events.read_bytes().splitlines(keepends=True)
    for count in range(before + 1, len(lines), every):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / EVENTS_FILE).write_bytes(b"".join(lines[:count]) + b'{"kind": "ste')
        done = Counter(
            e["data"]["arguments"]["name"]
            for e in read_events(folder)
            if e["kind"] == "started" and e["data"]["name"] == "work"
        )
        again = Watched(replies)
        session = again.resume(folder, answer="4321")
        if session.status is Status.HUMAN_INTERVENTION:
            session = again.resume(folder, answer="4321")
        assert session.status is Status.DONE, (count, session.message)
        assert all(n <= 1 for n in (again.worked + done).values()), (count, again.worked, done)


def test_time_that_a_person_takes_is_not_the_runs(tmp_path: Path) -> None:
    class Clock:
        now = 1000.0

        def __call__(self) -> float:
            return self.now

    clock = Clock()
    team = Watched(ASKING)
    with Journal(tmp_path, clock=clock) as journal:
        session = team.agent.run("Do it.", journal=journal, budget=Budget(max_seconds=60))
    assert session.status is Status.HUMAN_INTERVENTION
    clock.now += 86400
    with Journal(tmp_path, clock=clock) as journal:
        session = team.agent.resume(journal=journal, answer="1", budget=Budget(max_seconds=60))
    assert session.status is Status.DONE, session.message


def test_a_limit_that_is_used_up_meanwhile_is_no_answer(tmp_path: Path) -> None:
    team = Watched(ASKING)
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", answer="4321", budget=Budget(max_seconds=1e-9))
    assert session.stop_reason is StopReason.TIME
    session = team.resume(tmp_path / "run")
    assert session.status in (Status.DONE, Status.HUMAN_INTERVENTION, Status.PROBLEM)
    assert team.worked["before"] == team.worked["leaf"] == team.worked["main"] == 1


def test_a_session_without_a_journal_learns_the_answer() -> None:
    replies = {
        "main:action": [code("stop(leaf('x')['output'])"), code("stop('then so')")],
        "leaf:action": [code("stop(ask_human('The code?'))")],
    }
    team = Watched(replies)
    session = team.agent.run("Do it.")
    assert session.message == "main/leaf: a person must help: The code?"
    session = team.agent.resume(session, answer="4321")
    assert session.status is Status.DONE
    assert "Question to the user: The code? Answer: 4321" in prompts(team)


def test_a_person_who_answers_with_an_error_is_an_error_of_the_tool(tmp_path: Path) -> None:
    class Broken:
        def answer(self, question: str) -> str:
            raise ConnectionError("the desk is closed")

    replies = {
        "main:action": [code("stop(leaf('x')['output'])")],
        "leaf:action": [code("ask_human('The code?')"), code("stop('without')")],
    }
    session = Watched(replies, person=Broken()).run(tmp_path / "run")
    assert session.status is Status.DONE and session.final_results["output"] == "without"


def test_a_driver_that_runs_the_loop_itself_gets_the_stop_and_resumes(tmp_path: Path) -> None:
    model = ScriptedLLM([call("ask_human", question="The code?"), call("stop", output="in")])
    tools = [AskHumanTool(), StopTool()]
    agent = MultiStepAgent(model=model, language="function_calls", tools=tools)
    with Journal(tmp_path) as journal:
        stepper = Stepper(agent, "t", journal=journal)
        with pytest.raises(HumanNeeded, match="The code"), stepper:
            stepper.step(stepper.state)
            stepper.act()
    assert stepper.state.status is Status.HUMAN_INTERVENTION
    with Journal(tmp_path) as journal:
        session = agent.resume(journal=journal, answer="7")
    assert session.status is Status.DONE
    assert session.steps[0]["action"]["observation"] == "7"
    assert FinishAction(output="in").output == session.final_results["output"]


def test_a_stop_while_the_code_goes_on_in_another_thread(tmp_path: Path) -> None:
    text = (
        "import threading\n"
        "other = threading.Thread(target=lambda: work('thread'))\n"
        "other.start(); other.join()\n"
        "stop(leaf('x')['output'] + work('after'))"
    )
    replies = {
        "main:action": [code(text)],
        "leaf:action": [code("stop(ask_human('The code?'))")],
    }
    team = Watched(replies)
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", answer="1")
    assert session.final_results["output"] == "1after done"
    assert team.worked == Counter(thread=1, after=1)


def test_code_that_catches_everything_cannot_catch_the_stop(tmp_path: Path) -> None:
    text = "try:\n    leaf('x')\nexcept BaseException:\n    pass\nstop('caught')"
    replies = {"main:action": [code(text)], "leaf:action": [code("ask_human('The code?')")]}
    session = Watched(replies).run(tmp_path / "run")
    assert session.status is Status.HUMAN_INTERVENTION


def test_a_question_of_the_planner_in_a_sub_agent_keeps_the_callers_other_calls(
    tmp_path: Path,
) -> None:
    def reply(messages: list[Any], context: CallContext) -> str:
        texts = "\n".join(text_of(m["content"]) for m in messages)
        if context.phase == "plan":
            known = "The answer: Paris" in texts or context.agent_path[-1] != "leaf"
            return plan() if known else plan(question="Which town?")
        if context.agent_path[-1] == "leaf":
            return code("stop('Paris')")
        return code("print(work('main'))\nstop(leaf('x')['output'] + str(len(work('b'))))")

    templates = {"plan": "agent_plan", "action": "agent_action"}
    team = Watched(reply, common={"templates": templates})
    session = team.run(tmp_path / "run")
    assert (session.status, session.message) == (Status.AMBIGUITY, "main/leaf: Which town?")
    session = team.resume(tmp_path / "run", answer="Paris")
    assert session.status is Status.DONE and team.worked == Counter(main=1, b=1)


def test_a_cancel_keeps_a_sub_agent_in_its_middle(tmp_path: Path) -> None:
    """As Ctrl-C does: the sub-agent has no result, and its caller does not get one."""
    cancel = threading.Event()

    def reply(messages: list[Any], context: CallContext) -> str:
        if context.agent_path == ("main",):
            return code("found = leaf('x')\nstop(found['output'])")
        if context.step == 1 and not cancel.is_set():
            cancel.set()
        return code("print(work('one'))" if context.step == 0 else "stop('whole')")

    team = Watched(reply)
    session: AgentSession = team.run(tmp_path / "run", cancel=cancel)
    assert session.status is Status.IN_PROGRESS
    calls = [e["data"] for e in read_events(tmp_path / "run") if e["kind"] == "call"]
    assert not any(d["name"] == "leaf" and not d.get("interrupted") for d in calls)
    session = team.resume(tmp_path / "run")
    assert session.status is Status.DONE and session.final_results["output"] == "whole"
    assert team.worked == Counter(one=1)


def test_sub_agents_that_stop_with_the_one_that_asks_keep_their_worlds(tmp_path: Path) -> None:
    class Lent(FakeEnvironment):
        """A world on lease."""

        def suspend(self) -> dict[str, Any]:
            return {"lease": "b1"}

    class Walker(MultiStepAgent):
        def init_run(self, session: AgentSession) -> None:
            leases.append(session.run.lease)
            session.run.environment = Lent()

    leases: list[Any] = []
    walks = threading.Event()

    def reply(messages: list[Any], context: CallContext) -> str:
        if context.agent_path == ("main",):
            return code(
                "from threading import Thread\n"
                "Thread(target=walker, args=['x']).start()\nask_human('The code?')"
            )
        walks.set()
        if context.step == 0 and context.cancel is not None and not leases[1:]:
            assert context.cancel.wait(60)
        return code("stop('walked')")

    class Desk:
        def answer(self, question: str) -> None:
            assert walks.wait(60)

    walker = Walker(name="walker", model=ScriptedLLM(reply), tools=[StopTool()])
    tools = [AskHumanTool(), StopTool()]
    agent = MultiStepAgent(
        name="main", model=walker.model, tools=tools, sub_agents=[walker], person=Desk()
    )
    with Journal(tmp_path) as journal:
        session = agent.run("Do it.", journal=journal)
    assert session.status is Status.HUMAN_INTERVENTION
    (walked,) = session.children.values()
    assert walked.status is Status.IN_PROGRESS and walked.lease == {"lease": "b1"}
