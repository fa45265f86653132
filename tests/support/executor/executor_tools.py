"""Helpers for tests of the executor: single layers, and processes of workers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ck_pro.executor import CodeExecutor

TRY = """
def attempt(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "YES"
"""
"""Code that returns the type of an error, or "YES"."""

FILL_FOLDER = """
import os, time
piece = os.urandom(1 << 20)
for i in range(200):
    with open(f'{kind}{i}', 'wb') as file:
        file.write(piece)
        if kind == 'gone':
            os.unlink(file.name)
            keep.append(os.dup(file.fileno()))
time.sleep(600)
"""
"""Code that writes 200 MB; it needs `kind` ("kept", or "gone" for deleted files) and `keep`."""


def add_two(x: int = 0) -> int:
    """Add two."""
    return x + 2


def with_layers(*layers: str) -> type[CodeExecutor]:
    """Return an executor class that applies only these layers."""
    return type("WithLayers", (CodeExecutor,), {"layers": layers})


def require_layers(isolation, *layers):
    """Skip the test if one of these layers is missing here."""
    missing = {name: isolation["missing"][name] for name in layers if name in isolation["missing"]}
    if missing:
        pytest.skip(f"missing here: {missing}")


def has_ended(pid: int) -> bool:
    """Wait until a process has ended; return False after 30 s."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def descendants(pid: int) -> set[int]:
    """Return all child processes of a process and of its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return set()
    return {int(child) for child in children}.union(*(descendants(int(c)) for c in children))
