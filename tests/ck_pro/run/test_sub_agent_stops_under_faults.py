"""Stops of sub-agents with several questions, kills, limits and lost replies."""

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


def test_questions_of_parallel_sub_agents_are_answered_one_by_one(tmp_path: Path) -> None:
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


def test_an_answer_reaches_only_the_session_that_asked(tmp_path: Path) -> None:
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


def test_the_same_question_again_needs_a_new_answer(tmp_path: Path) -> None:
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


def test_a_mid_level_agent_may_get_the_stop_as_a_message(tmp_path: Path) -> None:
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


def test_without_stored_replies_a_resume_completes_the_sub_agent_and_repeats_nothing(
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
def test_a_resumed_run_can_be_killed_and_resumed_again(tmp_path: Path, every: int) -> None:
    # an interrupted call of `work` is not repeated; that agent ends in another step
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


def test_the_users_time_does_not_count(tmp_path: Path) -> None:
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


def test_a_limit_reached_while_waiting_is_not_an_answer(tmp_path: Path) -> None:
    team = Watched(ASKING)
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", answer="4321", budget=Budget(max_seconds=1e-9))
    assert session.stop_reason is StopReason.TIME
    session = team.resume(tmp_path / "run")
    assert session.status in (Status.DONE, Status.HUMAN_INTERVENTION, Status.PROBLEM)
    assert team.worked["before"] == team.worked["leaf"] == team.worked["main"] == 1


def test_a_session_without_a_journal_can_be_answered() -> None:
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


def test_an_error_of_the_person_is_an_error_of_the_tool(tmp_path: Path) -> None:
    class Broken:
        def answer(self, question: str) -> str:
            raise ConnectionError("the desk is closed")

    replies = {
        "main:action": [code("stop(leaf('x')['output'])")],
        "leaf:action": [code("ask_human('The code?')"), code("stop('without')")],
    }
    session = Watched(replies, person=Broken()).run(tmp_path / "run")
    assert session.status is Status.DONE and session.final_results["output"] == "without"


def test_a_custom_loop_gets_the_stop_and_can_resume(tmp_path: Path) -> None:
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


def test_a_stop_while_the_code_runs_in_another_thread(tmp_path: Path) -> None:
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


def test_code_cannot_catch_the_stop(tmp_path: Path) -> None:
    text = "try:\n    leaf('x')\nexcept BaseException:\n    pass\nstop('caught')"
    replies = {"main:action": [code(text)], "leaf:action": [code("ask_human('The code?')")]}
    session = Watched(replies).run(tmp_path / "run")
    assert session.status is Status.HUMAN_INTERVENTION


def test_a_planners_question_in_a_sub_agent_keeps_the_callers_completed_calls(
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
    team = Watched(reply, common={"templates": templates, "planning": "separate"})
    session = team.run(tmp_path / "run")
    assert (session.status, session.message) == (Status.AMBIGUITY, "main/leaf: Which town?")
    session = team.resume(tmp_path / "run", answer="Paris")
    assert session.status is Status.DONE and team.worked == Counter(main=1, b=1)


def test_a_cancelled_sub_agent_resumes_inside_its_session(tmp_path: Path) -> None:
    """Like Ctrl-C: the sub-agent has no result, and its caller gets none."""
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


def test_sub_agents_that_stop_with_another_one_keep_their_environments(tmp_path: Path) -> None:
    class Lent(FakeEnvironment):
        """An environment with a lease."""

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
