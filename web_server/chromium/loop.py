"""An asyncio event loop on a separate thread.

Playwright runs on this loop. Request threads submit coroutines and wait for the results.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Start an event loop on a daemon thread; `call` runs a coroutine there.

    Args:
        name: the thread's name in stack dumps.
    """

    def __init__(self, name: str = "browser-loop") -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log_exception)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its result.

        Args:
            coroutine: the coroutine to run.
            timeout: seconds to wait before the coroutine is cancelled.

        Raises:
            TimeoutError: the coroutine did not finish in time.
            Exception: the coroutine raised it.
        """
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout)
        except FutureTimeout:
            if future.done():
                raise
            future.cancel()
            raise TimeoutError(f"not finished within {timeout:g} s") from None

    def stop(self) -> None:
        """Cancel all tasks, stop the loop and join its thread."""
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        if not self._thread.is_alive():
            self._loop.close()


def _log_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no task retrieved, unless Playwright's process ended: every pending
    call then fails, and the log reports the end of Chromium already."""
    if not str(context.get("exception")).startswith("Connection closed"):
        loop.default_exception_handler(context)


async def _cancel_others() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
