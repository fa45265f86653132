"""`Agent`: goals, actions, memory and environment on the loop of every agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ck_pro import (
    Agent,
    AgentSession,
    Environment,
    Goal,
    Journal,
    Memory,
    MultiStepAgent,
    StopTool,
    ToolRegistry,
)
from ck_pro.events import Observation, RecallAction
from ck_pro.exceptions import ConfigError, InputError, ToolError
from ck_pro.journal import read_events
from ck_pro.language import CodeLanguage, text_of
from ck_pro.session import Status, sessions_from_events
from ck_pro.testing import FakeEnvironment, ScriptedLLM


def call(tool: str, **args: Any) -> str:
    return json.dumps({"tool": tool, "args": args})


def double(n: int) -> int:
    """Twice a number."""
    if n < 0:
        raise ToolError("only from 0")
    return 2 * n


class Counting(Environment):
    """Counts the calls that pass, and refuses one."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.closed = 0

    def observe(self) -> Observation:
        return Observation(text=f"{len(self.seen)} calls so far")

    def execute_action(self, tool: Any, arguments: Mapping[str, Any]) -> Any:
        self.seen.append((tool.name, dict(arguments)))
        if arguments.get("n") == 13:
            raise ToolError("not that number")
        return f"<{tool.execute(**arguments)}>"

    def close(self) -> None:
        self.closed += 1


def observed(session: AgentSession) -> list[Any]:
    return [step["action"]["observation"] for step in session.steps]


def prompts(agent: MultiStepAgent) -> list[str]:
    assert isinstance(agent.model, ScriptedLLM)
    return ["\n".join(text_of(m["content"]) for m in c.messages) for c in agent.model.calls]


def test_an_agent_needs_only_its_components() -> None:
    registry = ToolRegistry([double, StopTool()])
    agent = Agent(
        [
            Goal("Be exact."),
            Goal(priority=-1, name="Be quick", description="few calls"),
            "Be kind.",
        ],
        "function_calls",
        registry,
        ScriptedLLM([call("double", n=4), call("stop", output="8")]),
        Counting(),
    )
    session = agent.run("Twice four?")
    assert session.final_results["output"] == "8" and session.status is Status.DONE
    assert "# Goals\n- Be quick: few calls\n- Be exact.\n- Be kind.\n" in prompts(agent)[0]


def test_calls_pass_through_the_environment_and_prompts_show_it(tmp_path: Path) -> None:
    office = Counting()
    replies = [
        call("double", n=4),
        call("double", n=13),
        call("double", n=-1),
        call("stop", output="x"),
    ]
    agent = Agent(
        actions=[double, StopTool()], generate_response=ScriptedLLM(replies), environment=office
    )
    with Journal(tmp_path) as journal:
        session = agent.run("t", journal=journal)
    assert office.seen == [("double", {"n": 4}), ("double", {"n": 13}), ("double", {"n": -1})]
    assert observed(session)[:3] == ["<8>", "ToolError: not that number", "ToolError: only from 0"]
    assert "# Environment\n```\n0 calls so far" in prompts(agent)[0]
    assert "1 calls so far" in prompts(agent)[1]
    assert office.closed == 0  # other runs may share it
    results = [e["data"].get("result") for e in read_events(tmp_path) if e["kind"] == "call"]
    assert results[0] == "<8>"


def test_an_environment_made_for_the_run_ends_with_it() -> None:
    made: list[Counting] = []

    def new() -> Environment:
        made.append(Counting())
        return made[-1]

    agent = Agent(actions=[double], generate_response=lambda p: "done", environment=new)
    agent.run("a")
    agent.run("b")
    assert [one.closed for one in made] == [1, 1]


@pytest.mark.worker
def test_code_calls_the_same_environment() -> None:
    office = Counting()
    agent = Agent(
        language=CodeLanguage(),
        actions=[double, StopTool()],
        generate_response=lambda prompt: "```python\nstop(double(2) + double(3))\n```",
        environment=office,
    )
    assert agent.run("t").final_results["output"] == "<4><6>"
    assert [name for name, _ in office.seen] == ["double", "double"]


