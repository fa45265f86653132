"""Shell commands of a worker: in the foreground with a timeout, or in the background.

Each command runs in a new session, so that all its processes can be killed together. Processes that
leave the session are found by a variable in their environment. Others end with the worker.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import subprocess
import sys
import time

ENDS_BYTES = 8192
"""Bytes to keep of the beginning, and of the end, of a command's output."""

_SLICE_SECONDS = 0.02
GRACE_SECONDS = 1.0
_READ_BYTES = 65_536
_MAX_FINAL_READS = 64
_SHELL = next((path for path in ("/bin/bash", "/bin/sh") if os.access(path, os.X_OK)), "/bin/sh")
# Without a pid namespace, a command must end by watching a pipe of the worker.
_LEASH = "( { cat <&%d; kill -9 0; } >/dev/null 2>&1 & ) ; exec %d<&-\n"


class HeadAndTail:
    """Keeps the beginning and the end of a stream of bytes, and its length.

    It needs no lock: one thread calls `add`, and every change is one assignment.
    """

    def __init__(self, size: int = ENDS_BYTES):
        self._size = size
        self._head = b""
        self._tail = b""
        self._total = 0

    def add(self, data: bytes) -> None:
        """Add bytes."""
        room = self._size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data_after = data[room:]
        else:
            data_after = data
        if data_after:
            self._tail = (self._tail + data_after)[-self._size :]
        self._total += len(data)

    def text(self) -> str:
        """Return both parts as text, with a notice between them if bytes are omitted."""
        omitted = self._total - len(self._head) - len(self._tail)
        if omitted <= 0:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        notice = f"[... {omitted} bytes of output omitted; for all of it: command > file ...]"
        return f"{head}\n{notice}\n{tail}"


class Command:
    """A running command.

    Args:
        command: text for the shell.
        workdir: its working directory.
        leash: whether it must end itself when this process is killed.

    Raises:
        OSError: it cannot be started.
        ValueError: the text contains a null character.
    """

    def __init__(self, command: str, workdir: str, leash: bool = sys.platform != "linux"):
        self.command = command
        self.output = HeadAndTail()
        self._mark = f"CK_COMMAND={os.urandom(8).hex()}"
        name, _, value = self._mark.partition("=")
        watched, self._leash = os.pipe() if leash else (-1, -1)
        try:
            self.process = subprocess.Popen(
                [_SHELL, "-c", _LEASH % (watched, watched) + command if leash else command],
                cwd=workdir,
                env={**os.environ, name: value},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
                pass_fds=[watched] if leash else [],
            )
        except BaseException:
            self.close_leash()
            raise
        finally:
            if leash:
                os.close(watched)
        assert self.process.stdout is not None
        self._out = self.process.stdout
        self._drained = _thread.allocate_lock()  # held until the end of the output is read
        self._drained.acquire()

    def wait(self, timeout: float) -> bool:
        """Read the output until the command ends; return False after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._out.fileno(), select.POLLIN)
        ended = False
        while self.process.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if ended:  # the command has closed its output
                try:
                    self.process.wait(left)
                except subprocess.TimeoutExpired:
                    return False
            elif poll.poll(min(left, _SLICE_SECONDS) * 1000):
                data = os.read(self._out.fileno(), _READ_BYTES)
                ended = not data
                self.output.add(data)
        return True

    def end(self, grace: float = GRACE_SECONDS) -> bool:
        """Send SIGTERM and then SIGKILL to the processes that are still running.

        Args:
            grace: seconds between the two signals.

        Returns:
            Whether any process was still running.
        """
        left = self._marked() or ([self.process.pid] if self.process.poll() is None else [])
        if grace and left:
            self._signal(signal.SIGTERM)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                pass
        self.kill()
        try:
            self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        return bool(left)

    def kill(self) -> None:
        """Kill all its processes, without waiting for their end."""
        self._signal(signal.SIGKILL)
        self.kill_strays()

    def kill_strays(self) -> None:
        """Kill the processes that an ended command left. Its own pid may have been reused."""
        for _ in range(10):  # they may fork meanwhile
            left = self._marked()
            for pid in left:
                _send(os.kill, pid, signal.SIGKILL)
            if not left:
                break

    def read_rest(self) -> None:
        """Read the rest of the output of a foreground command, and close the pipe."""
        os.set_blocking(self._out.fileno(), False)
        try:
            for _ in range(_MAX_FINAL_READS):
                data = os.read(self._out.fileno(), _READ_BYTES)
                if not data:
                    break
                self.output.add(data)
        except BlockingIOError:
            pass
        self._out.close()
        self.close_leash()

    def drain_in_background(self) -> None:
        """Read the output on a thread. The end of a step does not wait for that thread."""
        # the end of a step counts the threads of `threading`
        _thread.start_new_thread(self._drain, ())

    def _drain(self) -> None:
        try:
            while data := os.read(self._out.fileno(), _READ_BYTES):
                self.output.add(data)
        except (OSError, ValueError):  # the code closed the descriptor
            pass
        self._out.close()
        self._drained.release()

    def await_drained(self, seconds: float) -> None:
        """Wait until all output is read, for at most this time."""
        if self._drained.acquire(timeout=seconds):
            self._drained.release()

    def _signal(self, number: int) -> None:
        _send(os.killpg, self.process.pid, number)

    def _marked(self) -> list[int]:
        """Return the processes with this command's variable; none if `/proc` does not show them."""
        mark, found = self._mark.encode(), []
        try:
            names = os.listdir("/proc")  # noqa: PTH208
        except OSError:
            return []
        for name in names:
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                        if mark in file.read().split(b"\0"):
                            found.append(int(name))
                except OSError:  # it has ended, or belongs to another user
                    pass
        return found

    def close_leash(self) -> None:
        """Close the pipe that the command watches, if it does. The command must have ended."""
        if self._leash >= 0:
            os.close(self._leash)
            self._leash = -1


def _send(kill: object, target: int, number: int) -> None:
    assert callable(kill)
    try:
        kill(target, number)
    except (ProcessLookupError, PermissionError):
        pass
