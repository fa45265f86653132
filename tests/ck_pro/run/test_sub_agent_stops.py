"""A sub-agent that stops for the user stops the whole run, which resumes in that sub-agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from agent_trees import ASKING, SPREAD, Watched, call, code, plan

from ck_pro import StopTool
from ck_pro.approval import Decision
from ck_pro.events import Action
from ck_pro.exceptions import HumanNeeded
from ck_pro.journal import EVENTS_FILE
from ck_pro.language import text_of
from ck_pro.model import CallContext
from ck_pro.session import Status, StopReason
from ck_pro.tools.human import AskHumanTool

pytestmark = pytest.mark.worker


ONCE = Counter(dict.fromkeys(["main", "last", "mid", "leaf", "before", "after"], 1))


def test_a_question_at_depth_three_stops_the_tree_and_resumes_at_the_same_point(
    tmp_path: Path,
) -> None:
    team = Watched(ASKING)
    session = team.run(tmp_path / "run")
    assert (session.status, session.stop_reason) == (Status.HUMAN_INTERVENTION, StopReason.HUMAN)
    assert session.message == "main/mid/leaf: a person must help: The code?"
    (mid,) = session.children.values()
    (leaf,) = mid.children.values()
    assert mid.status is leaf.status is Status.HUMAN_INTERVENTION
    assert leaf.message == "a person must help: The code?"
    asked = len(team.model.calls)
    session = team.resume(tmp_path / "run", answer="4321")
    assert session.status is Status.DONE, session.message
    assert session.final_results["output"] == "main last done"
    assert "mid 4321 after done" in str(session.steps[0]["action"]["observation"])
    assert team.worked == ONCE and len(team.model.calls) == asked
    assert [c.id for c in session.children.values()] == [mid.id]


def test_a_stop_in_function_calling_resumes_at_the_same_point(tmp_path: Path) -> None:
    replies = {
        "main:action": [call("mid", task="Open it."), call("stop", output="well")],
        "mid:action": [call("leaf", task="Ask."), call("stop", output="well")],
        "leaf:action": [call("ask_human", question="The code?"), call("stop", output="known")],
    }
    team = Watched(replies, common={"language": "function_calls"})
    session = team.run(tmp_path / "run")
    assert session.message == "main/mid/leaf: a person must help: The code?"
    session = team.resume(tmp_path / "run", answer="4321")
    assert session.status is Status.DONE and session.final_results["output"] == "well"
    (mid,) = session.children.values()
    (leaf,) = mid.children.values()
    assert leaf.steps[0]["action"]["observation"] == "4321"


@pytest.mark.parametrize("times", [1, 2])
def test_a_run_resumed_without_an_answer_asks_again(tmp_path: Path, times: int) -> None:
    team = Watched(ASKING)
    team.run(tmp_path / "run")
    for _ in range(times):
        session = team.resume(tmp_path / "run")
        assert session.status is Status.HUMAN_INTERVENTION
        assert session.message == "main/mid/leaf: a person must help: The code?"
    session = team.resume(tmp_path / "run", answer="4321")
    assert session.status is Status.DONE and team.worked == ONCE


def test_an_answer_counts_only_for_its_own_question(tmp_path: Path) -> None:
    asks = code("stop(ask_human('May I log in?') + ask_human('May I delete all?'))")
    replies = {"main:action": [code("print(leaf('Ask.'))"), code("stop('x')")]}
    team = Watched({**replies, "leaf:action": [asks]})
    team.run(tmp_path / "run")
    session = team.resume(tmp_path / "run", answer="yes")
    assert session.message == "main/leaf: a person must help: May I delete all?"
    session = team.resume(tmp_path / "run", answer="no")
    assert session.status is Status.DONE
    assert "'yesno'" in str(session.steps[0]["action"]["observation"])


def test_an_unused_answer_is_shown_and_answers_nothing_else(tmp_path: Path) -> None:
    def sign_in() -> str:
        """Sign in."""
        raise HumanNeeded("sign in for me")

    def reply(messages: list[Any], context: CallContext) -> str:
        texts = "\n".join(text_of(m["content"]) for m in messages)
        if "Question to the user: sign in for me Answer: done" in texts:
            return code("stop(ask_human('May I book?'))")
        return code("sign_in()")

    tools = [sign_in, AskHumanTool(), StopTool()]
    team = Watched(reply, common={"tools": tools})
    session = team.run(tmp_path / "run")
    assert session.message == "sign in for me"
    session = team.resume(tmp_path / "run", answer="done")
    assert "may have had an effect" in session.steps[0]["action"]["observation"]
    assert session.message == "a person must help: May I book?"


def test_the_observation_of_skipped_code_has_the_answer(tmp_path: Path) -> None:
    asks = code("open('draft.txt', 'w').write('x')\nask_human('Paris or Rome?')")
    team = Watched({"main:action": [asks, code("stop('x')")]})
    assert team.run(tmp_path / "run").message == "a person must help: Paris or Rome?"
    session = team.resume(tmp_path / "run", answer="Rome")
    observation = session.steps[0]["action"]["observation"]
    assert "ask_human(question='Paris or Rome?') returned Rome" in observation
    assert session.status is Status.DONE


def test_the_planner_of_a_sub_agent_gets_its_answer(tmp_path: Path) -> None:
    def reply(messages: list[Any], context: CallContext) -> str:
        text = "\n".join(text_of(m["content"]) for m in messages)
        if context.phase == "plan":
            return plan() if "The answer: Paris" in text else plan(question="Which town?")
        return code(
            "stop('Paris')" if context.agent_path[-1] == "leaf" else "stop(leaf('x')['output'])"
        )

    leaf = {
        "templates": {"plan": "agent_plan", "action": "agent_action"},
        "planning": "separate",
    }
    team = Watched(reply, leaf=leaf)
    session = team.run(tmp_path / "run")
    assert (session.status, session.stop_reason) == (Status.AMBIGUITY, StopReason.AMBIGUITY)
    assert session.message == "main/leaf: Which town?"
    session = team.resume(tmp_path / "run", answer="Paris")
    assert session.status is Status.DONE and session.final_results["output"] == "Paris"


class Gate:
    """An approver that stops the calls of one function."""

    def __init__(self, name: str):
        self.name, self.seen = name, list[str]()

    def review(self, action: Action) -> Decision:
        self.seen.append(getattr(action, "name", ""))
        stops = self.seen[-1] == self.name
        return Decision("stop", f"{self.name} is gated") if stops else Decision()


def test_an_action_stopped_in_a_sub_agent_does_not_run(tmp_path: Path) -> None:
    replies = {
        "main:action": [code("print(mid('Do it.'))"), code("stop('main')")],
        "mid:action": [code("print(leaf('Do it.'))"), code("stop('mid')")],
        "leaf:action": [code("print(work('one'))\nprint(work('two'))"), code("stop('leaf')")],
    }
    gate = Gate("work")
    team = Watched(replies, approver=gate)
    session = team.run(tmp_path / "run")
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)
    assert (
        session.message
        == "main/mid/leaf: stopped for the user's decision: work(name='one'): work is gated"
    )
    assert not team.worked
    session = team.resume(tmp_path / "run")
    assert session.status is Status.SENSITIVE_ACTION and not team.worked
    gate.name = ""
    session = team.resume(tmp_path / "run")
    assert session.status is Status.DONE and team.worked == Counter(one=1, two=1)


def test_the_model_sees_which_action_the_approver_stopped(tmp_path: Path) -> None:
    act = "open('note', 'w').write('x')\nprint(leaf('Do it.'))\nprint(work('two'))"
    replies = {
        "main:action": [code(act), code("stop('main')")],
        "leaf:action": [code("open('mine', 'w').write('x')\nwork('one')"), code("stop('leaf')")],
    }
    gate = Gate("work")
    team = Watched(replies, approver=gate)
    assert team.run(tmp_path / "run").status is Status.SENSITIVE_ACTION
    session = team.resume(tmp_path / "run")
    assert session.status is Status.DONE and not team.worked, "code that wrote is not run again"
    (leaf,) = session.children.values()
    said = leaf.steps[0]["action"]["observation"]
    assert (
        "did not run. It was stopped for the user's decision: work(name='one'): work is gated"
        in said
    )
    assert "not done" not in str(session.steps[0]["action"]["observation"])


def test_a_setting_turns_the_stop_into_a_message(tmp_path: Path) -> None:
    replies = {
        "main:action": [code("print(mid('Open it.')['log'])"), code("stop('without')")],
        "mid:action": [code("print(leaf('Ask.'))")],
        "leaf:action": [code("ask_human('The code?')")],
    }
    team = Watched(replies, sub_agent_stops="message")
    session = team.run(tmp_path / "run")
    assert session.status is Status.DONE and session.final_results["output"] == "without"
    seen = session.steps[0]["action"]["observation"]
    assert "human-intervention: main/mid/leaf: a person must help: The code?" in seen


def test_running_sub_agents_stop_with_another_one_and_resume_inside_their_sessions(
    tmp_path: Path,
) -> None:
    """`fast` has ended and `slow` is in its second step when `asks` asks."""
    fast, slow = threading.Event(), threading.Event()
    replied: Counter[str] = Counter()

    def reply(messages: list[Any], context: CallContext) -> str:
        if context.agent_path == ("main",):
            return code(SPREAD)
        replied[f"{context.task} {context.step}"] += 1
        if context.task == "fast":
            return code("stop('fast')")
        if context.task == "slow":
            if context.step == 1 and not slow.is_set():
                slow.set()
                assert context.cancel is not None and context.cancel.wait(60)
            return code("print(work('slow'))" if context.step == 0 else "stop('slow')")
        fast.wait(60), slow.wait(60)
        return code("stop(ask_human('The code?'))")

    def ended(event: dict[str, Any]) -> None:
        if event["kind"] == "run_ended" and event["path"] == ["main", "leaf"]:
            fast.set()

    team = Watched(reply)
    session = team.run(tmp_path / "run", on_event=ended)
    assert session.message == "main/leaf: a person must help: The code?"
    assert sorted(c.status for c in session.children.values()) == [
        Status.DONE,
        Status.HUMAN_INTERVENTION,
        Status.IN_PROGRESS,
    ]
    session = team.resume(tmp_path / "run", answer="yes")
    assert session.status is Status.DONE, session.message
    assert session.final_results["output"] == "fast slow yes"
    assert team.worked == Counter(slow=1) and len(session.children) == 3
    assert replied["fast 0"] == replied["slow 0"] == replied["asks 0"] == 1


@pytest.mark.parametrize("choose", ["first", "vote"])
def test_a_try_with_a_question_resumes_as_the_same_try(tmp_path: Path, choose: Any) -> None:
    def reply(messages: list[Any], context: CallContext) -> str:
        if context.agent_path == ("main",):
            return code("stop(leaf('x')['output'])")
        tries.append(context.sid)
        return code("stop('')" if len(tries) == 1 else "stop(ask_human('The code?'))")

    tries: list[str] = []
    leaf = {"sampling": {"tries": 2, "choose": choose}}
    team = Watched(reply, leaf=leaf)
    session = team.run(tmp_path / "run")
    assert session.message == "main/leaf: a person must help: The code?" and len(tries) == 2
    session = team.resume(tmp_path / "run", answer="1234")
    assert session.status is Status.DONE and session.final_results["output"] == "1234"
    assert len(tries) == len(session.children) == 2


def test_files_of_the_sub_agent_and_the_user_do_not_prevent_a_replay(tmp_path: Path) -> None:
    leaf = "open('found.txt', 'w').write('x')\nprint(work('a'))"
    replies = {
        "main:action": [code("print(leaf('Ask.'))\nstop('at once')")],
        "leaf:action": [code(leaf), code("stop(ask_human('Put the key there.'))")],
    }
    team = Watched(replies)
    assert team.run(tmp_path / "run").status is Status.HUMAN_INTERVENTION
    (tmp_path / "work" / "key.txt").write_text("secret")
    session = team.resume(tmp_path / "run", answer="done")
    assert session.status is Status.DONE and session.final_results["output"] == "at once"
    assert len(session.steps) == 1 and team.worked == Counter(a=1)


def test_code_that_wrote_files_is_not_replayed_and_its_sub_agent_is_completed(
    tmp_path: Path,
) -> None:
    replies = {
        "main:action": [
            code("open('log.txt', 'a').write('once ')\nprint(leaf('Ask.'))"),
            code("stop(open('log.txt').read())"),
        ],
        "leaf:action": [code("print(work('a'))"), code("stop(ask_human('The code?') + '!')")],
    }
    team = Watched(replies)
    assert team.run(tmp_path / "run").status is Status.HUMAN_INTERVENTION
    session = team.resume(tmp_path / "run", answer="4321")
    assert session.status is Status.DONE and session.final_results["output"] == "once "
    observation = session.steps[0]["action"]["observation"]
    assert "leaf(task='Ask.') returned {'output': '4321!'" in observation
    assert len(session.children) == 1 and team.worked == Counter(a=1)


def test_a_kill_after_any_journal_line_leads_to_the_same_end(tmp_path: Path) -> None:
    team = Watched(ASKING)
    team.run(tmp_path / "whole")
    lines = (tmp_path / "whole" / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    stopped = next(n for n, line in enumerate(lines) if b'"human-intervention"' in line)
    for count in range(stopped - 2, len(lines) + 1):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / EVENTS_FILE).write_bytes(b"".join(lines[:count]))
        again = Watched(ASKING)
        session = again.resume(folder, answer="4321")
        if session.status is not Status.DONE:  # killed before the question was recorded
            assert count <= stopped and session.status is Status.HUMAN_INTERVENTION
            session = again.resume(folder, answer="4321")
        assert session.status is Status.DONE and session.final_results["output"] == "main last done"
        assert all(n == 1 for n in again.worked.values()), "nothing is done twice"


_PROGRAM = """
import sys
from ck_pro import Journal, MultiStepAgent, StopTool
from ck_pro.tools.human import AskHumanTool
from ck_pro.testing import ScriptedLLM

