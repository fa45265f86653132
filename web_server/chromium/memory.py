"""Memory of the server, including Chromium and all other child processes."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

_FRESH_SECONDS = 2.0


def process_tree(root: int) -> list[int]:
    """Return the ids of a process and its descendants; only the process itself without /proc."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        parents.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(parents.get(pid, []))
    return found


def tree_bytes(root: int | None = None) -> int:
    """Return the memory of a process tree in bytes, shared pages counted once (PSS); 0 if unknown.

    Args:
        root: the top process; by default this one.
    """
    return sum(map(process_bytes, process_tree(os.getpid() if root is None else root)))


def process_bytes(pid: int) -> int:
    """Return the memory of a process in bytes, with its part of shared pages; 0 if unknown."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended, or this is not Linux
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


class TreeMemory:
    """Memory of this process tree, cached for two seconds.

    A measurement is expensive: the kernel walks the page tables of all Chromium processes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured = float("-inf")
        self._bytes = 0

    def bytes(self) -> int:
        """The result of `tree_bytes`, at most two seconds old. Thread-safe."""
        with self._lock:
            if time.monotonic() - self._measured > _FRESH_SECONDS:
                self._bytes = tree_bytes()
                self._measured = time.monotonic()
            return self._bytes
