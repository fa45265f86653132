"""The parent's end of the connection to a worker and its supervisor: frames and output."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from ck_pro.executor.worker import wire
from ck_pro.executor.worker.spin import Spin

_SEND_SECONDS = 5
_LAST_REPORT_SECONDS = 0.5
_SOON_MICROSECONDS = 5000
_READ_BYTES = 65_536  # a larger buffer would be mapped and unmapped for every read
_MAX_DRAIN_READS = 32
_SPIN_SECONDS = 0.0002
_MAX_POLL_SECONDS = 1e6  # `poll` takes milliseconds as an int


class WorkerGone(Exception):
    """The worker has ended; `why` is the last report of its supervisor."""

    def __init__(self, why: dict[str, Any]):
        super().__init__(str(why.get("error") or "another process killed it"))
        self.why = why


class Channel:
    """The sockets to a worker and its supervisor, and the pipe with its output.

    Args:
        restore: returns the object of a `result` tag from the worker.
        bounds: limits of its messages.

    Attributes:
        held: bytes and files in the working directory at the worker's start.
        hung_up: whether the worker read nothing for so long that sending is no longer possible.
        output_lock: held while output is read from the pipe and collected.

    Raises:
        OSError: this process has too many open files.
    """

    def __init__(self, restore: Callable[[dict[str, Any]], Any], bounds: wire.Bounds):
        self._reader = wire.FrameReader(restore, bounds=bounds)
        self._send_lock = threading.Lock()
        self.output_lock = threading.Lock()
        self.held: list[int] | None = None
        self._why: dict[str, Any] | None = None
        self._lines = b""
        self._pidfd = -1
        self.hung_up = False
        self._sock, worker_end = socket.socketpair()
        self._control, supervisor_end = socket.socketpair()
        self._wake_writer, self._wake_reader = socket.socketpair()
        self._pipe, worker_pipe = os.pipe()
        self._far_sockets, self._far_pipe = (worker_end, supervisor_end), worker_pipe
        os.set_blocking(self._pipe, False)
        limit = struct.pack("@ll", _SEND_SECONDS, 0)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        limit = struct.pack("@ll", 0, _SOON_MICROSECONDS)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._polls = {
            (frames, output): self._make_poll(frames, output)
            for frames in (True, False)
            for output in (True, False)
        }
        frames_only = select.poll()
        frames_only.register(self._sock.fileno(), select.POLLIN)
        self._spin_frames = Spin(frames_only, _SPIN_SECONDS)
        self._spin_quick = Spin(self._polls[True, False], _SPIN_SECONDS)

    def far_ends(self) -> list[int]:
        """Return the other ends: the worker's socket, the supervisor's socket, and the pipe."""
        return [*(sock.fileno() for sock in self._far_sockets), self._far_pipe]

    def close_far_ends(self) -> None:
        """Close the other ends in this process."""
        for sock in self._far_sockets:
            sock.close()
        os.close(self._far_pipe)

    def send(self, message: list[Any]) -> None:
        """Send a frame. If the worker has ended, `receive` raises the error.

        Raises:
            wire.TooLarge: the frame is too long.
        """
        data = wire.pack(message)
        with self._send_lock:
            try:
                self._sock.sendall(data)
            except OSError:  # the worker has ended, or reads nothing; it may have half a frame
                self._hang_up()

    def wake(self) -> None:
        """Make `receive` return. Any thread may call this."""
        try:
            self._wake_writer.send(b"w")
        except OSError:
            pass

    def _make_poll(self, frames: bool, output: bool) -> select.poll:
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        poll.register(self._wake_reader.fileno(), select.POLLIN)
        if frames:
            poll.register(self._sock.fileno(), select.POLLIN)
        if output:
            poll.register(self._pipe, select.POLLIN)
        return poll

    def receive_soon(self) -> list[wire.Message]:
        """Receive messages that arrive within a few milliseconds, in the thread of a call.

        Raises:
            wire.WireError: the worker sent something other than frames.
        """
        self._spin_frames.wait()
        try:
            data = self._sock.recv(_READ_BYTES)
        except OSError:
            return []
        self._reader.feed(data)
        return self._take_messages()

    def receive(
        self,
        timeout: float | None,
        frames: bool = True,
        output: bool = True,
        quick: bool = False,
        collect: Callable[[bytes], None] | None = None,
    ) -> tuple[list[wire.Message], bytes]:
        """Wait for messages, output or `wake`.

        Args:
            timeout: seconds, or None for no limit.
            frames: whether to read messages; if not, another thread reads them.
            output: whether to read the pipe.
            quick: whether frames may arrive within microseconds; the pipe is not read then.
            collect: called with the output, before another thread can read more of it.

        Raises:
            WorkerGone: the worker has ended, and all its messages and output are read.
            wire.WireError: the worker sent something other than frames.
        """
        messages: list[wire.Message] = []
        printed = b""
        milliseconds = (
            None if timeout is None else max(0, int(min(timeout, _MAX_POLL_SECONDS) * 1000) + 1)
        )
        ready = self._spin_quick.wait() if quick else None
        poll = self._polls[frames, output and not quick]
        for descriptor, _ in ready or poll.poll(milliseconds):
            if descriptor == self._sock.fileno():
                messages = self._read_messages()
            elif descriptor == self._pipe:
                with self.output_lock:
                    printed = self._read_pipe()
                    if collect is not None:
                        collect(printed)
            elif descriptor == self._wake_reader.fileno():
                self._wake_reader.recv(4096)
            elif not messages:
                self._read_control(0.0)
        if self._why is not None and not messages and not printed:
            raise WorkerGone(self._why)
        return messages, printed

    def _read_messages(self) -> list[wire.Message]:
        try:
            data = self._sock.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._unregister(self._sock.fileno())
            self._read_control(_LAST_REPORT_SECONDS)
            self._why = self._why or {"why": "gone"}
            return []
        self._reader.feed(data)
        return self._take_messages()

    def _take_messages(self) -> list[wire.Message]:
        messages = []
        while (message := self._reader.take()) is not None:
            messages.append(message)
        return messages

    def _read_pipe(self) -> bytes:
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self._unregister(self._pipe)
        return data

    def _unregister(self, descriptor: int) -> None:
        for poll in self._polls.values():
            try:
                poll.unregister(descriptor)
            except KeyError:
                pass

    def drain(self) -> bytes:
        """Read the current content of the pipe, up to a limit, since a thread may write forever."""
        pieces = []
        for _ in range(_MAX_DRAIN_READS):
            try:
                data = os.read(self._pipe, _READ_BYTES)
            except OSError:
                break
            pieces.append(data)
            if len(data) < _READ_BYTES:
                break
        return b"".join(pieces)

    def _read_control(self, seconds: float) -> None:
        """Read reports of the supervisor. When it has ended, so has the worker."""
        try:
            self._control.settimeout(seconds)
            data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        except (BlockingIOError, TimeoutError):
            return
        except OSError:
            data, descriptors = b"", []
        if descriptors:
            self._pidfd = descriptors[0]
            os.set_inheritable(self._pidfd, False)
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            report = json.loads(line)
            self.held = report.get("held", self.held)
            if "why" in report:
                self._why = report
        if not data and self._why is None:
            self._why = {"why": "gone"}

    def _hang_up(self) -> None:
        self.hung_up = True
        for sock in (self._control, self._sock):
            try:
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def _close(self) -> None:
        for sock in (self._sock, self._control, self._wake_writer, self._wake_reader):
            sock.close()
        for descriptor in (self._pipe, self._pidfd):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._pidfd = -1
