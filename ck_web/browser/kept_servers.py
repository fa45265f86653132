"""Token files of browser servers that keep running after the command that started them.

A server keeps the pages of runs that wait for a person. The journal of such a run has the server's
address but not its token, because journals are shared. The token is in a file that only this user
can read. The server removes the file when it exits.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path


def write(url: str, token: str, pid: int) -> Path | None:
    """Write the token file of a server.

    Args:
        url: its address.
        token: its bearer token.
        pid: its process id.

    Returns:
        The file; None without a private folder for it.
    """
    folder = _folder()
    if folder is None:
        return None
    path = _path(folder, url)
    try:
        _prune(folder)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"token": token, "pid": pid}, file)
    except OSError:
        return None
    return path


def token_of(url: str) -> str:
    """Return the token of the kept server at an address; empty if there is none."""
    folder = _folder()
    facts = _read(_path(folder, url)) if folder is not None else {}
    return str(facts.get("token") or "")


def _path(folder: Path, url: str) -> Path:
    return folder / (re.sub(r"[^\w.-]+", "_", url) + ".json")


def _folder() -> Path | None:
    """Return a folder that only this user can read; None if another user created it."""
    folder = Path(tempfile.gettempdir()) / f"ck-pro-servers-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return None
    private = facts.st_uid == os.getuid() and not facts.st_mode & 0o077 and folder.is_dir()
    return folder if private and not folder.is_symlink() else None


def _read(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _prune(folder: Path) -> None:
    """Remove the files of servers that were killed."""
    for path in folder.glob("*.json"):
        pid = _read(path).get("pid")
        try:
            if isinstance(pid, int) and pid > 0:
                os.kill(pid, 0)
                continue
        except PermissionError:
            continue
        except OSError:
            pass
        path.unlink(missing_ok=True)
