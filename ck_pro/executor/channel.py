"""The parent's end of what connects it with a worker: frames, output, the supervisor's words."""

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

_SEND_SECONDS = 5
_LAST_WORD_SECONDS = 0.5
_SOON_MICROSECONDS = 5000
_READ = 65_536  # more would have to be mapped and unmapped for every read
_LONGEST_DRAIN = 32
_SPIN_SECONDS = 0.0002
_LONGEST_POLL = 1e6  # seconds; `poll` takes an int of milliseconds


class WorkerGone(Exception):
    """The worker ended. `why` says how: a line of the supervisor's, or empty."""

    def __init__(self, why: dict[str, Any]):
        super().__init__(str(why.get("error") or "it was killed from outside"))
        self.why = why


class Channel:
    """Sockets to a worker and its supervisor, and the pipe of its output.

    Args:
        restore: turns a handle from the worker into the object it stands for.
        bounds: what its messages may cost here.

    Raises:
        OSError: there are no descriptors left.
    """

    def __init__(self, restore: Callable[[dict[str, Any]], Any], bounds: wire.Bounds):
        self._reader = wire.FrameReader(restore, bounds=bounds)
        self._send_lock = threading.Lock()
        self.held: list[int] | None = None  # what was in the working directory at its start
        self._why: dict[str, Any] | None = None
        self._lines = b""
        self._pidfd = -1
        self.hung_up = False
        """It read nothing for so long that nothing more can be sent."""
        self._sock, worker_end = socket.socketpair()
        self._control, supervisor_end = socket.socketpair()
        self._waker, self._wakee = socket.socketpair()
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
        self._spin_frames = wire.Spin(frames_only, _SPIN_SECONDS)
        self._spin_quick = wire.Spin(self._polls[True, False], _SPIN_SECONDS)

    def far_ends(self) -> list[int]:
        """Give the descriptors for the worker: of its socket, its supervisor's, and its pipe."""
        return [*(sock.fileno() for sock in self._far_sockets), self._far_pipe]

    def close_far_ends(self) -> None:
        """Close them here, once the worker has them."""
        for sock in self._far_sockets:
            sock.close()
        os.close(self._far_pipe)

    def send(self, message: list[Any]) -> None:
        """Send a frame. A worker that is gone is no error here: `receive` tells.

        Raises:
            wire.TooLarge: the frame is too long.
        """
        data = wire.pack(message)
        with self._send_lock:
            try:
                self._sock.sendall(data)
            except OSError:  # gone; or it reads nothing, and half a frame is of no use to it
                self._hang_up()

    def wake(self) -> None:
        """Make `receive` return. Any thread may call it."""
        try:
            self._waker.send(b"w")
        except OSError:
            pass

    def _make_poll(self, frames: bool, output: bool) -> select.poll:
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        poll.register(self._wakee.fileno(), select.POLLIN)
        if frames:
            poll.register(self._sock.fileno(), select.POLLIN)
        if output:
            poll.register(self._pipe, select.POLLIN)
        return poll

    def receive_soon(self) -> list[wire.Message]:
        """Receive messages, if some come within milliseconds. For the thread that has the lead.

        Raises:
            wire.WireError: it sent something else than frames.
        """
        self._spin_frames.wait()
        try:
            data = self._sock.recv(_READ)
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
    ) -> tuple[list[wire.Message], bytes]:
        """Wait for messages, output, or a wake-up.

        Args:
            timeout: seconds, or None for ever.
            frames: read messages; else another thread does.
            output: read the pipe; else it is left for later.
            quick: frames may come in microseconds; output is left for later.

        Raises:
            WorkerGone: it ended, and all it said has been given.
            wire.WireError: it sent something else than frames.
        """
        messages: list[wire.Message] = []
        printed = b""
        milliseconds = (
            None if timeout is None else max(0, int(min(timeout, _LONGEST_POLL) * 1000) + 1)
        )
        ready = self._spin_quick.wait() if quick else None
        poll = self._polls[frames, output and not quick]
        for descriptor, _ in ready or poll.poll(milliseconds):
            if descriptor == self._sock.fileno():
                messages = self._read_messages()
            elif descriptor == self._pipe:
                printed = self._read_pipe()
            elif descriptor == self._wakee.fileno():
                self._wakee.recv(4096)
            elif not messages:
                self._read_control(0.0)
        if self._why is not None and not messages and not printed:
            raise WorkerGone(self._why)
        return messages, printed

    def _read_messages(self) -> list[wire.Message]:
        try:
            data = self._sock.recv(_READ, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._forget(self._sock.fileno())
            self._read_control(_LAST_WORD_SECONDS)
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
            data = os.read(self._pipe, _READ)
        except BlockingIOError:
            return b""
        if not data:
            self._forget(self._pipe)
        return data

    def _forget(self, descriptor: int) -> None:
        for poll in self._polls.values():
            try:
                poll.unregister(descriptor)
            except KeyError:
                pass

    def drain(self) -> bytes:
        """Read what is in the pipe now (a flood in the background never ends: not all of it)."""
        pieces = []
        for _ in range(_LONGEST_DRAIN):
            try:
                data = os.read(self._pipe, _READ)
            except OSError:
                break
            pieces.append(data)
            if len(data) < _READ:
                break
        return b"".join(pieces)

    def _read_control(self, seconds: float) -> None:
        """Read lines of the supervisor's that come in that time; its end is the worker's end."""
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
        self._lines += data
        for line in self._lines.split(b"\n")[:-1]:
            said = json.loads(line)
            self.held = said.get("held", self.held)
            if "why" in said:
                self._why = said
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
        for sock in (self._sock, self._control, self._waker, self._wakee):
            sock.close()
        for descriptor in (self._pipe, self._pidfd):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._pidfd = -1
