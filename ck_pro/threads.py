"""A thread pool for blocking calls; idle threads are cached, so most calls start no thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

_IDLE_SECONDS = 5.0


class _Threads:
    """A pool of daemon threads, without an upper limit, since sub-agents may call sub-agents."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Callable[[], None]]] = []
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            queue = self._idle.pop() if self._idle else None
        if queue is None:
            queue = SimpleQueue()
            threading.Thread(target=self._serve, args=(queue,), name="ck-call", daemon=True).start()
        queue.put(work)

    def _serve(self, queue: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            try:
                work = queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if queue in self._idle:
                        self._idle.remove(queue)
                        return
                work = queue.get()  # `submit` took this thread at the same moment
            work()
            del work
            with self._lock:
                self._idle.append(queue)


_threads = _Threads()


def _after_fork() -> None:
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def submit(work: Callable[[], None]) -> None:
    """Run `work` in a thread immediately."""
    _threads.submit(work)
