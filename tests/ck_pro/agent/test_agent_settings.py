"""Settings of an agent that cannot be right are refused before a run begins."""

from __future__ import annotations

from typing import Any

import pytest

from ck_pro import MultiStepAgent
from ck_pro.exceptions import ConfigError


@pytest.mark.parametrize(
    ("settings", "told"),
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
def test_what_cannot_be_right(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        MultiStepAgent(**settings).check()


def test_a_phase_of_ones_own() -> None:
    MultiStepAgent(templates={"summary": "agent_end"}).check()


def test_an_agent_below_itself_is_refused() -> None:
    inner = MultiStepAgent(name="inner")
    outer = MultiStepAgent(name="outer", sub_agents=[inner])
    inner.sub_agents = [outer]
    with pytest.raises(ConfigError, match=r"its own sub-agent \(outer > inner > outer\)"):
        outer.check()
