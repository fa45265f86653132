"""`PrivateDisplay`: an X display that only this run can use, with a few programs."""

from __future__ import annotations

import json
import os
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ck_pro.exceptions import EnvironmentFailure
from ck_pro.executor import remove_folder
from ck_web.desktop import keeper
from ck_web.desktop.framebuffer import Framebuffer

_START_SECONDS = 20.0
_REPLY_SECONDS = 10.0
_FAMILY_WILD = 0xFFFF
_COOKIE = b"MIT-MAGIC-COOKIE-1"


class PrivateDisplay:
    """An X display without a network port, whose clients need a secret.

    A separate process (`ck_web.desktop.keeper`) starts and ends the X server and the programs, so
    that they also end if this process is killed.

    Args:
        width, height: of the screen in pixels.

    Attributes:
        folder: private folder with the secret and the framebuffer.
        name: the display, such as `:99`.

    Raises:
        EnvironmentFailure: Xvfb did not start.
    """

    def __init__(self, width: int, height: int):
        self.folder = Path(tempfile.mkdtemp(prefix="ck-desktop-"))
        self._closing = threading.Lock()
        self._connection: socket.socket | None = None
        try:
            write_authority(self.folder / "auth")
            self.name = self._start(width, height)
            self._connect()
        except BaseException:
            self._disconnect()
            remove_folder(self.folder)
            raise

    @classmethod
    def reconnect(cls, lease: Mapping[str, Any]) -> PrivateDisplay | None:
        """Return the display of an earlier `suspend`; None if it has ended."""
        self = cls.__new__(cls)
        self.folder, self.name = Path(str(lease.get("folder"))), str(lease.get("display"))
        self._closing, self._connection = threading.Lock(), None
        try:
            self._connect()
        except (OSError, EnvironmentFailure):
            return None
        return self

    def _start(self, width: int, height: int) -> str:
        command = [sys.executable, "-I", "-S", keeper.__file__]
        # it may outlive this process, so it must not keep its standard error open
        with (self.folder / "keeper.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, str(self.folder), str(width), str(height)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        assert process.stdout is not None
        with process.stdout as output:
            report = _object(output.readline())
        if "display" not in report:
            process.wait(_START_SECONDS)
            raise EnvironmentFailure(f"no desktop: {report.get('error') or 'Xvfb did not start'}")
        # it outlives this object if the desktop is suspended
        threading.Thread(target=process.wait, daemon=True).start()
        return str(report["display"])

    def _connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_REPLY_SECONDS)
        try:
            connection.connect(str(self.folder / "socket"))
        except OSError:
            connection.close()
            raise
        self._connection = connection
        self._stream: IO[str] = connection.makefile("rw", encoding="utf-8")
        self.framebuffer = Framebuffer(self.folder / "Xvfb_screen0")

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a client."""
        return {"DISPLAY": self.name, "XAUTHORITY": str(self.folder / "auth")}

    def start_program(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        """Start a program on the display.

        Raises:
            EnvironmentFailure: the program does not exist, or the display has ended.
        """
        asked = {"start": [*command], "environment": dict(environment), "folder": str(folder)}
        reply = self._ask(asked)
        if "error" in reply:
            raise EnvironmentFailure(f"cannot start {command[0]!r}: {reply['error']}")

    def programs(self) -> list[tuple[str, int | None]]:
        """Return name and exit code of each program; None for one that runs.

        Raises:
            EnvironmentFailure: the X server has ended.
        """
        reply = self._ask({"status": True})
        if "error" in reply:
            raise EnvironmentFailure(f"the desktop {self.name} failed: {reply['error']}")
        listed = reply["programs"]
        return [(each["command"][0], each["exit_code"]) for each in listed]

    def hold(self, seconds: float) -> None:
        """Keep the display open for so many seconds if this process is killed; 0 revokes that."""
        self._ask({"hold": seconds})

    @property
    def lease(self) -> dict[str, Any]:
        """What `reconnect` needs."""
        return {"folder": str(self.folder), "display": self.name}

    def suspend(self, seconds: float) -> dict[str, Any]:
        """Disconnect; the display stays open for so many seconds. Return what `reconnect` needs."""
        with self._closing:
            self._ask({"keep": seconds})
            self._disconnect()
        return {**self.lease, "expires_at": time.time() + seconds}

    def close(self) -> None:
        """End the display and its programs. Later calls have no effect."""
        with self._closing:
            if self._connection is None:
                return
            with suppress(EnvironmentFailure):
                self._ask({"close": True})
            self._disconnect()
        remove_folder(self.folder)

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            if self._connection is None:
                raise EnvironmentFailure("this desktop is already closed")
            self._stream.write(json.dumps(asked) + "\n")
            self._stream.flush()
            line = self._stream.readline()
        except OSError as e:
            raise EnvironmentFailure(f"the desktop {self.name} does not reply: {e}") from None
        if not line:
            raise EnvironmentFailure(f"the desktop {self.name} has ended")
        return _object(line)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(OSError):
            self._stream.close()
        connection.close()
        self.framebuffer.close()


def write_authority(path: Path) -> None:
    """Write an X authority file with a new secret, for any host and display."""
    fields = [b"", b"", _COOKIE, secrets.token_bytes(16)]  # address, display, name, data
    entry = struct.pack(">H", _FAMILY_WILD)
    entry += b"".join(struct.pack(">H", len(field)) + field for field in fields)
    path.touch(mode=0o600)
    path.write_bytes(entry)


def _object(line: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
