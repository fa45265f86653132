"""The process that keeps one private X display: it starts Xvfb and the programs, and ends them.

It is run as a script, with the standard library alone. Its owner connects to a socket and sends
one JSON object per line; each gets one line as the reply:

    {"start": ["xterm"], "environment": {...}}   -> {"number": 0}
    {"status": true}                              -> {"programs": [{"command", "exit_code"}]}
    {"keep": 1800}      the display stays open for so many seconds after the owner disconnects
    {"close": true}     the display and its programs end before the reply
    {"hold": 1800}      the same as `keep` if the owner is killed; 0 revokes it

If the owner disconnects in another way (it was killed), the display ends at once, unless it is
held.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

_START_SECONDS = 20.0
_END_SECONDS = 3.0
_MAX_PROGRAMS = 50


class Display:
    """Xvfb and the programs on its display.

    Args:
        folder: private folder with the file `auth`; the framebuffer is created there.
        width, height: of the screen in pixels.
    """

    def __init__(self, folder: Path, width: int, height: int):
        self.programs: list[tuple[list[str], subprocess.Popen[bytes]]] = []
        self._folder = folder
        reader, writer = os.pipe()
        command = [
            *("Xvfb", "-displayfd", str(writer), "-screen", "0", f"{width}x{height}x24"),
            *("-fbdir", str(folder), "-auth", str(folder / "auth")),
            *("-nolisten", "tcp", "-noreset", "-nocursor"),
        ]
        with (folder / "xvfb.log").open("wb") as log:
            self._server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer]
            )
        os.close(writer)
        with open(reader, encoding="ascii") as pipe:  # noqa: PTH123 - a file descriptor
            number = pipe.readline().strip()
        if not number:
            lines = (folder / "xvfb.log").read_text(errors="replace").strip().splitlines()
            raise RuntimeError(f"Xvfb did not start: {lines[-1] if lines else 'no output'}")
        self.name = f":{number}"

    def start(self, command: list[str], environment: dict[str, str], folder: str) -> int:
        """Start a program; return its number."""
        if len(self.programs) >= _MAX_PROGRAMS:
            raise RuntimeError(f"a desktop starts at most {_MAX_PROGRAMS} programs")
        given = {"DISPLAY": self.name, "XAUTHORITY": str(self._folder / "auth"), **environment}
        with (self._folder / "programs.log").open("ab") as log:
            program = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=given,
                cwd=folder,
                start_new_session=True,
            )
        self.programs.append((command, program))
        return len(self.programs) - 1

    def status(self) -> list[dict[str, Any]]:
        """Return the programs with their exit codes; None for one that runs.

        Raises:
            RuntimeError: the X server has ended.
        """
        if self._server.poll() is not None:
            raise RuntimeError(f"its X server ended with exit code {self._server.returncode}")
        return [{"command": c, "exit_code": p.poll()} for c, p in self.programs]

    def close(self) -> None:
        """End all programs, then the X server. Later calls have no effect."""
        if self._server.poll() is not None and all(p.poll() is not None for _, p in self.programs):
            return
        for _, program in self.programs:
            _signal_group(program, signal.SIGTERM)
        for _, program in self.programs:
            try:
                program.wait(_END_SECONDS / max(1, len(self.programs)))
            except subprocess.TimeoutExpired:
                pass
            _signal_group(program, signal.SIGKILL)
        self._server.terminate()
        try:
            self._server.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()


def _signal_group(program: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(program.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _answer(display: Display, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        if "start" in asked:
            return {"number": display.start(asked["start"], asked["environment"], asked["folder"])}
        return {"programs": display.status()}
    except (OSError, RuntimeError) as e:
        return {"error": str(e)}


def _serve(display: Display, owner: socket.socket) -> float:
    """Serve one owner; return for how many seconds the display stays open after it left."""
    held = 0.0
    with owner, owner.makefile("rw", encoding="utf-8") as stream:
        for line in stream:
            asked = json.loads(line)
            if "close" in asked or "keep" in asked:
                if "close" in asked:
                    display.close()
                stream.write("{}\n")
                stream.flush()
                return float(asked.get("keep", 0))
            held = float(asked.get("hold", held))
            stream.write(json.dumps(_answer(display, asked)) + "\n")
            stream.flush()
    return held


def main(folder: Path, width: int, height: int) -> None:
    """Keep a display until its last owner leaves; report the start on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, which then closes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
        server.listen(1)
        try:
            display = Display(folder, width, height)
        except (OSError, RuntimeError) as e:
            sys.stdout.write(json.dumps({"error": str(e)}) + "\n")
            return
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            sys.stdout.write(json.dumps({"display": display.name}) + "\n")
            sys.stdout.flush()
            seconds = _START_SECONDS
            while seconds > 0:
                server.settimeout(seconds)
                try:
                    owner, _ = server.accept()
                except TimeoutError:
                    break
                owner.settimeout(None)
                try:
                    seconds = _serve(display, owner)
                except (OSError, ValueError, KeyError):  # the owner was killed within a request
                    seconds = 0.0
        finally:
            display.close()
            shutil.rmtree(folder, ignore_errors=True)  # a killed owner cannot remove it


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
