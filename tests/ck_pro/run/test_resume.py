"""Resume of runs that were interrupted anywhere."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import code

from ck_pro import AgentSession, AskLLMTool, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.exceptions import InputError, LimitReached
from ck_pro.journal import EVENTS_FILE, read_events
from ck_pro.language import text_of
from ck_pro.model import CallContext, Usage
from ck_pro.model.backends.backend import FilteredReply
from ck_pro.run.resume import NOTICE, read_interrupted_run
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tool import tool_from_function
from ck_pro.tools.human import AskHumanTool

pytestmark = pytest.mark.worker


SCRIPT = {
    "main:action": [
        code("print(6 * 7)"),
        code(
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor() as pool:\n"
            "    both = list(pool.map(helper, ['left', 'right']))\n"
            "print(ask_llm('which?'), [str(b['output']) for b in both], pay(3))"
        ),
        code("stop('done')"),
    ],
    "helper:action": [code("seen = look()\nprint(seen)"), code("stop('found')")],
    "tool:ask_llm": ["the second"] * 9,
}


class Team:
    """An agent with a sub-agent, and tools that count their executions."""

    def __init__(self, **settings: Any) -> None:
        self.paid: list[int] = []
        model = ScriptedLLM(SCRIPT)

        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        def look() -> str:
            """Look."""
            return "a thing"

        looking = tool_from_function(look, on_resume="again")
        helper = MultiStepAgent(name="helper", model=model, tools=[looking, StopTool()])
        tools = [AskLLMTool(), pay, StopTool()]
        self.agent = MultiStepAgent(
            name="main", model=model, sub_agents=[helper], tools=tools, **settings
        )


def cut(origin: Path, lines: int, into: Path) -> Path:
    """Copy a run's folder with only the first lines of its journal, as after a kill."""
    shutil.copytree(origin, into)
    kept = (origin / EVENTS_FILE).read_bytes().splitlines(keepends=True)[:lines]
    (into / EVENTS_FILE).write_bytes(b"".join(kept) + b'{"kind": "ste')
    return into


def steps_of(session: AgentSession) -> list[Any]:
    return [(s["action"]["code"], s["action"]["observation"]) for s in session.steps]