class NoAnswer:
    def answer(self, question):
        print("asked", flush=True)
        sys.stdin.read()

def code(text): return f"Thought: so\\n```python\\n{text}\\n```"
model = ScriptedLLM({"main:action": [code("stop(leaf('Ask.')['output'])")],
                     "leaf:action": [code("print(1)"), code("stop(ask_human('The code?'))")]})
leaf = MultiStepAgent(name="leaf", model=model, tools=[AskHumanTool(), StopTool()])
main = MultiStepAgent(name="main", model=model, tools=[StopTool()], sub_agents=[leaf])
main = main.updated({"person": NoAnswer()})
with Journal(sys.argv[1]) as journal:
    main.run("Do it.", journal=journal)
"""


def test_sigkill_while_a_sub_agent_waits_for_the_user(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None and child.stdout.readline() == b"asked\n"
        os.kill(child.pid, signal.SIGKILL)
    replies = {
        "main:action": [code("stop(leaf('Ask.')['output'])")],
        "leaf:action": [code("raise RuntimeError"), code("stop(ask_human('The code?'))")],
    }
    team = Watched(replies)
    session = team.resume(tmp_path / "run")
    assert session.message == "main/leaf: a person must help: The code?"
    session = team.resume(tmp_path / "run", answer="77")
    assert session.status is Status.DONE and session.final_results["output"] == "77"
    assert not team.model.calls
