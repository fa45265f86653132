"""Threads for blocking calls, and flags that cancel them.

Idle threads are cached, so most calls start no thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol

_IDLE_SECONDS = 5.0
_POLL_SECONDS = 0.05


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


class Flag(Protocol):
    """A readable flag."""

    def is_set(self) -> bool:
        """Return whether it is set."""
        ...


class Cancellation(threading.Event):
    """A cancel flag that is also set if one of its parents is.

    Args:
        parents: the flags of the calling run and of the current call, or of the user; None for
            none.
    """

    def __init__(self, *parents: Flag | None):
        super().__init__()
        self._parents = [flag for flag in parents if flag is not None]

    def is_set(self) -> bool:
        """Whether this run or one of its callers was cancelled."""
        return super().is_set() or any(flag.is_set() for flag in self._parents)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, at most `timeout` seconds; return whether it is set."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            # one thread cannot wait for several flags, so it polls the parents
            left = _POLL_SECONDS if end is None else min(_POLL_SECONDS, end - time.monotonic())
            if left <= 0:
                break
            super().wait(left)
        return self.is_set()


class DelayedEvent(threading.Event):
    """A flag that is set some seconds after another one.

    Args:
        flag: the other flag.
        seconds: the delay.
    """

    def __init__(self, flag: threading.Event, seconds: float):
        super().__init__()
        self._flag, self._seconds, self._first_seen = flag, seconds, 0.0

    def is_set(self) -> bool:
        """Whether the other flag has been set for the delay."""
        if not self._flag.is_set():
            return False
        self._first_seen = self._first_seen or time.monotonic()
        return time.monotonic() - self._first_seen >= self._seconds
