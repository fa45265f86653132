"""Questions of agents with a browser to the user, in every language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire

from ck_pro import Journal, MultiStepAgent, StopTool
from ck_pro.model import Reply
from ck_pro.session import Status
from ck_pro.testing import ScriptedLLM
from ck_web import ComputerAgent, WebAgent

KINDS = [
    (WebAgent, "code"),
    (WebAgent, "function_calls"),
    (ComputerAgent, "code"),
    (ComputerAgent, "function_calls"),
    (ComputerAgent, "computer_use"),
    (ComputerAgent, "computer"),
]


def code(text: str) -> str:
    return f"Thought: so\n```python\n{text}\n```"


def call(language: str, name: str, **arguments: Any) -> str:
    """Return a function call as a model writes it in one language."""
    if language == "code":
        given = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
        return code(f"print({name}({given}))")
    text = json.dumps(arguments)
    if language == "computer":
        item = {"type": "function_call", "call_id": "c0", "name": name, "arguments": text}
        made = [{"id": "c0", "type": "function", "function": {"name": name, "arguments": text}}]
        return Reply("so", items=[item], tool_calls=made)
    function = {"name": name, "arguments": text}
    return Reply("so", tool_calls=[{"id": "c0", "type": "function", "function": function}])


class FixedAnswer:
    """Gives the same answer to every question."""

    def answer(self, question: str) -> str:
        return f"{question} 1234"


def main_over(kind: Any, language: str, wire: FakeWire, **settings: Any) -> MultiStepAgent:
    """Return a main agent with a sub-agent that asks and then stops."""
    script = {
        "below:action": [
            call(language, "ask_human", question="The code?"),
            call(language, "stop", answer="in", summary=""),
        ],
        "main:action": [code("stop(below('Log in.')['output'])")],
    }
    model = ScriptedLLM(script)
    web_env = {"server_url": wire.url, "target_url": SHOP}
    templates = {**kind.templates, "plan": None}
    below = kind(name="below", model=model, language=language, web_env=web_env, templates=templates)
    return MultiStepAgent(
        name="main", model=model, sub_agents=[below], tools=[StopTool()], **settings
    )


@pytest.mark.worker
@pytest.mark.parametrize(("kind", "language"), KINDS)
def test_ask_human_returns_the_answer(
    kind: Any, language: str, wire: FakeWire, tmp_path: Path
) -> None:
    session = main_over(kind, language, wire, person=FixedAnswer()).run("Do it.", workdir=tmp_path)
    assert session.status is Status.DONE and session.final_results["output"] == "in"
    (below,) = session.children.values()
    assert "The code? 1234" in below.steps[0]["action"]["observation"]


@pytest.mark.worker
@pytest.mark.parametrize(("kind", "language"), KINDS)
def test_a_question_stops_the_run_until_it_is_answered(
    kind: Any, language: str, wire: FakeWire, tmp_path: Path
) -> None:
    agent = main_over(kind, language, wire)
    with Journal(tmp_path / "run") as journal:
        session = agent.run("Do it.", journal=journal, workdir=tmp_path / "work")
    assert session.status is Status.HUMAN_INTERVENTION
    assert session.message == "main/below: a person must help: The code?"
    with Journal(tmp_path / "run") as journal:
        session = agent.resume(journal=journal, workdir=tmp_path / "work", answer="4321")
    assert session.status is Status.DONE, session.message
    assert session.final_results["output"] == "in" and len(session.steps) == 1
    (below,) = session.children.values()
    assert "4321" in below.steps[0]["action"]["observation"] and len(below.steps) == 2
