"""The supervisor of one worker: starts it, watches it, and ends all of it when told.

It tells the parent, as lines of JSON: `{"up": true}` (with a pidfd that kills everything, where
there is one), and at the end `{"why": ..., "status": ...}`. The parent tells it nothing: it closes
its end.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from typing import Any

from .runtime import Worker


def supervise(config: dict[str, Any], main: int, control: int, pipe: int) -> int:
    """Run a worker until it ends or the parent lets go. Called in a fresh fork of the zygote.

    Args:
        config: what the parent said of the session.
        main: descriptor of the worker's socket to the parent.
        control: descriptor of this supervisor's socket to the parent.
        pipe: descriptor of the pipe that takes the output.
    """
    os.setsid()
    sock = socket.socket(fileno=control)
    pid = os.fork()
    if pid == 0:
        sock.close()
        _work(config, main, pipe)
    os.close(main)
    os.close(pipe)
    sock.sendall(json.dumps({"up": True}).encode() + b"\n")
    status = _watch(sock, pid)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if status is not None:
        sock.sendall(json.dumps({"why": "exit", "status": status}).encode() + b"\n")
    return 0


def _watch(sock: socket.socket, pid: int) -> int | None:
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    poll.register(reader, select.POLLIN)
    while True:
        ready = dict(poll.poll(1000))
        if sock.fileno() in ready:
            return None
        if reader in ready:
            os.read(reader, 4096)
        done, status = os.waitpid(pid, os.WNOHANG)
        if done == pid:
            return os.waitstatus_to_exitcode(status)


def _work(config: dict[str, Any], main: int, pipe: int) -> None:
    try:
        os.setpgid(0, 0)
        os.chdir(config["workdir"])
        os.environ.update(config["env"])
        for name, value in config["env"].items():
            os.environ[name] = value
        worker = Worker(socket.socket(fileno=main), pipe, config)
        worker.send(["ready", {"active": ["process"], "missing": {}}])
        worker.serve()
    except (OSError, EOFError) as error:
        sys.stderr.write(f"{error}\n")
    finally:
        os._exit(1)
