"""`DesktopConfig`: the settings of a desktop for an agent."""

from __future__ import annotations

import shlex
import shutil
from typing import Annotated

from pydantic import BeforeValidator, Field

from ck_pro.config import KwargsInitializable

PROGRAMS = ("Xvfb", "xdotool")


def missing_programs() -> str:
    """Return why no desktop can start here, in one line; "" if one can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if not missing:
        return ""
    packages = " ".join(name.lower() for name in missing)
    return f"a desktop needs {' and '.join(missing)}: apt-get install {packages}"


def _commands(value: object) -> object:
    return [value] if isinstance(value, str) and value.strip() else value or []


_Side = Annotated[int, Field(ge=200, le=4096)]


class DesktopConfig(KwargsInitializable):
    """Settings of a desktop for an agent. A string sets `programs`."""

    string_setting = "programs"

    programs: Annotated[list[str], BeforeValidator(_commands)] = []
    """Command lines of the programs to start, in order; one command line may be given as a text.
    Without a window manager among them, keys go to the window below the pointer."""
    width: _Side = 1280
    height: _Side = 720
    """Size of the screen in pixels."""
    start_seconds: Annotated[float, Field(gt=0, le=300)] = 10.0
    """How long the programs may take to show something."""
    settle_seconds: Annotated[float, Field(gt=0, le=60)] = 1.0
    """How long the screen may change after an action before it is observed."""
    suspended_seconds: Annotated[float, Field(ge=0, le=604_800)] = 1800.0
    """How long the desktop of a suspended run stays open."""
    environment_variables: dict[str, str] = {}
    """Environment variables of the programs, besides PATH, HOME, LANG, DISPLAY and XAUTHORITY."""

    def command_lines(self) -> list[list[str]]:
        """Return each program as a list of words."""
        return [shlex.split(line) for line in self.programs]