def test_an_environment_does_only_what_it_defines() -> None:
    nothing = Environment()
    assert str(nothing.observe()) == ""
    assert "no action of kind 'recall'" in str(nothing.execute(RecallAction(query="x")))
    with pytest.raises(ConfigError, match="neither an Environment nor a function"):
        Agent(environment=3)  # type: ignore[arg-type]
    agent = Agent(generate_response=lambda p: "x", environment=lambda: 3)  # type: ignore[arg-type,return-value]
    assert "the function returned 3" in agent.run("t").message


def test_settings_of_every_agent_work() -> None:
    model = ScriptedLLM([call("double", n=1), call("double", n=2)])
    agent = Agent(actions=[double], generate_response=model, max_steps=1, name="doubler")
    session = agent.run("t")
    assert (session.agent, str(session.stop_reason)) == ("doubler", "steps")
    changed = agent.updated({"max_steps": 2, "goals": ["Count."]})
    assert isinstance(changed, Agent) and changed.goals == [Goal("Count.")]
    assert [f.name for f in changed.functions()] == ["double"]
    assert Agent(goals=[{"name": "A", "description": "b"}]).goals == [Goal("A", "b")]  # type: ignore[list-item]


def test_a_session_is_the_memory_of_the_next_run(tmp_path: Path) -> None:
    model = ScriptedLLM([call("double", n=4), "It is 8.", "As before, 8.", "Third."])
    agent = Agent(actions=[double], generate_response=model)
    first = agent.run("Twice four?")
    with Journal(tmp_path) as journal:
        second = agent.run("And again?", memory=first, journal=journal)
    text = prompts(agent)[2]
    assert text.index("# Task\nAnd again?") < text.index("# Memory of earlier runs")
    assert "User: Twice four?\nAgent: " in text
    assert "double(n=4)\nResult: 8\nAgent: It is 8.\n```" in text
    assert second.id != first.id and len(second.steps) == 1
    (rebuilt,) = sessions_from_events(read_events(tmp_path)).values()
    assert json.dumps(rebuilt.to_dict()) == json.dumps(second.to_dict())
    agent.run("Now?", memory=AgentSession.from_dict(rebuilt.to_dict()))
    assert "User: Twice four?" in prompts(agent)[3] and "As before, 8." in prompts(agent)[3]


def test_the_memory_of_a_chain_of_runs_is_bounded() -> None:
    agent = Agent(generate_response=lambda prompt: "x" * 20_000)
    session = agent.run("t0")
    for number in range(1, 9):
        session = agent.run(f"t{number}", memory=session)
    assert sum(len(entry["content"]) for entry in session.info["memory"]) <= 120_000
    assert session.info["memory"][-2] == {"type": "user", "content": "t7"}


def test_a_memory_can_be_made_from_texts_and_is_bounded() -> None:
    memory = Memory([{"type": "user", "content": "My name is Ada."}])
    memory.add_memory({"type": "environment", "content": "x" * 50_000})
    memory.add_memory({"type": "assistant", "content": "Noted."})
    assert [m["type"] for m in memory.get_memories(2)] == ["environment", "assistant"]
    assert memory.get_memories(0) == [] and len(memory) == 3
    text = memory.text(8000)
    assert text.startswith("User: My name is Ada.\nResult: xxx") and len(text) < 3000
    assert memory.text(30) == "(Earlier entries omitted.)\nAgent: Noted."
    with pytest.raises(InputError, match="is not an entry"):
        memory.add_memory({"role": "user"})
    agent = Agent(generate_response=ScriptedLLM(["Ada."]))
    agent.run("Who am I?", memory=memory)
    assert "My name is Ada." in prompts(agent)[0]


def test_concurrent_runs_share_one_environment() -> None:
    office = FakeEnvironment(["calm"])
    agent = Agent(actions=[double], generate_response=lambda p: "ok", environment=office)
    sessions: list[AgentSession] = []
    threads = [threading.Thread(target=lambda: sessions.append(agent.run("t"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [s.status for s in sessions] == [Status.DONE] * 3 and office.closed == 0
