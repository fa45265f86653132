"""The zygote: a small, freshly executed process that forks the workers.

It was never a fork of the agent, so it has nothing of the agent's memory or environment, and it has
one thread, so it may fork. It ends when the agent's end of its socket closes, however that happens.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from . import cgroup, kernel, sandbox, supervisor
from .runtime import Worker

_END_SECONDS = 2.0


def main(descriptor: int, settings: str) -> None:
    """Serve requests for workers until the agent is gone.

    Args:
        descriptor: of the socket to the agent.
        settings: JSON object: `path` (folders to add to `sys.path`), `preload` (modules).
    """
    given = json.loads(settings)
    os.environ.pop("LD_BIND_NOW", None)
    sys.argv, sys.orig_argv = [""], [sys.executable]  # what the code would see
    sys.path[:0] = [""]
    sys.path.extend(folder for folder in given["path"] if folder not in sys.path)
    sock = socket.socket(fileno=descriptor)
    missing = [name for name in given["preload"] if not _load(name)]
    sock.sendall(json.dumps({"missing": missing}).encode() + b"\n")
    _leave_threads()
    if kernel.LINUX:
        sandbox.drop_groups()
        kernel.hide_memory(True)
    children = _Children()
    worker = Worker()
    gc.collect()
    gc.freeze()  # what is there now is never collected, so its pages stay shared
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    poll.register(children.descriptor, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if children.descriptor in ready:
            children.reap()
        if sock.fileno() not in ready:
            continue
        request = _receive(sock)
        if request is None:
            children.end()
            return
        config, descriptors = request
        sandbox.prepare(config)
        made = sandbox.Sandbox(config)
        made.make_group()
        pid = made.fork()
        if pid == 0:
            _begin(worker, sock, config, made, descriptors)
        children.add(pid, made.group)
        for one in descriptors:
            os.close(one)
        sock.sendall(json.dumps({"pid": pid}).encode() + b"\n")


class _Children:
    """The supervisors that were forked here, and the control groups of their workers."""

    def __init__(self) -> None:
        self._groups: dict[int, cgroup.Group] = {}
        self.descriptor, writer = os.pipe()
        """Readable when a child has ended."""
        os.set_blocking(self.descriptor, False)
        os.set_blocking(writer, False)
        kernel.set_signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def add(self, pid: int, group: cgroup.Group | None) -> None:
        """Register a supervisor."""
        if group is not None:
            group.close()
            self._groups[pid] = group

    def reap(self) -> None:
        """Wait for those that have ended, and remove their groups."""
        os.read(self.descriptor, 4096)
        self._wait(os.WNOHANG)

    def end(self) -> None:
        """End all: they see as this process did that the agent is gone, and clean up."""
        deadline = time.monotonic() + _END_SECONDS
        while kernel.LINUX and supervisor.children() and time.monotonic() < deadline:
            self._wait(os.WNOHANG)
            time.sleep(0.005)
        for pid in supervisor.children():
            os.kill(pid, signal.SIGKILL)
        if kernel.LINUX:  # elsewhere they end by themselves when the agent does
            self._wait(0)

    def _wait(self, flags: int) -> None:
        try:
            while (pid := os.waitpid(-1, flags)[0]) != 0:
                group = self._groups.pop(pid, None)
                if group is not None:
                    group.remove()
        except ChildProcessError:
            pass


def _leave_threads() -> None:
    """Continue in a child if the imports started threads: a fork needs a process of one thread."""
    try:
        if len(os.listdir("/proc/self/task")) == 1:  # noqa: PTH208
            return
    except OSError:
        return
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        os._exit(0)
    kernel.die_with_parent()


def _load(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(sock, 65_536, 3)
    while data and not data.endswith(b"\n"):
        more = sock.recv(65_536)
        if not more:
            return None
        data += more
    for one in descriptors:
        os.set_inheritable(one, False)
    return (json.loads(data), descriptors) if data else None


def _begin(
    worker: Worker,
    sock: socket.socket,
    config: dict[str, Any],
    made: sandbox.Sandbox,
    descriptors: list[int],
) -> None:
    try:
        sock.close()
        signal.set_wakeup_fd(-1)
        kernel.set_signal(signal.SIGCHLD, signal.SIG_DFL)
        supervisor.supervise(worker, config, made, *descriptors)
    finally:
        os._exit(0)
