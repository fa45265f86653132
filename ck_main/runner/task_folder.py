"""The folder of a task: its lock, and the folders of earlier attempts.

An attempt has its journal and `work/`, the working directory of the task's code. Files of an
earlier attempt move to `attempt-1/`, `attempt-2/`, ... With several tries each try has its own
folder, `try-1/`, `try-2/`, ...
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ck_pro.journal import JOURNAL_FILES, WORK_FOLDER, is_journal

"""Name of the working directory in an attempt's folder."""
LOCK_FILE = "lock"


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Lock a task's folder against other processes; yield False if another one has the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def attempt_files(folder: Path) -> list[str]:
    """Return the names of an attempt's files in its folder."""
    return [n for n in (*JOURNAL_FILES, WORK_FOLDER) if (folder / n).exists()]


def tries_in(folder: Path, first: int = 1) -> list[str]:
    """Return the names of a task's try folders, from number `first` on."""
    names = [p.name for p in folder.glob("try-*")]
    return sorted(n for n in names if n[4:].isdigit() and int(n[4:]) >= first)


def set_aside(folder: Path, names: Sequence[str]) -> Path | None:
    """Move files and folders to the next free `attempt-N` and return it; None without names."""
    if not names:
        return None
    number = 1
    while (folder / f"attempt-{number}").exists():
        number += 1
    aside = folder / f"attempt-{number}"
    aside.mkdir()
    for name in names:
        (folder / name).rename(aside / name)
    return aside


def attempts_in(folder: Path) -> int:
    """Count the attempts in a folder."""
    return sum(1 for _ in folder.glob("attempt-*")) + is_journal(folder)
