"""The two processes that watch over a worker: start it, watch it, and end all of it when told.

The zygote's fork (outside) enters new namespaces and waits. Its child (inside) is the first
process of the pid namespace: when it ends the kernel ends everything in there. It forks the worker
and, in the meantime, arranges a network and mounts, which the worker joins before it confines
itself. Inside tells the parent, as lines of JSON: `{"up": true, "held": ...}` (with a pidfd of its
own, to kill all by), and at the end `{"why": ..., ...}`. The parent tells it nothing: it closes its
end.
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


def supervise(worker: Worker, config: dict[str, Any], main: int, control: int, pipe: int) -> None:
    """Run a worker until it ends or the parent lets go. Called in a fresh fork of the zygote.

    Args:
        worker: made by the zygote; it begins in the innermost process.
        config: what the parent said of the session.
        main: descriptor of the worker's socket to the parent.
        control: descriptor of the supervisor's socket to the parent.
        pipe: descriptor of the pipe that takes the output.
    """
    os.setsid()
    if kernel.LINUX:
        kernel.die_with_parent()
    sock = socket.socket(fileno=control)
    try:
        sandbox = Sandbox(config)
        sandbox.make_group()
        sandbox.enter_namespaces()
        if kernel.LINUX:  # a change of user namespace forgets it
            kernel.die_with_parent()
        pid = kernel.fork()
        if pid == 0:
            _inside(worker, config, sandbox, sock, main, pipe)
    except OSError as error:
        _tell(sock, {"why": "setup", "error": str(error)})
        return
    sock.close()
    os.close(main)
    os.close(pipe)
    os.waitpid(pid, 0)


def _tell(sock: socket.socket, said: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    try:
        data = json.dumps(said).encode() + b"\n"
        socket.send_fds(sock, [data], descriptors)
    except OSError:  # the other side is gone; all ends anyway
        pass
    for one in descriptors:
        os.close(one)


def _inside(
    worker: Worker,
    config: dict[str, Any],
    sandbox: Sandbox,
    sock: socket.socket,
    main: int,
    pipe: int,
) -> None:
    try:
        os.setsid()
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
        arranged, descriptors = sandbox.arrange()
        _tell(ours, arranged, descriptors)
        ours.close()
        sandbox.fill_group(pid)
        private = sandbox.private_proc  # no code runs before the parent hears what is held now
        os.chdir(config["workdir"])  # the code may rename a folder above it
        disk = Disk(".", config["disk_mb"], config["held_first"], private)
        _say_up(sock, sandbox, disk)
        charged = "cgroup" in sandbox.active
        watchdog = Watchdog(config["memory_mb"], private, sandbox.own_net, sandbox.scratch, charged)
        why = _watch(sock, pid, watchdog, disk, sandbox)
        if why is not None:
            why = sandbox.look() or why
            _tell(sock, why)
        if not sandbox.own_pids:
            _kill_children(pid)
    except OSError as error:
        _tell(sock, {"why": "setup", "error": str(error)})
    finally:
        os._exit(0)


def _say_up(sock: socket.socket, sandbox: Sandbox, disk: Disk) -> None:
    try:
        # killing the inside process is enough only if it takes all others with it
        pidfds = (kernel.pidfd_of(os.getpid()),) if sandbox.own_pids else ()
    except OSError:
        pidfds = ()
    missing = {name: why for name, why in sandbox.missing.items() if name == "cgroup"}
    _tell(sock, {"up": True, "held": disk.held, "missing": missing}, pidfds)


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
        sandbox.renounce()
        worker.begin(socket.socket(fileno=main), pipe, config)  # while the mounts are arranged
        data, descriptors, _, _ = socket.recv_fds(inside, 4096, 2)
        inside.close()
        sandbox.join(json.loads(data), descriptors)
        worker.settle(mounts.SCRATCH[0] if "mounts" in sandbox.active else config["workdir"])
        sandbox.confine()
        worker.send(["ready", sandbox.report()])
        ready = True
        worker.serve()
    except BaseException:  # noqa: BLE001 - the boundary of the process: told, then it ends
        if not ready:
            os.write(pipe, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        _exit(1)