def test_a_run_interrupted_anywhere_comes_to_the_same_end(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    with Journal(whole) as journal:
        expected = Team().agent.run("Do it.", journal=journal, workdir=tmp_path / "w")
    assert expected.status is Status.DONE and "paid 3" in expected.steps[1]["action"]["observation"]
    kinds = [json.loads(line)["kind"] for line in (whole / EVENTS_FILE).read_bytes().splitlines()]
    first = kinds.index("session") + 1
    last = len(kinds) - 1  # without its status
    for lines in range(first, last + 1, 3):
        folder, team = cut(whole, lines, tmp_path / str(lines)), Team()
        paid_before = any(
            e["kind"] == "started" and e["data"]["name"] == "pay" for e in read_events(folder)
        )
        with Journal(folder) as journal:
            session = team.agent.resume(journal=journal, workdir=tmp_path / f"w{lines}")
        assert session.status is Status.DONE, (lines, session.message)
        assert session.final_results["output"] == "done"
        assert len(session.steps) == 3
        assert steps_of(session)[0] == steps_of(expected)[0]
        assert len(team.paid) == (0 if paid_before else 1), "never paid twice"
        read_back = sessions_from_events(read_events(folder))[session.id]
        assert json.dumps(read_back.to_dict()) == json.dumps(session.to_dict())
        assert session.to_dict()["info"]["resumed"] == 1


def test_a_pending_call_is_not_repeated_and_is_reported_to_the_model(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    with Journal(whole) as journal:
        Team().agent.run("Do it.", journal=journal)
    lines = (whole / EVENTS_FILE).read_bytes().splitlines()
    started = next(n for n, line in enumerate(lines) if b'"name":"pay"' in line)
    team = Team()
    with Journal(cut(whole, started + 1, tmp_path / "cut")) as journal:
        session = team.agent.resume(journal=journal)
    assert team.paid == []
    seen = session.steps[1]["action"]["observation"]
    assert "may have had an effect" in seen
    assert session.status is Status.DONE


def test_code_that_wrote_files_does_not_run_again(tmp_path: Path) -> None:
    whole, work = tmp_path / "run", tmp_path / "work"
    script = {"action": [code("open('out.csv', 'a').write('row')"), code("stop('done')")]}
    agent = MultiStepAgent(name="main", model=ScriptedLLM(script), tools=[StopTool()])
    with Journal(whole) as journal:
        agent.run("Write.", journal=journal, workdir=work)
    lines = (whole / EVENTS_FILE).read_bytes().splitlines()
    seen = next(n for n, line in enumerate(lines) if b'"kind":"observation"' in line)
    with Journal(cut(whole, seen, tmp_path / "cut")) as journal:
        session = agent.resume(journal=journal, workdir=work)
    assert (work / "out.csv").read_text() == "row"
    assert "interrupted during this step" in session.steps[0]["action"]["observation"]
    assert session.status is Status.DONE and len(session.steps) == 2


def test_the_prompt_reports_lost_variables(tmp_path: Path) -> None:
    replies = [code("x = 1"), code("print(x)"), code("stop('done')")]
    model = ScriptedLLM({"action": replies})
    agent = MultiStepAgent(name="main", model=model, tools=[StopTool()])
    with Journal(tmp_path) as journal:
        steps = agent.run("Do it.", journal=journal, stream=True)
        next(steps)
        steps.close()
    with Journal(tmp_path) as journal:
        session = agent.resume(journal=journal)
    assert "NameError" in session.steps[1]["action"]["observation"]
    prompt = "\n".join(text_of(m["content"]) for m in model.calls[1].messages)
    assert NOTICE in prompt
    assert session.status is Status.DONE and session.final_results["output"] == "done"


def test_usage_before_an_interruption_counts_against_the_budget(tmp_path: Path) -> None:
    model = ScriptedLLM({"action": [code("print(1)")] * 9})
    agent = MultiStepAgent(name="main", model=model, max_steps=9)
    with Journal(tmp_path) as journal:
        session = agent.run("Do it.", journal=journal, budget=Budget(max_steps=2))
    assert session.stop_reason is StopReason.STEPS and len(session.steps) == 2
    with Journal(tmp_path) as journal:  # with a higher limit, an ended run resumes
        session = agent.resume(journal=journal, budget=Budget(max_steps=3))
    assert session.stop_reason is StopReason.STEPS and len(session.steps) == 3
    assert len(model.calls) == 3


def test_the_usage_of_a_filtered_reply_is_carried_over(tmp_path: Path) -> None:
    stopped = [FilteredReply("stopped", Usage(prompt_tokens=900)), FilteredReply("stopped", None)]
    model = ScriptedLLM([*stopped, code("print(1)")], price={"prompt": 1000, "completion": 1})
    before = Budget(max_steps=3)
    with Journal(tmp_path) as journal:
        MultiStepAgent(model=model).run("Do it.", journal=journal, budget=before)
    _, used = read_interrupted_run(read_events(tmp_path))
    after = Budget()
    after.carry(used.steps, 0, used.calls)
    kept = ("steps", "llm_call", "tokens", "money", "unpriced_calls", "usage")
    assert {k: after.snapshot()[k] for k in kept} == {k: before.snapshot()[k] for k in kept}
    assert before.snapshot()["tokens"] > 900 and before.snapshot()["llm_call"] == 3


def test_a_budget_carries_seconds_and_calls() -> None:
    budget = Budget(max_seconds=10)
    budget.carry(1, 11.0, [])
    with pytest.raises(LimitReached, match="10 s"):
        budget.check()


def test_resume_needs_an_interrupted_run(tmp_path: Path) -> None:
    agent = Team().agent
    with pytest.raises(InputError, match="nothing to resume"):
        agent.resume()
    with Journal(tmp_path) as journal, pytest.raises(InputError, match="nothing to resume"):
        agent.resume(journal=journal)
    done = agent.run("Do it.")
    with pytest.raises(InputError, match="is done"):
        agent.resume(done)


# --- a pause -----------------------------------------------------------------------------------


class Lent(FakeEnvironment):
    """An environment with a lease."""

    def suspend(self) -> dict[str, Any]:
        return {"lease": "b1"}


def test_a_pause_does_not_end_the_run(tmp_path: Path) -> None:
    taken: list[Any] = []

    class Walker(MultiStepAgent):
        def init_run(self, session: AgentSession) -> None:
            taken.append(session.run.lease)
            session.run.environment = Lent()

    script = ScriptedLLM({"action": [code("print(1)"), code("stop('done')")]})
    agent = Walker(name="main", model=script, tools=[StopTool()])
    with Journal(tmp_path) as journal:
        session = AgentSession()
        steps = agent.run("Walk.", session=session, journal=journal, stream=True)
        next(steps)
        agent.suspend_run(session)
        assert list(steps) == []
        assert session.status is Status.IN_PROGRESS and session.final_results is None
    with Journal(tmp_path) as journal:
        session = agent.resume(journal=journal)
    assert session.status is Status.DONE
    assert taken == [None, {"lease": "b1"}]


# --- questions ---------------------------------------------------------------------------------


class Answering:
    """Gives the same answer to all questions."""

    def __init__(self, said: str | None):
        self.said, self.asked = said, list[str]()

    def answer(self, question: str) -> str | None:
        self.asked.append(question)
        return self.said


def asking(person: Answering | None) -> MultiStepAgent:
    model = ScriptedLLM({"action": [code("code = ask_human('The code?')\nstop(code)")]})
    sub = MultiStepAgent(name="sub", model=model, tools=[AskHumanTool(), StopTool()])
    tools = [AskHumanTool(), StopTool()]
    return MultiStepAgent(name="main", model=model, tools=tools, sub_agents=[sub], person=person)


def test_a_person_answers_a_question() -> None:
    person = Answering("1234")
    session = asking(person).run("Open it.")
    assert session.final_results["output"] == "1234" and person.asked == ["The code?"]


@pytest.mark.parametrize("person", [None, Answering(None)])
def test_an_answer_may_come_later(person: Any, tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        session = asking(person).run("Open it.", journal=journal)
    assert (session.status, session.stop_reason) == (Status.HUMAN_INTERVENTION, StopReason.HUMAN)
    assert session.message == "a person must help: The code?"
    with Journal(tmp_path) as journal:
        session = asking(person).resume(journal=journal, answer="4321")
    assert session.status is Status.DONE and session.final_results["output"] == "4321"
    assert len(session.steps) == 1


def plan(**more: Any) -> str:
    return f"Thought.\n```python\n{ {'todo_list': ['go'], **more} }\n```"


@pytest.mark.parametrize("planning", ["separate", "fused"])
def test_a_planners_question_ends_the_run_with_ambiguity(tmp_path: Path, planning: str) -> None:
    def reply(messages: list[Any], context: CallContext) -> str:
        text = "\n".join(text_of(m["content"]) for m in messages)
        if context.phase == "plan" or (planning == "fused" and "Paris" not in text):
            return plan() if "Paris" in text else plan(question="Which town?")
        return code("stop('Paris' if True else '')")

    templates = {"plan": "agent_plan", "action": "agent_action"}
    model = ScriptedLLM(reply)
    agent = MultiStepAgent(name="main", model=model, tools=[StopTool()], templates=templates)
    agent = agent.updated({"planning": planning})
    with Journal(tmp_path) as journal:
        session = agent.run("How many people live in town?", journal=journal)
    assert (session.status, session.message) == (Status.AMBIGUITY, "Which town?")
    with Journal(tmp_path) as journal:
        session = agent.resume(journal=journal, answer="Paris")
    assert session.status is Status.DONE and session.final_results["output"] == "Paris"
    person = Answering("Paris")
    agent = agent.updated({"person": person})
    session = agent.run("How many people live in town?")
    assert session.status is Status.DONE and person.asked == ["Which town?"]
    assert any("Paris" in line for line in session.state["information"])


# --- a real kill -------------------------------------------------------------------------------

_PROGRAM = """
import sys
from pathlib import Path
from ck_pro import Journal, MultiStepAgent, StopTool
from ck_pro.testing import ScriptedLLM

def wait(): "Wait."; Path(sys.argv[2]).write_text("here"); import time; time.sleep(600)
def code(text): return f"Thought: so\\n```python\\n{text}\\n```"
replies = [code("print(1)"), code("wait()\\nprint('later')"), code("stop('x')")]
model = ScriptedLLM({"action": replies})
agent = MultiStepAgent(name="main", model=model, tools=[wait, StopTool()])
with Journal(sys.argv[1]) as journal:
    agent.run("Wait.", journal=journal)
"""


def test_sigkill_during_a_call(tmp_path: Path) -> None:
    here, folder = tmp_path / "here", tmp_path / "run"
    child = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(folder), str(here)])
    deadline = time.monotonic() + 60
    while not here.exists() and time.monotonic() < deadline:
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()

    def wait() -> None:
        """Wait."""
        raise AssertionError("called again")

    model = ScriptedLLM({"action": ["", "", code("stop('x')")]})
    agent = MultiStepAgent(name="main", model=model, tools=[wait, StopTool()])
    with Journal(folder) as journal:
        session = agent.resume(journal=journal)
    assert session.status is Status.DONE and len(session.steps) == 3
    assert "may have had an effect" in session.steps[1]["action"]["observation"]
    assert len(model.calls) == 1
