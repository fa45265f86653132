"""The zygote: a small, freshly executed process that forks the workers.

It was never a fork of the agent, so it has nothing of the agent's memory or environment, and it has
one thread, so it may fork. It ends when the agent's end of its socket closes, however that happens.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
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
    kernel.set_signal(signal.SIGCHLD, _reap)
    worker = Worker()
    gc.collect()
    gc.freeze()  # what is there now is never collected, so its pages stay shared
    while True:
        request = _receive(sock)
        if request is None:
            _end()
            return
        config, descriptors = request
        sandbox.prepare(config)
        pid = kernel.fork()
        if pid == 0:
            _begin(worker, sock, config, descriptors)
        for one in descriptors:
            os.close(one)
        sock.sendall(json.dumps({"pid": pid}).encode() + b"\n")


def _load(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _end() -> None:
    """End all that was forked here; its supervisors take the rest with them."""
    kernel.set_signal(signal.SIGCHLD, signal.SIG_DFL)
    deadline = time.monotonic() + _END_SECONDS
    while kernel.LINUX and supervisor.children() and time.monotonic() < deadline:
        _wait(os.WNOHANG)  # the agent is gone: they see it as this process did, and clean up
        time.sleep(0.005)
    for pid in supervisor.children():
        os.kill(pid, signal.SIGKILL)
    if kernel.LINUX:  # elsewhere they end by themselves when the agent does
        _wait(0)


def _reap(*_: Any) -> None:
    _wait(os.WNOHANG)


def _wait(flags: int) -> None:
    """Wait for supervisors that ended, and remove their control groups."""
    try:
        while (pid := os.waitpid(-1, flags)[0]) != 0:
            try:
                cgroup.remove(cgroup.name_of(pid))
            except cgroup.NoGroup:
                pass
    except ChildProcessError:
        pass


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
    worker: Worker, sock: socket.socket, config: dict[str, Any], descriptors: list[int]
) -> None:
    try:
        sock.close()
        kernel.set_signal(signal.SIGCHLD, signal.SIG_DFL)
        supervisor.supervise(worker, config, *descriptors)
    finally:
        os._exit(0)
