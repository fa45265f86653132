"""Which places of the file system a worker may see."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from .zygotes import package_folders


def session_places(workdir: Path) -> dict[str, Any]:
    """Say where a worker works, what it must not see, and what it sees all the same.

    Returns:
        `workdir`; `hide`: folders to hide (home directories, `/tmp`, ...); `show`: folders to show
        read-only inside hidden ones (the Python installation).
    """
    hide = _hidden(os.environ.get("HOME", ""))
    return {"workdir": str(workdir), "hide": hide, "show": _shown()}


@functools.lru_cache(maxsize=8)
def _hidden(home: str) -> list[str]:
    places = {"/root", "/home", "/Users", "/tmp", "/var/tmp", "/run", "/dev", home}
    try:
        import pwd

        places.add(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        pass
    found = {os.path.realpath(place) for place in places if place}
    return sorted(place for place in found if place != "/" and Path(place).is_dir())


@functools.lru_cache(maxsize=1)
def _shown() -> list[str]:
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    places.update(package_folders())
    places.update(
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    )
    places.add(os.path.dirname(os.path.realpath(sys.executable)))  # noqa: PTH120
    found = {os.path.realpath(place) for place in places if place}
    return sorted(place for place in found if place != "/" and Path(place).is_dir())
