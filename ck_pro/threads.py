"""Threads for what somebody waits for: kept a while, so that a call need not start one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

_IDLE_SECONDS = 5.0


class _Threads:
    """Threads that wait for work, so that a call need not start one. There is no upper limit: a
    sub-agent may call sub-agents."""

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
                work = queue.get()  # it was taken from the idle ones at this very moment
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
    """Have a thread do this, at once."""
    _threads.submit(work)
