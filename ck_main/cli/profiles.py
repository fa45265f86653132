"""Profiles: named settings for one kind of model. `--profile NAME` selects one.

To add a profile, add an entry to `PROFILES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ck_pro.agent import MultiStepAgent
from ck_pro.config import iter_nested
from ck_pro.settings import merge_settings


@dataclass(frozen=True)
class Profile:
    """Settings for one kind of model. A settings file and the options of the command override them.

    Args:
        meaning: the models that it is for, for `--help`.
        model: settings of the main agent's model; the other models get those that they do not set.
        agents: settings of every agent.
        named: further settings by the name of the agent.
    """

    meaning: str
    model: Mapping[str, Any] = field(default_factory=dict)
    agents: Mapping[str, Any] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


PROFILES: Mapping[str, Profile] = {
    "small": Profile(
        meaning="local models of about 1 to 8 billion parameters",
        model={
            "max_prompt_tokens": 6000,
            "max_reply_tokens": 400,
            "call_kwargs": {"temperature": 0, "stop": ["\nObservation of step", "\n```\n"]},
        },
        agents={
            "planning": "off",
            "history_chars": 6000,
            "observation_chars": 1500,
            "stuck_limit": 4,
        },
        named={
            "ck_agent": {
                "active_functions": ["web_agent", "stop"],
                "templates": {"action": "ck_small"},
            },
            "web_agent": {
                "templates": {"action": "web_small"},
                "active_functions": [
                    *("click", "type", "goto", "goback", "read", "find", "select", "stop")
                ],
                "web_env": {"max_page_chars": 5000, "evaluate": False},
            },
        },
    ),
}


def profile_settings(name: str, agent: MultiStepAgent) -> dict[str, Any]:
    """Return the settings of a profile for an agent and its sub-agents.

    Args:
        name: a key of `PROFILES`.
        agent: the agent, with default settings.
    """
    profile = PROFILES[name]
    settings: dict[str, Any] = {"model": dict(profile.model)}
    for path, one in [((), agent), *iter_nested(agent, MultiStepAgent)]:
        for chosen in (profile.agents, profile.named.get(one.name, {})):
            settings = merge_settings(settings, nested(path, dict(chosen)))
    return settings


def nested(names: tuple[str, ...] | list[str], value: Any) -> dict[str, Any]:
    """Return a setting as nested dicts: its value below the names that lead to it."""
    for name in reversed(names):
        value = {name: value}
    return cast(dict[str, Any], value)
