"""The web agent: a `MultiStepAgent` that acts in a real browser. See docs/web_agent.md."""

from ck_web.actions import PREDEFINED_WEB_ACTIONS
from ck_web.agent import WebAgent
from ck_web.config import WebEnvConfig
from ck_web.env import WebEnv
from ck_web.state import WebState

__all__ = ["PREDEFINED_WEB_ACTIONS", "WebAgent", "WebEnv", "WebEnvConfig", "WebState"]
