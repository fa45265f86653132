"""The server's folder of temporary files, which goes with the server, however that ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_PREFIX = "ck-web-server-"
_LONGEST_BASE = 28
# What a killed server leaves to its janitor: a shell, being some hundred kilobytes. It waits until
# the server's end of its standard input closes. Chromium may write for a moment longer.
_JANITOR = """
trap '' INT TERM HUP
read -r line
tries=0
while [ -e "$1" ] && [ $tries -lt 100 ]; do
    rm -rf -- "$1" 2>/dev/null
    tries=$((tries + 1))
    [ ! -e "$1" ] || sleep 0.1
done
"""


class ServerFolder:
    """A new folder for one server, with a process that removes it if the server is killed.

    Folders of servers whose janitor was killed too are removed by the next server.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self) -> None:
        base = folder_base()
        sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base))
        self._janitor: subprocess.Popen[bytes] | None = None
        try:
            self._janitor = subprocess.Popen(
                ["/bin/sh", "-c", _JANITOR, "ck-web-janitor", str(self.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,  # no signal for the server's group is meant for it
            )
        except OSError:
            pass  # no shell here: then the next server removes what a kill leaves

    def remove(self) -> None:
        """Remove it and all that is in it, now."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._janitor is not None:
            assert self._janitor.stdin is not None
            self._janitor.stdin.close()
            self._janitor.wait()


def folder_base() -> Path:
    """Where the folder is made: the usual place for temporary files, if its path is short.

    Chromium makes a socket in there, and the path of a socket may have some hundred bytes only.
    """
    usual = tempfile.gettempdir()
    short = "/tmp"
    if len(os.fsencode(usual)) > _LONGEST_BASE and os.access(short, os.W_OK | os.X_OK):
        return Path(short)
    return Path(usual)


def sweep(base: Path) -> None:
    """Remove the folders in `base` whose servers are gone."""
    for folder in base.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
