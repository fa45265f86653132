"""How much memory the server takes, Chromium and all helper processes included."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

_FRESH_SECONDS = 2.0


def process_tree(root: int) -> list[int]:
    """Ids of a process and all its descendants; the process alone where /proc is missing."""
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
    """Memory of a process tree in bytes, shared pages counted once (PSS); 0 if unknown.

    Args:
        root: the process at the top; ours by default.
    """
    total = 0
    for pid in process_tree(os.getpid() if root is None else root):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total


class TreeMemory:
    """Memory of our process tree, measured again only after a while, however often it is asked.

    Each measurement has the kernel walk the page tables of all processes of Chromium.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured = float("-inf")
        self._bytes = 0

    def bytes(self) -> int:
        """As `tree_bytes`, at most two seconds old. From any thread."""
        with self._lock:
            if time.monotonic() - self._measured > _FRESH_SECONDS:
                self._bytes = tree_bytes()
                self._measured = time.monotonic()
            return self._bytes
