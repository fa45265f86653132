"""The Chromiums of a server: one by default, or several that share its sessions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from playwright.async_api import Browser

from web_server.chromium.engine import Engine


class Engines:
    """All of them. Each starts with the first session that it gets.

    Args:
        count: how many, at least 1.
        executable: path of Chromium.
        folder: where each gets a folder of its own.
        on_lost: called with a Chromium that is gone.
    """

    def __init__(
        self, count: int, executable: str, folder: Path, on_lost: Callable[[Browser], None]
    ) -> None:
        starting = asyncio.Lock()
        self._engines = []
        for number in range(count):
            own = folder / f"c{number}"  # paths of sockets in it must be short
            own.mkdir()
            self._engines.append(Engine(executable, own, on_lost, starting))

    @property
    def crashes(self) -> int:
        """How often one had to be started anew."""
        return sum(engine.crashes for engine in self._engines)

    @property
    def sandbox(self) -> bool:
        """Whether all run in Chromium's own sandbox."""
        return all(engine.sandbox for engine in self._engines)

    def least_used(self, used: Iterable[Engine]) -> Engine:
        """The one that has the fewest sessions, the first of those.

        Args:
            used: the engine of each session.
        """
        counts = Counter(map(id, used))
        return min(self._engines, key=lambda engine: counts[id(engine)])

    async def stop(self) -> None:
        """End all for good."""
        await asyncio.gather(*(engine.stop() for engine in self._engines))
