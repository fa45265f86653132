"""Agents in a real browser: `WebAgent` reads pages as text, `ComputerAgent` sees screenshots.

See docs/web_agent.md and docs/computer.md. The public names load on first use.

Rooms, in import order: a room imports only rooms listed before it.

    page      reads the text of a page. Pure
    actions   the browser actions, one declaration each, and their action strings. Pure
    browser   a leased browser: settings, client, server process, files
    desktop   programs on a private X display, as a `Computer`
    sandbox   SandboxManager: a sandbox for several runs
    e2b_sandboxes  virtual machines of e2b, for SandboxManager
    env       WebEnv: one browser as an environment
    prompts   prompts of both agents
    tools     the web agent's functions
    agent     WebAgent
    computer  ComputerAgent
    main      python -m ck_web.main
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ck_web.actions import PREDEFINED_WEB_ACTIONS
    from ck_web.agent import WebAgent
    from ck_web.browser.config import WebEnvConfig
    from ck_web.computer import BrowserComputer, ComputerAgent, ComputerEnv
    from ck_web.desktop import DesktopComputer, DesktopConfig
    from ck_web.env import WebEnv
    from ck_web.page.state import WebState

_MODULE_OF = {
    "PREDEFINED_WEB_ACTIONS": "actions",
    "BrowserComputer": "computer",
    "ComputerAgent": "computer",
    "ComputerEnv": "computer",
    "DesktopComputer": "desktop",
    "DesktopConfig": "desktop",
    "WebAgent": "agent",
    "WebEnv": "env",
    "WebEnvConfig": "browser.config",
    "WebState": "page.state",
}

__all__ = [
    "PREDEFINED_WEB_ACTIONS",
    "BrowserComputer",
    "ComputerAgent",
    "ComputerEnv",
    "DesktopComputer",
    "DesktopConfig",
    "WebAgent",
    "WebEnv",
    "WebEnvConfig",
    "WebState",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'ck_web' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ck_web.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
