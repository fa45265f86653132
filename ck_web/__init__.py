"""Agents in a real browser: `WebAgent` by text (docs/web_agent.md), `ComputerAgent` by what is seen
(docs/computer.md)."""

from ck_web.actions import PREDEFINED_WEB_ACTIONS
from ck_web.agent import WebAgent
from ck_web.computer import ComputerAgent, ComputerEnv
from ck_web.config import WebEnvConfig
from ck_web.env import WebEnv
from ck_web.state import WebState

__all__ = [
    "PREDEFINED_WEB_ACTIONS",
    "ComputerAgent",
    "ComputerEnv",
    "WebAgent",
    "WebEnv",
    "WebEnvConfig",
    "WebState",
]
