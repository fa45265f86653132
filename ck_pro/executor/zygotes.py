"""Zygote processes, as the parent sees them: one per set of preloaded modules."""

from __future__ import annotations

import atexit
import json
import os
import site
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ExecutorError

_WORKER = Path(__file__).parent / "worker"
_BOOT = (
    "import sys, importlib.util as u\n"
    "place, descriptor, settings = sys.argv[1:]\n"
    "spec = u.spec_from_file_location('_ck_worker', place + '/__init__.py',"
    " submodule_search_locations=[place])\n"
    "package = u.module_from_spec(spec)\n"
    "sys.modules['_ck_worker'] = package\n"
    "spec.loader.exec_module(package)\n"
    "from _ck_worker import zygote\n"
    "zygote.main(int(descriptor), settings)\n"
)
_PASSED_ON = (
    *("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
)
_SET = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUTF8": "1",
    "USER": "user",
    "LOGNAME": "user",
    "OPENBLAS_NUM_THREADS": str(min(4, os.cpu_count() or 1)),
    # unused address space counts against the memory limit, so keep threads and Arrow from
    # reserving gigabytes of it
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "LD_BIND_NOW": "1",  # resolve symbols once in the zygote instead of in every worker
}
_START_SECONDS = 60.0


class Zygote:
    """A running zygote. Use `fork_worker`."""

    def __init__(self, preload: tuple[str, ...]):
        self._lock = threading.Lock()
        self._sock, far_end = socket.socketpair()
        self._sock.settimeout(_START_SECONDS)
        settings = json.dumps({"path": package_folders(), "preload": preload})
        command = [sys.executable, "-I", "-B", "-X", "utf8", "-c", _BOOT]
        try:
            self._process = subprocess.Popen(
                [*command, str(_WORKER), str(far_end.fileno()), settings],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[far_end.fileno()],
                env={**scrubbed_environment(), **_SET},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self._sock.close()
            raise ExecutorError(f"cannot start {sys.executable!r} for code: {error}") from error
        finally:
            far_end.close()
        self._lines = b""
        missing = self._read_line()["missing"]
        if missing:
            self.stop()
            names = ", ".join(missing)
            raise ExecutorError(f"cannot preload {names} for code: not installed")

    def fork(self, config: dict[str, Any], descriptors: list[int]) -> int:
        """Fork the supervisor of a worker, and pass the descriptors to it.

        Returns:
            The supervisor's process id.

        Raises:
            ExecutorError: the zygote has ended.
        """
        with self._lock:
            try:
                data = json.dumps(config).encode() + b"\n"
                sent = socket.send_fds(self._sock, [data], descriptors)
                self._sock.sendall(data[sent:])
            except OSError as error:
                raise ExecutorError(f"the process that starts workers ended: {error}") from error
            return int(self._read_line()["pid"])

    def _read_line(self) -> dict[str, Any]:
        while b"\n" not in self._lines:
            try:
                more = self._sock.recv(65_536)
            except OSError as error:
                raise ExecutorError(f"the process that starts workers: {error}") from error
            if not more:
                raise ExecutorError("the process that starts workers ended")
            self._lines += more
        line, _, self._lines = self._lines.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def stop(self) -> None:
        """End the zygote and all its workers."""
        self.disconnect()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def disconnect(self) -> None:
        """Close this process's end of the socket."""
        self._sock.close()

    def disown(self) -> None:
        """Treat the process as ended, in a fork of its parent, which cannot wait for it."""
        self._process.returncode = 0


_zygotes: dict[tuple[str, ...], Zygote] = {}
_lock = threading.Lock()


def fork_worker(preload: tuple[str, ...], config: dict[str, Any], descriptors: list[int]) -> int:
    """Fork a supervisor from the zygote with these modules; start the zygote if necessary.

    Returns:
        The supervisor's process id.

    Raises:
        ExecutorError: the zygote cannot be started.
    """
    for attempt in (1, 2):
        with _lock:
            zygote = _zygotes.get(preload)
            if zygote is None:
                zygote = _zygotes[preload] = Zygote(preload)
        try:
            return zygote.fork(config, descriptors)
        except ExecutorError:  # it was killed, for example for lack of memory
            with _lock:
                if _zygotes.get(preload) is zygote:
                    del _zygotes[preload]
            zygote.stop()
            if attempt == 2:
                raise
    raise AssertionError("unreachable")


def stop_all() -> None:
    """End all zygotes and their workers. Later executors start new ones."""
    with _lock:
        stopped = list(_zygotes.values())
        _zygotes.clear()
    for zygote in stopped:
        zygote.stop()


def scrubbed_environment() -> dict[str, str]:
    """Return the environment variables that a worker gets: a few names that hold no secrets."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith("LC_")
    }


def package_folders() -> list[str]:
    """Return the folders of installed packages that this interpreter uses."""
    known = {*site.getsitepackages(), site.getusersitepackages()}
    return [
        folder
        for folder in sys.path
        if folder in known or Path(folder).name in ("site-packages", "dist-packages")
    ]


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for zygote in _zygotes.values():
        zygote.disconnect()
        zygote.disown()
    _zygotes.clear()


atexit.register(stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
