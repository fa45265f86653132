"""The zygote: a small process, freshly executed, that forks the supervisors of the workers.

It is not a fork of the agent, so it has nothing of the agent's memory or environment. It ends when
the agent's end of their socket is closed, which also happens when the agent is killed.
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

from . import supervisor
from .runtime import Worker
from .sandbox import cgroup, kernel
from .sandbox.sandbox import Sandbox, drop_groups, fill_caches

_END_SECONDS = 2.0


def main(descriptor: int, settings: str) -> None:
    """Serve requests for workers until the agent ends.

    Args:
        descriptor: of the socket to the agent.
        settings: JSON object: `path` (folders to add to `sys.path`), `preload` (modules).
    """
    given = json.loads(settings)
    os.environ.pop("LD_BIND_NOW", None)
    sys.argv, sys.orig_argv = [""], [sys.executable]  # the code can read these
    sys.path[:0] = [""]
    sys.path.extend(folder for folder in given["path"] if folder not in sys.path)
    sock = socket.socket(fileno=descriptor)
    missing = [name for name in given["preload"] if not _import(name)]
    sock.sendall(json.dumps({"missing": missing}).encode() + b"\n")
    if kernel.LINUX:
        kernel.hide_memory(True)
        drop_groups()
        _drop_threads()
    supervisors = _Supervisors()
    worker = Worker()
    gc.collect()
    gc.freeze()  # the collector never writes to these objects, so their pages stay shared
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    poll.register(supervisors.descriptor, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if supervisors.descriptor in ready:
            supervisors.reap()
        if sock.fileno() not in ready:
            continue
        request = _receive(sock)
        if request is None:
            supervisors.end()
            return
        config, descriptors = request
        fill_caches(config)
        sandbox = Sandbox(config)
        sandbox.create_group()
        pid = sandbox.fork()
        if pid == 0:
            sock.close()
            supervisors.forget()
            _run_supervisor(worker, config, sandbox, descriptors)
        supervisors.add(pid, sandbox.group)
        for one in descriptors:
            os.close(one)
        sock.sendall(json.dumps({"pid": pid}).encode() + b"\n")


class _Supervisors:
    """The forked supervisors, and the control groups of their workers.

    Attributes:
        descriptor: readable when a supervisor has ended.
    """

    def __init__(self) -> None:
        self._groups: dict[int, cgroup.Group] = {}
        self.descriptor, self._writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._writer, False)
        kernel.set_signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def forget(self) -> None:
        """Release everything, in a fork of the zygote."""
        kernel.set_signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._writer)

    def add(self, pid: int, group: cgroup.Group | None) -> None:
        """Register a supervisor."""
        if group is not None:
            group.close()
            self._groups[pid] = group

    def reap(self) -> None:
        """Reap the supervisors that have ended, and remove their groups."""
        os.read(self.descriptor, 4096)
        self._wait(os.WNOHANG)

    def end(self) -> None:
        """Wait until all supervisors have ended, as they do without the agent; then kill them."""
        deadline = time.monotonic() + _END_SECONDS
        while kernel.LINUX and supervisor.children() and time.monotonic() < deadline:
            self._wait(os.WNOHANG)
            time.sleep(0.005)
        for pid in supervisor.children():
            os.kill(pid, signal.SIGKILL)
        if kernel.LINUX:
            self._wait(0)

    def _wait(self, flags: int) -> None:
        try:
            while (pid := os.waitpid(-1, flags)[0]) != 0:
                group = self._groups.pop(pid, None)
                if group is not None:
                    group.remove()
        except ChildProcessError:
            pass


def _drop_threads() -> None:
    """Continue in a child if imports started threads: `kernel.fork` requires a single thread."""
    if len(os.listdir("/proc/self/task")) == 1:  # noqa: PTH208
        return
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        os._exit(0)
    kernel.die_with_parent()


def _import(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive a session's configuration and descriptors; None at the end of the stream."""
    data, descriptors, _, _ = socket.recv_fds(sock, 65_536, 3)
    while data and not data.endswith(b"\n"):
        more = sock.recv(65_536)
        if not more:
            return None
        data += more
    for one in descriptors:
        os.set_inheritable(one, False)
    return (json.loads(data), descriptors) if data else None


def _run_supervisor(
    worker: Worker, config: dict[str, Any], sandbox: Sandbox, descriptors: list[int]
) -> None:
    try:
        supervisor.supervise(worker, config, sandbox, *descriptors)
    finally:
        os._exit(0)
