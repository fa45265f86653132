"""The server's folder for temporary files, which is removed however the server ends."""

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
# The janitor is a shell, which takes little memory. It waits until its standard input closes, then
# removes the folder unless it has read a line. An ending Chromium may create its folders again, so
# the janitor checks for three seconds that the folder stays removed.
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
    """A new folder for a server, and a process that removes it if the server is killed.

    If that process is killed as well, the next server removes the folder.

    Raises:
        OSError: the folder cannot be created.
    """

    def __init__(self) -> None:
        base = folder_base()
        sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base))
        # Held while the server lives. Process ids are not enough: a container has its own.
        self._lock = (self.path / _LOCK).open("wb")
        with suppress(OSError):  # no locks here: servers leave such folders alone
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
                start_new_session=True,  # signals to the server's group must not reach it
            )
        except OSError:
            pass  # no shell: the next server removes the folder after a kill

    def remove(self) -> None:
        """Remove the folder. The janitor retries if something cannot be removed."""
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
    """Return the parent of the folder: the usual one for temporary files if its path is short.

    Chromium creates a socket in the folder, and the path of a socket is limited to about 100 bytes.
    """
    usual = tempfile.gettempdir()
    short = "/tmp"
    if len(os.fsencode(usual)) > _LONGEST_BASE and os.access(short, os.W_OK | os.X_OK):
        return Path(short)
    return Path(usual)


def sweep(base: Path) -> None:
    """Remove the folders in `base` whose servers have ended."""
    for folder in base.glob(f"{_PREFIX}*-*"):
        if _abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _abandoned(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except FileNotFoundError:  # being created or removed
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        return owner.isdecimal() and not _alive(int(owner))
    except OSError:  # its server is running, or another user owns it
        return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
