"""Runs for the tests of exports: agents that use a fake computer by screenshots.

The caller runs each agent several times and chooses one result.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sample_runs import data_url, run_tasks

from ck_pro import AgentSession, MultiStepAgent
from ck_pro.events import Action, ComputerObservation
from ck_pro.language import ComputerUseLanguage, FunctionCallingLanguage
from ck_pro.model import CallContext, Reply
from ck_pro.model.backends.responses import tool_calls_of
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tools.computer import ComputerTool

FORMS = ("function", "computer", "computer_use_preview")
"""Forms of the computer tool; see `ComputerUseLanguage`."""
CHECK = {"id": "sc1", "code": "irrelevant_domain", "message": "Look twice."}


class Person(MultiStepAgent):
    """Uses a fake computer, whose screen changes after each action."""

    def init_run(self, session: AgentSession) -> None:
        def respond(action: Action) -> ComputerObservation:
            image = data_url(len(world.actions) + 100)
            said = f"<image> after {action}"
            return ComputerObservation(text=said, image=image, current_url="http://shop.test/")

        world = FakeEnvironment(["a screen"], respond=respond)
        session.run.environment = world


def _act(form: str, *acts: dict[str, Any]) -> Reply:
    """A reply with computer actions in this form."""
    if form == "function":
        made = [
            {"id": f"c{n}", "function": {"name": "computer", "arguments": json.dumps(a)}}
            for n, a in enumerate(acts)
        ]
        return Reply("I look.", tool_calls=[{**m, "type": "function"} for m in made])
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs", "summary": []}]
    for n, act in enumerate(acts):
        wire = {"type": act["action"], **{k: v for k, v in act.items() if k != "action"}}
        items.append({"type": "computer_call", "call_id": f"c{n}", "action": wire})
    items[-1]["pending_safety_checks"] = []
    return Reply("", items=items, tool_calls=[c for i in items for c in tool_calls_of(i)])


def make_agent(form: str, wrong: bool = False) -> MultiStepAgent:
    """A main agent and a `computer_agent`; the second of its three tries answers differently."""
    tries: list[str] = []

    def person(messages: list[dict[str, Any]], context: CallContext) -> Reply:
        if context.step == 0:
            tries.append(context.sid)
            return _act(form, {"action": "click", "x": 3, "y": len(tries)})
        if context.step == 1:
            return _act(form, {"action": "type", "text": "20 + 22"}, {"action": "screenshot"})
        return Reply("43" if len(tries) % 3 == 2 else "42")

    def main(messages: list[dict[str, Any]], context: CallContext) -> Reply:
        if context.step == 0:
            body = {"name": "computer_agent", "arguments": json.dumps({"task": "add them up"})}
            return Reply("", tool_calls=[{"id": "m0", "type": "function", "function": body}])
        return Reply("no idea" if wrong else "42")

    sub = Person(
        name="computer_agent",
        description="Uses a computer.",
        model=ScriptedLLM(replies=person),
        tools=[ComputerTool()],
        language=ComputerUseLanguage(form),  # type: ignore[arg-type]
        sampling={"tries": 3, "choose": "vote"},
    )
    return MultiStepAgent(
        name="ck_agent",
        model=ScriptedLLM(replies=main),
        sub_agents=[sub],
        language=FunctionCallingLanguage(),
    )


def write_runs(folder: Path, form: str) -> list[Path]:
    """Run a task twice, right and wrong; return the files of rows."""
    return [
        run_tasks(make_agent(form, wrong), folder / f"{form}-{name}.jsonl", ["sum"])
        for name, wrong in (("right", False), ("wrong", True))
    ]
