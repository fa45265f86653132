"""Computer use: agents that see screenshots and use mouse and keyboard, in a browser or a desktop.

May import: the rooms above `computer` in `ck_web`, and `ck_pro`.
Other rooms use the names below.
"""

from __future__ import annotations

from ck_web.computer.agent import ComputerAgent
from ck_web.computer.browser import BrowserComputer
from ck_web.computer.browser_actions import browser_action, chord
from ck_web.computer.browser_env import ComputerEnv, elements_at

__all__ = [
    "BrowserComputer",
    "ComputerAgent",
    "ComputerEnv",
    "browser_action",
    "chord",
    "elements_at",
]
