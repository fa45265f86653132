"""The Chromium processes of a server, which share its sessions: one by default."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from playwright.async_api import Browser

from web_server.chromium.engine import Engine


class Engines:
    """Several Chromium processes. Each starts with its first session.

    Args:
        count: how many, at least 1.
        executable: path of Chromium.
        folder: parent of their folders.
        on_lost: called with a Chromium that ended.
    """

    def __init__(
        self, count: int, executable: str, folder: Path, on_lost: Callable[[Browser], None]
    ) -> None:
        starting = asyncio.Lock()
        self._engines = []
        for number in range(count):
            subfolder = folder / f"c{number}"  # short, for the paths of sockets in it
            subfolder.mkdir()
            self._engines.append(Engine(executable, subfolder, on_lost, starting))

    @property
    def crashes(self) -> int:
        """Number of restarts."""
        return sum(engine.crashes for engine in self._engines)

    @property
    def sandbox(self) -> bool:
        """Whether all of them use Chromium's sandbox."""
        return all(engine.sandbox for engine in self._engines)

    def least_used(self, used: Iterable[Engine]) -> Engine:
        """Return the engine with the fewest sessions.

        Args:
            used: the engine of each session.
        """
        counts = Counter(map(id, used))
        return min(self._engines, key=lambda engine: counts[id(engine)])

    async def stop(self) -> None:
        """Stop all of them for good."""
        await asyncio.gather(*(engine.stop() for engine in self._engines))
