"""What the kill campaign kills: the processes below a runner, found by /proc (Linux)."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TARGETS = ("runner", "worker", "zygote", "chromium", "renderer", "server")
WEIGHTS = (6, 8, 3, 5, 4, 4)
"""Of 30 kills."""
STOPS = {"stop": (signal.SIGTERM,), "stop-twice": (signal.SIGINT, signal.SIGTERM)}
"""What tells a runner to stop: once, it finishes what it does; twice, it leaves at once."""


@dataclass(frozen=True)
class Process:
    """A living process: its id, its parent's, and its command line."""

    pid: int
    parent: int
    command: str


def living() -> dict[int, Process]:
    """All processes that are no zombies, by id."""
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
            continue  # it ended meanwhile
        if fields[0] not in "ZX":
            pid = int(folder.name)
            found[pid] = Process(pid, int(fields[1]), command.strip())
    return found


def below(pid: int) -> list[Process]:
    """The living descendants of a process, parents first."""
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
    """Ids of the processes of a kind that a runner has now."""
    if target == "runner" or target in STOPS:
        return [runner]
    family = below(runner)
    zygotes = {p.pid for p in family if p.parent == runner and "_ck_worker" in p.command}
    is_chromium: Callable[[Process], bool] = lambda p: "--user-data-dir" in p.command  # noqa: E731
    match target:
        case "zygote":
            return sorted(zygotes)
        case "worker":
            inside = [p.pid for z in zygotes for p in below(z)]
            return sorted(inside)
        case "server":
            return [p.pid for p in family if "server_child.py" in p.command]
        case "chromium":
            return [p.pid for p in family if is_chromium(p) and "--type=" not in p.command]
    return [p.pid for p in family if "--type=" in p.command]


def choose(count: int, stops: int, random_: random.Random) -> list[str]:
    """What is killed and stopped in a campaign, in order; each kind at least once if it can be.

    Args:
        count: of kills.
        stops: of signals to stop.
        random_: chooses.
    """
    kinds = [t for t, w in zip(TARGETS, WEIGHTS, strict=True) for _ in range(w)]
    chosen = list(TARGETS[:count]) if count >= len(TARGETS) else []
    pool = random_.sample(kinds, len(kinds))
    while len(chosen) < count:
        chosen.append(pool[len(chosen) % len(pool)])
    chosen += [tuple(STOPS)[n % len(STOPS)] for n in range(stops)]
    random_.shuffle(chosen)
    return chosen


def kill_one(target: str, runner: int, random_: random.Random) -> int | None:
    """Kill -9 a random process of a kind, or signal a stop; its id, or None if there is none."""
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
