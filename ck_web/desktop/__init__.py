"""A desktop on a private X display, driven by mouse and keyboard.

May import: `ck_pro`. It needs the programs Xvfb and xdotool (Debian packages `xvfb`, `xdotool`).
Other rooms use `DesktopComputer` and `DesktopConfig`.
"""

from __future__ import annotations

from ck_web.desktop.computer import DesktopComputer
from ck_web.desktop.config import DesktopConfig, missing_programs

__all__ = ["DesktopComputer", "DesktopConfig", "missing_programs"]
