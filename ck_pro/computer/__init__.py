"""Computers that an agent uses by screenshots, mouse and keyboard.

May import: `events`, `exceptions`, `environment` and `executor`; Pillow is imported on first use.
Other rooms use `Computer` (the protocol), `ScreenEnv` (any computer as an environment)
and `ScreenView` (how a screen is shown to a model).
"""

from __future__ import annotations

from ck_pro.computer.environment import ScreenEnv
from ck_pro.computer.protocol import Computer
from ck_pro.computer.view import MAX_SIDE, ScreenView, Shown, picture_size

__all__ = ["MAX_SIDE", "Computer", "ScreenEnv", "ScreenView", "Shown", "picture_size"]
