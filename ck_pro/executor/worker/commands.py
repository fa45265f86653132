"""Shell commands of a worker: in the foreground with a timeout, or in the background.

Each runs in a session of its own, whose processes are ended together. Whatever leaves the session
is found by a variable in its environment; what hides from that too ends with the worker.
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
"""Bytes that are kept of a command's output: so many of its beginning, and of its end."""

_SLICE_SECONDS = 0.02
GRACE_SECONDS = 1.0
_READ = 65_536
_MOST_AFTER = 64  # reads of what is in the pipe when a command has ended
_SHELL = next((path for path in ("/bin/bash", "/bin/sh") if os.access(path, os.X_OK)), "/bin/sh")
# Elsewhere nothing ends a session's processes when the worker is killed, so they watch it.
_LEASH = "( { cat <&%d; kill -9 0; } >/dev/null 2>&1 & ) ; exec %d<&-\n"


class Ends:
    """Keeps the beginning and the end of a stream of bytes, and counts it.

    There is no lock: only one thread adds, and every change is one assignment.
    """

    def __init__(self, size: int = ENDS_BYTES):
        self._size = size
        self._head = b""
        self._tail = b""
        self._total = 0

    def add(self, data: bytes) -> None:
        """Add what was read."""
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
        """Give both ends as text; between them stands how much was cut."""
        cut = self._total - len(self._head) - len(self._tail)
        head = self._head.decode("utf-8", "replace")
        if cut <= 0:
            return (self._head + self._tail).decode("utf-8", "replace")
        said = f"[... {cut} bytes of output cut; to have all of it: command > file ...]"
        return f"{head}\n{said}\n{self._tail.decode('utf-8', 'replace')}"


class Command:
    """A command that was started.

    Args:
        command: text for the shell.
        workdir: where it runs.
        leash: it must notice by itself when this process is killed.

    Raises:
        OSError: it cannot be started.
        ValueError: the text holds a null character.
    """

    def __init__(self, command: str, workdir: str, leash: bool = sys.platform != "linux"):
        self.command = command
        self.ends = Ends()
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
            self.let_go()
            raise
        finally:
            if leash:
                os.close(watched)
        assert self.process.stdout is not None
        self._out = self.process.stdout
        self._drained = _thread.allocate_lock()  # held until the output has come to its end
        self._drained.acquire()

    def wait(self, timeout: float) -> bool:
        """Read what it says until it ends. False: it runs on after so many seconds."""
        deadline = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._out.fileno(), select.POLLIN)
        ended = False
        while self.process.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if ended:  # it has closed its output
                try:
                    self.process.wait(left)
                except subprocess.TimeoutExpired:
                    return False
            elif poll.poll(min(left, _SLICE_SECONDS) * 1000):
                data = os.read(self._out.fileno(), _READ)
                ended = not data
                self.ends.add(data)
        return True

    def end(self, grace: float = GRACE_SECONDS) -> bool:
        """End what is left of it: by SIGTERM, then by SIGKILL.

        Args:
            grace: seconds between the two.

        Returns:
            Whether anything was left.
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
        """Kill its processes, at once and without waiting."""
        self._signal(signal.SIGKILL)
        self.kill_strays()

    def kill_strays(self) -> None:
        """Kill what an ended command left. Its own number may be another process's by now."""
        for _ in range(10):  # it may fork while it is killed
            left = self._marked()
            for pid in left:
                _send(os.kill, pid, signal.SIGKILL)
            if not left:
                break

    def read_rest(self) -> None:
        """Read what is in the pipe now, and close it. For a command in the foreground."""
        os.set_blocking(self._out.fileno(), False)
        try:
            for _ in range(_MOST_AFTER):
                data = os.read(self._out.fileno(), _READ)
                if not data:
                    break
                self.ends.add(data)
        except BlockingIOError:
            pass
        self._out.close()
        self.let_go()

    def drain_in_background(self) -> None:
        """Read what it says on a thread that no end of a step waits for."""
        # not one of `threading`: those are counted when a step ends
        _thread.start_new_thread(self._drain, ())

    def _drain(self) -> None:
        try:
            while data := os.read(self._out.fileno(), _READ):
                self.ends.add(data)
        except (OSError, ValueError):  # the code closed a descriptor that is not its own
            pass
        self._out.close()
        self._drained.release()

    def await_drained(self, seconds: float) -> None:
        """Wait until all its output is read, but not for longer than this."""
        if self._drained.acquire(timeout=seconds):
            self._drained.release()

    def _signal(self, number: int) -> None:
        _send(os.killpg, self.process.pid, number)

    def _marked(self) -> list[int]:
        """The processes that carry this command's variable; none where `/proc` does not tell."""
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
                except OSError:  # gone, or not ours
                    pass
        return found

    def let_go(self) -> None:
        """Close the end that a command on a leash watches. It must have ended."""
        if self._leash >= 0:
            os.close(self._leash)
            self._leash = -1


def _send(kill: object, target: int, number: int) -> None:
    assert callable(kill)
    try:
        kill(target, number)
    except (ProcessLookupError, PermissionError):
        pass
