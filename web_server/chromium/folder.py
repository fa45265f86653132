"""The server's folder of temporary files, which goes with the server, however that ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "ck-web-server-"
_LONGEST_BASE = 25
_LOCK = "lock"
# What a killed server leaves to its janitor: a shell, being some hundred kilobytes. It waits until
# the server's end of its standard input closes; a line that comes before says that all is done.
# A dying Chromium may go on writing, and make its folders anew, so the folder has to stay away.
_JANITOR = """
trap '' INT TERM HUP
if read -r line; then exit 0; fi
tries=0
away=0
while [ $away -lt 30 ] && [ $tries -lt 600 ]; do
    if [ -e "$1" ]; then
        rm -rf -- "$1" 2>/dev/null
        away=0
    else
        away=$((away + 1))
    fi
    tries=$((tries + 1))
    sleep 0.1 2>/dev/null || sleep 1
done
"""
_JANITOR_SECONDS = 10.0


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
        # Locked for as long as the server lives, whatever process ids mean where others look.
        self._lock = (self.path / _LOCK).open("wb")
        with suppress(OSError):  # a file system without locks: then nobody gets this one
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        """Remove it and all that is in it, now; what cannot be removed is left to the janitor."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
        if self._janitor is None:
            return
        assert self._janitor.stdin is not None
        with suppress(OSError):  # the janitor was killed
            if not self.path.exists():
                self._janitor.stdin.write(b"done\n")
            self._janitor.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._janitor.wait(_JANITOR_SECONDS)


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
    for folder in base.glob(f"{_PREFIX}*-*"):
        if _abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _abandoned(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except FileNotFoundError:  # it is being made, or half removed
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        return owner.isdecimal() and not _alive(int(owner))
    except OSError:  # its server holds it, or another person's
        return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
