"""Invalid settings and arguments raise before a run starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code

from ck_pro import MultiStepAgent
from ck_pro.exceptions import ConfigError, InputError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"executor": {"timeout": 0}}, r"executor.timeout: Input should be greater than 0"),
        ({"executor": {"memory_mb": -1}}, r"executor.memory_mb: Input should be greater than 0"),
        ({"templates": {"acton": "agent_action"}}, "no phase 'acton'; did you mean 'action'"),
        ({"templates": {"action": None}}, "agent.templates: the phase 'action' needs a template"),
        ({"person": "me"}, "MultiStepAgent.person: not an object with `answer`"),
        ({"approver": 3}, "neither an object with `review` nor a dict of rules"),
        ({"tools": [3]}, "3 is not a tool"),
        ({"tools": [{"name": "serch"}]}, "is not a tool"),
        ({"sub_agents": [["a"]]}, "is not a tool"),
        ({"tools": ["serch"]}, "no attribute or tool 'serch'"),
    ],
)
def test_invalid_settings_raise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MultiStepAgent(**settings).check()


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
