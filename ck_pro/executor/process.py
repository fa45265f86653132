"""A worker process, as the parent sees it: its start and its end."""

from __future__ import annotations

import atexit
import os
import secrets
import select
import signal
import time
import weakref
from collections.abc import Callable
from typing import Any

from ck_pro.exceptions import ExecutorError
from ck_pro.executor.channel import Channel, WorkerGone
from ck_pro.executor.worker import wire
from ck_pro.executor.worker.code.printing import make_mark
from ck_pro.executor.worker.sandbox import kernel
from ck_pro.executor.zygotes import fork_worker

_START_SECONDS = 30.0
_KILL_SECONDS = 5.0
_EXIT_SECONDS = 0.5

_workers: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()


def _too_slow() -> ExecutorError:
    return ExecutorError(f"a worker for code did not start in {_START_SECONDS:g} s")


def _protect_this_process(layers: list[str]) -> None:
    """Deny code access to this process's memory in `/proc` if no layer denies it."""
    if kernel.LINUX and not {"landlock", "namespaces"} & set(layers):
        kernel.hide_memory(True)


class LostAtStart(ExecutorError):
    """Another process killed a worker before it was ready; a second start may succeed."""


class WorkerProcess(Channel):
    """A worker and its supervisor.

    Args:
        config: of the session.
        preload: modules that its zygote has imported.
        restore: returns the object of a `result` tag from the worker.
        bounds: limits of its messages.

    Attributes:
        owner: process id of the process that started it.
        mark: marks the blocks of `print` in its output.
        isolation: the worker's report of active and missing layers.

    Raises:
        ExecutorError: it did not start.
    """

    def __init__(
        self,
        config: dict[str, Any],
        preload: tuple[str, ...],
        restore: Callable[[dict[str, Any]], Any],
        bounds: wire.Bounds,
    ):
        self.owner = os.getpid()
        self.mark = make_mark(nonce := secrets.token_hex(8))
        try:
            super().__init__(restore, bounds)
        except OSError as error:
            raise ExecutorError(f"a worker for code cannot start: {error.strerror}") from error
        self._closed = False
        _workers.add(self)
        try:
            self.pid = fork_worker(preload, {**config, "nonce": nonce}, self.far_ends())
        except BaseException:
            self._close()
            raise
        finally:
            self.close_far_ends()
        self.isolation = self._wait_until_ready()

    def _wait_until_ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + _START_SECONDS
        message = None
        printed = b""
        try:
            while message is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _too_slow()
                messages, output = self.receive(left)
                printed += output
                message = messages[0] if messages else None
            while self._why is None and self.held is None:  # the supervisor may be slower
                self._read_control(max(0.001, deadline - time.monotonic()))
                if time.monotonic() > deadline:
                    raise _too_slow()
        except (WorkerGone, wire.WireError) as error:
            printed += self.kill()
            text = printed.decode("utf-8", "replace").strip()
            lost = not text and isinstance(error, WorkerGone) and "error" not in error.why
            kind = LostAtStart if lost else ExecutorError
            raise kind(f"a worker for code did not start: {text or error}") from error
        except BaseException:
            self.kill()
            raise
        if message[0] != "ready" or len(message) != 2 or not isinstance(message[1], dict):
            self.kill()
            raise ExecutorError("a worker for code did not start: it sent an unexpected message")
        _protect_this_process(message[1]["active"])
        return message[1]

    def kill(self) -> bytes:
        """Kill the worker and all processes that it started, and wait for their end.

        Returns:
            The rest of the output.
        """
        with self._send_lock:
            if self._closed:
                return b""
            self._closed = True
        if self.owner == os.getpid():
            self._hang_up()
            if self._pidfd >= 0:
                self._kill_by_pidfd()
            self._await_end()
        output = self.drain()
        self._close()
        return output

    def _kill_by_pidfd(self) -> None:
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except OSError:
            pass
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.poll(int(_KILL_SECONDS * 1000))

    def _await_end(self) -> None:
        deadline = time.monotonic() + _KILL_SECONDS
        try:
            while (left := deadline - time.monotonic()) > 0:
                self._control.settimeout(left)
                if not self._control.recv(4096):
                    return
        except OSError:
            pass

    def shut_down(self) -> None:
        """Let the worker flush its files and exit, then kill what is still running."""
        if self.owner == os.getpid() and not self._closed:
            self.send(["bye"])
            deadline = time.monotonic() + _EXIT_SECONDS
            try:
                while (left := deadline - time.monotonic()) > 0:
                    self.receive(left)
            except (WorkerGone, wire.WireError):
                pass
        self.kill()

    def _close(self) -> None:
        self._closed = True
        super()._close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.kill()


def _kill_all() -> None:
    for worker in list(_workers):
        worker.kill()


atexit.register(_kill_all)


def _after_fork() -> None:
    for worker in list(_workers):
        worker._close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
