"""Invalid settings and arguments raise before a run starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code

from ck_pro import AskLLMTool, MultiStepAgent, TemplatedString
from ck_pro.agent import run_end
from ck_pro.exceptions import ConfigError, InputError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"executor": {"timeout": 0}}, r"executor.timeout: Input should be greater than 0"),
        ({"executor": {"memory_mb": -1}}, r"executor.memory_mb: Input should be greater than 0"),
        ({"templates": {"acton": "agent_action"}}, "no phase 'acton'; did you mean 'action'"),
        ({"templates": {"action": None}}, "agent.templates: the phase 'action' needs a template"),
        ({"person": "me"}, "MultiStepAgent.person: not an object with `answer`"),
        ({"approver": 3}, "3 is not an approver: give a function, a dict of rules"),
        ({"tools": [3]}, "3 is not a tool"),
        ({"tools": [{"name": "serch"}]}, "is not a tool"),
        ({"sub_agents": [["a"]]}, "is not a tool"),
        ({"tools": ["zzz"]}, "no attribute or tool 'zzz'; known are: run_command, "),
        (
            {"tools": ["run_comand"]},
            "no attribute or tool 'run_comand'; did you mean 'run_command'",
        ),
        ({"active_functions": ["x"], "tools": ["run_command"]}, "no function 'x'; known are: run_"),
        ({"executor": {"readable": ["/nope/x"]}}, r"agent.executor: readable: '/nope/x' does not"),
        ({"executor": {"require_isolation": "x"}}, "agent.executor: require_isolation: unknown x"),
    ],
)
def test_invalid_settings_raise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MultiStepAgent(**settings).check()


def test_a_mistyped_tool_of_the_agent_itself_is_suggested() -> None:
    class Asking(MultiStepAgent):
        ask_llm: AskLLMTool = AskLLMTool()
        tools = ["ask_lm"]

    with pytest.raises(ConfigError, match="no attribute or tool 'ask_lm'; did you mean 'ask_llm'"):
        Asking().check()


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_working_directory_that_cannot_be_created_raises(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file.*: cannot create this folder: "):
        agent().run("t", workdir=tmp_path / "file" / below)


def test_a_template_with_a_wrong_name_ends_the_run_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(run_end._log, "error", lambda *said, **more: logged.append(said))
    made = agent().updated({"templates": {"action": TemplatedString("{taskk}", name="mine")}})
    session = made.run("t")
    assert session.message == "template 'mine': the value 'taskk' is missing"
    assert not logged


def test_an_agent_may_have_a_custom_phase() -> None:
    MultiStepAgent(templates={"summary": "agent_end"}).check()


def test_an_agent_as_its_own_sub_agent_raises() -> None:
    inner = MultiStepAgent(name="inner")
    outer = MultiStepAgent(name="outer", sub_agents=[inner])
    inner.sub_agents = [outer]
    with pytest.raises(ConfigError, match=r"its own sub-agent \(outer > inner > outer\)"):
        outer.check()


@pytest.mark.worker
def test_a_task_is_converted_to_text_and_none_raises() -> None:
    assert agent(code("stop('x')")).run(42).task == "42"  # type: ignore[arg-type]
    with pytest.raises(InputError, match="task is missing"):
        agent().run(None)  # type: ignore[arg-type]


def test_arguments_of_a_wrong_type_raise(tmp_path: Path) -> None:
    for wrong in ({"journal": str(tmp_path)}, {"journal": tmp_path}, {"budget": 5}):
        with pytest.raises(InputError, match=r"is not a (Journal|Budget)"):
            agent().run("t", **wrong)
        with pytest.raises(InputError, match=r"is not a (Journal|Budget)"):
            agent().resume(**wrong)
