"""The supervisor of a worker: starts it, watches it, and kills it with all that it started.

The zygote forks the supervisor into new namespaces, of which it is the first process: when it ends,
the kernel kills all others. It forks the worker. While the worker prepares itself, the supervisor
builds the mount namespace, which the worker joins before it confines itself.

The supervisor sends JSON lines to the parent: `{"up": true, "held": ...}` with a pidfd of itself at
the start, and `{"why": ..., ...}` at the end. The parent sends nothing: it closes its end.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Sequence
from typing import Any

from . import kernel, mounts
from .disk import Disk
from .memory import Watchdog
from .runtime import Worker
from .sandbox import Sandbox

_END_SECONDS = 5.0
_exit = os._exit  # the code may replace it, and must not come out of here


def supervise(
    worker: Worker, config: dict[str, Any], sandbox: Sandbox, main: int, control: int, pipe: int
) -> None:
    """Run a worker until it ends or the parent closes its end. Called in a fork of the zygote.

    Args:
        worker: made by the zygote.
        config: of the session, from the parent.
        sandbox: which forked this process.
        main: descriptor of the worker's socket to the parent.
        control: descriptor of this process's socket to the parent.
        pipe: descriptor of the pipe for output.
    """
    os.setsid()
    sock = socket.socket(fileno=control)
    try:
        sandbox.enter_namespaces()
        if kernel.LINUX:
            kernel.die_with_parent()
        kernel.set_signal(signal.SIGINT, signal.SIG_DFL)
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            sock.close()
            ours.close()
            _work(worker, config, sandbox, theirs, main, pipe)
        theirs.close()
        os.close(main)
        os.close(pipe)
        sandbox.protect()
        _tell(ours, *sandbox.arrange_mounts())
        private = sandbox.private_proc
        os.chdir(config["workdir"])  # the code may rename a folder above it
        # no code runs before the parent has received what the directory holds now
        disk = Disk(".", config["disk_mb"], config["held_first"], private)
        sandbox.follow(*_hear(ours))
        _say_up(sock, sandbox, disk)
        charged = sandbox.group is not None
        watchdog = Watchdog(config["memory_mb"], private, sandbox.own_net, sandbox.scratch, charged)
        why = _watch(sock, pid, watchdog, disk, sandbox)
        if why is not None:
            why = sandbox.look() or why
            _tell(sock, why)
        if not sandbox.own_pids:
            _kill_children(pid)
    except OSError as error:
        _tell(sock, {"why": "setup", "error": str(error)})


def _tell(sock: socket.socket, said: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    try:
        data = json.dumps(said).encode() + b"\n"
        socket.send_fds(sock, [data], descriptors)
    except OSError:  # the other side is gone; all ends anyway
        pass
    for one in descriptors:
        os.close(one)


def _hear(sock: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, descriptors, _, _ = socket.recv_fds(sock, 4096, 1)
    sock.close()
    if not data:
        raise OSError(0, "the other process ended")
    return json.loads(data), descriptors


def _say_up(sock: socket.socket, sandbox: Sandbox, disk: Disk) -> None:
    try:
        # killing the inside process is enough only if it takes all others with it
        pidfds = (kernel.pidfd_of(os.getpid()),) if sandbox.own_pids else ()
    except OSError:
        pidfds = ()
    _tell(sock, {"up": True, "held": disk.held}, pidfds)


def _watch(
    sock: socket.socket, pid: int, watchdog: Watchdog, disk: Disk, sandbox: Sandbox
) -> dict[str, Any] | None:
    """Wait for the end. None: the parent let go; else why it came to an end by itself."""
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    kernel.set_signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    poll.register(reader, select.POLLIN)
    look_at = 0.0
    while True:
        while True:
            done, status = os.waitpid(-1, os.WNOHANG)
            if done == pid:
                return {"why": "exit", "status": os.waitstatus_to_exitcode(status)}
            if done == 0:
                break
        now = time.monotonic()
        if now >= look_at:
            why = watchdog.look() or disk.look() or sandbox.look()
            if why is not None:
                return why
            look_at = now + watchdog.interval
        ready = dict(poll.poll(int(watchdog.interval * 1000)))
        if sock.fileno() in ready:
            return None
        if reader in ready:
            os.read(reader, 4096)


def _kill_children(pid: int) -> None:
    """Kill the worker and its descendants, without a pid namespace that would do it."""
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        for child in {pid, *children()}:
            for kill in (os.killpg, os.kill):
                try:
                    kill(child, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def children() -> list[int]:
    """Give the processes whose parent this one is now; Linux only."""
    # orphans become children of this process, so in the end all descendants are in this list
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
            return [int(pid) for pid in file.read().split()]
    except (OSError, ValueError):
        return []


def _work(
    worker: Worker,
    config: dict[str, Any],
    sandbox: Sandbox,
    inside: socket.socket,
    main: int,
    pipe: int,
) -> None:
    ready = False
    try:
        kernel.set_signal(signal.SIGINT, signal.default_int_handler)
        os.setpgid(0, 0)
        sandbox.enter_group()
        sandbox.renounce()
        _tell(inside, *sandbox.leave_network())
        sandbox.prepare_landlock()
        worker.begin(socket.socket(fileno=main), pipe, config)  # while the mounts are arranged
        scratch = mounts.SCRATCH[0]
        worker.settle(scratch)
        worker.warm_up()
        sandbox.join(*_hear(inside))
        if "mounts" not in sandbox.active:
            worker.settle(config["workdir"])
        os.chdir(config["workdir"])
        sandbox.confine()
        worker.send(["ready", sandbox.report()])
        ready = True
        worker.serve()
    except BaseException:  # noqa: BLE001 - the boundary of the process: told, then it ends
        if not ready:
            os.write(pipe, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        _exit(1)
