"""What a person reads before a reply is sent: the form, and the dry run by the agent's parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ck_pro import MultiStepAgent, StopTool, Tool
from ck_pro.agent.by_hand.reply_guide import AgentReplyGuide
from ck_pro.events import EventKind
from ck_pro.model import Reply
from ck_pro.run.run import Run
from ck_pro.session import AgentSession
from ck_pro.testing import FakeEnvironment, ScriptedLLM

PLAN = {"plan": "agent_plan", "action": "agent_action"}


class Press(Tool):
    """Press a button of the page."""

    name = "press"
    element_roles = ("button", "*")  # type: ignore[assignment]

    def execute(self, id: int, force: bool = False) -> str:
        return f"pressed {id}"


def guide_of(tmp_path: Path, phase: str = "action", **settings: Any) -> AgentReplyGuide:
    given = {"name": "main", "model": ScriptedLLM([]), "tools": [Press(), StopTool()], **settings}
    agent = MultiStepAgent(**given)
    run = Run(agent, AgentSession("Buy a lamp."), workdir=tmp_path)
    run.record(EventKind.STEP, {})
    return AgentReplyGuide(agent, run, phase)


def kinds(guide: AgentReplyGuide, reply: str | Reply) -> list[str]:
    return [part["kind"] for part in guide.preview(Reply(reply) if type(reply) is str else reply)]  # type: ignore[arg-type]


def block(code: str) -> str:
    return f"So.\n```python\n{code}\n```"


def test_the_guide_names_the_functions_and_the_elements_that_they_act_on(tmp_path: Path) -> None:
    described = guide_of(tmp_path).describe()
    assert (described["form"], described["language"], described["plan"]) == ("code", "code", False)
    press, stop = described["functions"]
    assert press["element_roles"] == ["button", "*"] and press["help"]
    assert list(press["parameters"]["properties"]) == ["id", "force"]
    assert stop["terminal"] and stop["element_roles"] == []


def test_code_is_shown_as_it_would_run(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    assert guide.preview(Reply(block("press(3)"))) == [{"kind": "code", "text": "press(3)"}]
    code, warning = guide.preview(Reply(block("press(3")))
    assert code["kind"] == "code" and warning["kind"] == "warning"
    assert "SyntaxError" in warning["text"] and "line 1" in warning["text"]


@pytest.mark.parametrize("reply", ["only words", "", "Thought: x"])
def test_the_error_is_the_one_that_the_model_would_read(tmp_path: Path, reply: str) -> None:
    (part,) = guide_of(tmp_path).preview(Reply(reply))
    assert part["kind"] == "error" and part["text"].startswith("ParseError: The reply contains no")


def test_a_copied_example_is_an_error_and_records_nothing(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    before = len(guide._run.session.steps), dict(guide._run.session.steps[-1]["action"])
    reply = Reply(block("stop('Zilmo', '')"), messages=[{"role": "user", "content": "task"}])
    assert kinds(guide, reply) == ["error"]
    assert before == (len(guide._run.session.steps), dict(guide._run.session.steps[-1]["action"]))


def test_a_plan_beside_the_code_is_shown_with_its_problems(tmp_path: Path) -> None:
    guide = guide_of(tmp_path, templates=PLAN)
    described = guide.describe()
    assert described["plan"] and "todo_list" in described["plan_example"]
    plan = "```python\n{'todo_list': ['a'], 'completed_list': []}\n```\n"
    assert kinds(guide, plan + block("press(3)")) == ["plan", "code"]
    assert kinds(guide, plan) == ["plan", "warning"]
    wrong = "```python\n{'todo_list': 3}\n```\n"
    assert kinds(guide, wrong + block("press(3)")) == ["warning", "code"]
    asks = "```python\n{'todo_list': [], 'question': 'Which?'}\n```\n"
    assert kinds(guide, asks + block("press(3)")) == ["plan", "warning"]
    assert not guide._run.session.state


@pytest.mark.parametrize("language", ["code", "function_calls"])
@pytest.mark.parametrize("phase", ["plan", "end"])
def test_the_example_of_a_form_is_a_valid_reply(tmp_path: Path, phase: str, language: str) -> None:
    guide = guide_of(tmp_path, phase, templates=PLAN, language=language)
    described = guide.describe()
    assert described["form"] == "data"
    raw = guide.compose({"thought": "So.", "code": described["example"]})
    reply = Reply(raw.text, tool_calls=raw.tool_calls)
    assert kinds(guide, reply) == ["plan" if phase == "plan" else "answer"]
    assert kinds(guide, "nothing") == ["error"]


def test_the_end_phase_may_compute_its_result(tmp_path: Path) -> None:
    guide = guide_of(tmp_path, "end", templates=PLAN)
    assert kinds(guide, block("stop(str(6 * 7), '')")) == ["code", "warning"]


def test_calls_are_shown_and_unknown_functions_are_errors(tmp_path: Path) -> None:
    guide = guide_of(tmp_path, language="function_calls")
    assert guide.describe()["form"] == "calls"
    raw = guide.compose({"thought": "Go.", "code": "press(3, force=True)\nclick(id=4)"})
    parts = guide.preview(Reply(raw.text, tool_calls=raw.tool_calls))
    assert parts[0] == {"kind": "call", "text": "press(id=3, force=True)"}
    assert parts[1]["kind"] == "error" and "no function 'click'" in parts[1]["text"]


def test_an_agent_with_its_own_parser_gets_the_whole_reply(tmp_path: Path) -> None:
    class Tagged(MultiStepAgent):
        def _parse_output(self, reply: str) -> Any:
            return {"thought": "", "code": reply.partition("RUN ")[2]}

    agent = Tagged(name="main", model=ScriptedLLM([]), tools=[StopTool()])
    run = Run(agent, AgentSession("t"), workdir=tmp_path)
    run.record(EventKind.STEP, {})
    guide = AgentReplyGuide(agent, run, "action")
    assert guide.describe()["form"] == "text"
    assert guide.preview(Reply("RUN stop('x')")) == [{"kind": "code", "text": "stop('x')"}]
    assert kinds(guide, "no code") == ["error"]


def test_the_picture_is_that_of_the_environment(tmp_path: Path) -> None:
    guide = guide_of(tmp_path)
    assert guide.picture() is None
    guide._run.environment = FakeEnvironment(pictures=["data:image/webp;base64,AAAA"])
    picture = guide.picture()
    assert picture is not None and picture["image"].endswith("AAAA")
