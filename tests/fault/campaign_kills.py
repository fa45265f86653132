"""Find and kill the processes below a runner, through /proc (Linux)."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# the runner, a worker of code, what the workers are forked from; the browser server, Playwright's
# driver (node) in it, the janitor of its folder; Chromium, its renderers, its other processes
TARGETS = (
    *("runner", "worker", "zygote", "server", "driver", "janitor"),
    *("chromium", "renderer", "helper"),
)
WEIGHTS = (7, 6, 2, 4, 2, 2, 3, 2, 2)
"""Shares among 30 kills."""
STOPS = {"stop": (signal.SIGTERM,), "stop-twice": (signal.SIGINT, signal.SIGTERM)}
"""Stop signals. After one, the runner finishes its steps; after two, it exits immediately."""


@dataclass(frozen=True)
class Process:
    """A living process: its id, its parent's, and its command line."""

    pid: int
    parent: int
    command: str


def living() -> dict[int, Process]:
    """Return all processes except zombies, by id."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            continue  # it has ended
        if fields[0] not in "ZX":
            pid = int(folder.name)
            found[pid] = Process(pid, int(fields[1]), command.strip())
    return found


def below(pid: int) -> list[Process]:
    """Return the living descendants of a process, parents first."""
    processes = living()
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)

    def walk(parent: int) -> Iterator[Process]:
        for child in children.get(parent, ()):
            yield child
            yield from walk(child.pid)

    return list(walk(pid))


def candidates(target: str, runner: int) -> list[int]:
    """Return the ids of a runner's processes of one kind."""
    if target == "runner" or target in STOPS:
        return [runner]
    family = below(runner)
    zygotes = {p.pid for p in family if p.parent == runner and "_ck_worker" in p.command}
    if target == "zygote":
        return sorted(zygotes)
    if target == "worker":
        return sorted(p.pid for z in zygotes for p in below(z))
    return [p.pid for p in family if _IS[target](p.command)]


_IS: dict[str, Callable[[str], bool]] = {
    "server": lambda command: "server_child.py" in command,
    "driver": lambda command: " run-driver" in command,
    "janitor": lambda command: "ck-web-janitor" in command,
    "chromium": lambda command: "--user-data-dir" in command and "--type=" not in command,
    "renderer": lambda command: "--type=renderer" in command,
    # Chromium forks its renderers from this process (with `--only`)
    "nursery": lambda command: "--type=zygote" in command and "--no-zygote" not in command,
    "helper": lambda command: "--type=" in command and "--type=renderer" not in command,
}


def choose(count: int, stops: int, random_: random.Random) -> list[str]:
    """Choose the kills and stops of a campaign, in order; each kind at least once if possible.

    Args:
        count: number of kills.
        stops: number of stop signals.
        random_: source of choices.
    """
    chosen: list[str] = list(TARGETS) if count >= len(TARGETS) else []
    more = [t for t, w in zip(TARGETS, WEIGHTS, strict=True) for _ in range(w - bool(chosen))]
    while len(chosen) < count:
        chosen += random_.sample(more, len(more))[: count - len(chosen)]
    chosen += [tuple(STOPS)[n % len(STOPS)] for n in range(stops)]
    random_.shuffle(chosen)
    return chosen


def kill_one(target: str, runner: int, random_: random.Random) -> int | None:
    """Kill -9 a random process of one kind, or signal a stop; return its id, or None."""
    found = candidates(target, runner)
    if not found:
        return None
    pid = random_.choice(found)
    try:
        for number in STOPS.get(target, (signal.SIGKILL,)):
            os.kill(pid, number)
    except ProcessLookupError:
        return None
    return pid
