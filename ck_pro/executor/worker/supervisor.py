"""The supervisor of a worker: starts it, watches it, and kills it with all that it started.

The zygote forks the supervisor into new namespaces, of which it is the first process: when it ends,
the kernel kills all others. It forks the worker. While the worker prepares itself, the supervisor
builds the mount namespace, which the worker joins before it confines itself.

The supervisor sends JSON lines to the parent: `{"up": true, "held": ...}` with a pidfd of itself at
the start, and `{"why": ..., ...}` at the end. The parent sends nothing: it closes its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Sequence
from typing import Any

from .runtime import Worker
from .sandbox import kernel, mounts
from .sandbox.disk import DiskWatchdog
from .sandbox.memory import MemoryWatchdog
from .sandbox.sandbox import Message, Sandbox

_KILL_SECONDS = 5.0
_exit = os._exit  # the code may replace it in the worker


def supervise(
    worker: Worker, config: dict[str, Any], sandbox: Sandbox, main: int, control: int, pipe: int
) -> None:
    """Run a worker until it ends or the parent closes its end. Called in a fork of the zygote.

    Args:
        worker: created by the zygote.
        config: of the session, from the parent.
        sandbox: created by the zygote.
        main: descriptor of the worker's socket to the parent.
        control: descriptor of the supervisor's socket to the parent.
        pipe: descriptor of the pipe for output.
    """
    os.setsid()
    parent = socket.socket(fileno=control)
    try:
        sandbox.enter_namespaces()
        if kernel.LINUX:
            kernel.die_with_parent()
        kernel.set_signal(signal.SIGINT, signal.SIG_DFL)
        to_worker, to_supervisor = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            parent.close()
            to_worker.close()
            _run_worker(worker, config, sandbox, to_supervisor, main, pipe)
        to_supervisor.close()
        os.close(main)
        os.close(pipe)
        sandbox.protect_supervisor()
        _send(to_worker, *sandbox.build_mounts())
        os.chdir(config["workdir"])  # stays valid if the code renames a folder above
        # measured before any code runs, since the parent waits for this report
        disk = DiskWatchdog(".", config["disk_mb"], config["held_first"], sandbox.private_proc)
        sandbox.accept_group_and_network(*_receive(to_worker))
        _report_start(parent, sandbox, disk)
        memory = MemoryWatchdog(
            config["memory_mb"],
            sandbox.private_proc,
            sandbox.own_net,
            sandbox.scratch,
            charged=sandbox.group is not None,
        )
        why = _watch(parent, pid, memory, disk, sandbox)
        if why is not None:
            _send(parent, sandbox.check_group() or why)
        if not sandbox.own_pids:
            _kill_descendants(pid)
    except OSError as error:
        _send(parent, {"why": "setup", "error": str(error)})


def _send(sock: socket.socket, data: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    with contextlib.suppress(OSError):  # the other process has ended
        socket.send_fds(sock, [json.dumps(data).encode() + b"\n"], descriptors)
    for one in descriptors:
        os.close(one)


def _receive(sock: socket.socket) -> Message:
    """Receive the only message from a socket, and close it.

    Raises:
        OSError: the other process has ended.
    """
    data, descriptors, _, _ = socket.recv_fds(sock, 4096, 1)
    sock.close()
    if not data:
        raise OSError(0, "the other process has ended")
    return json.loads(data), descriptors


def _report_start(parent: socket.socket, sandbox: Sandbox, disk: DiskWatchdog) -> None:
    try:
        # killing the supervisor is enough only if the kernel then kills its whole namespace
        pidfds = (kernel.pidfd_of(os.getpid()),) if sandbox.own_pids else ()
    except OSError:
        pidfds = ()
    _send(parent, {"up": True, "held": disk.held}, pidfds)


def _watch(
    parent: socket.socket, pid: int, memory: MemoryWatchdog, disk: DiskWatchdog, sandbox: Sandbox
) -> dict[str, Any] | None:
    """Wait for the end. Return None if the parent closed its end, otherwise the reason."""
    poll = select.poll()
    poll.register(parent.fileno(), select.POLLIN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    kernel.set_signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    poll.register(reader, select.POLLIN)
    next_check = 0.0
    while True:
        while True:
            done, status = os.waitpid(-1, os.WNOHANG)
            if done == pid:
                return {"why": "exit", "status": os.waitstatus_to_exitcode(status)}
            if done == 0:
                break
        now = time.monotonic()
        if now >= next_check:
            why = memory.check() or disk.check() or sandbox.check_group()
            if why is not None:
                return why
            next_check = now + memory.interval
        ready = dict(poll.poll(int(memory.interval * 1000)))
        if parent.fileno() in ready:
            return None
        if reader in ready:
            os.read(reader, 4096)


def _kill_descendants(pid: int) -> None:
    """Kill the worker and its descendants, if there is no pid namespace to do it."""
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        for child in {pid, *children()}:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def children() -> list[int]:
    """Return the child processes of this process (Linux only)."""
    # orphans become children of this process, so this list reaches all descendants in time
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
            return [int(pid) for pid in file.read().split()]
    except (OSError, ValueError):
        return []


def _run_worker(
    worker: Worker,
    config: dict[str, Any],
    sandbox: Sandbox,
    to_supervisor: socket.socket,
    main: int,
    pipe: int,
) -> None:
    ready = False
    try:
        kernel.set_signal(signal.SIGINT, signal.default_int_handler)
        os.setpgid(0, 0)
        sandbox.enter_group()
        sandbox.drop_bounding_set()
        _send(to_supervisor, *sandbox.create_network())
        sandbox.prepare_landlock()
        # everything up to here and in the next block runs while the supervisor builds the mounts
        worker.start_session(socket.socket(fileno=main), pipe, config)
        worker.use_folders(mounts.SCRATCH[0])
        worker.warm_up()
        sandbox.join_mounts(*_receive(to_supervisor))
        if "mounts" not in sandbox.active:
            worker.use_folders(config["workdir"])
        os.chdir(config["workdir"])
        sandbox.confine()
        worker.send(["ready", sandbox.report()])
        ready = True
        worker.serve()
    except BaseException:  # noqa: BLE001 - the process boundary: report the error, then exit
        if not ready:
            os.write(pipe, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        _exit(1)
