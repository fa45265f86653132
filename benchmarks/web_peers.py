"""The peers of `web.py`: browsergym-core, browser-use, @playwright/mcp.

Their requirements conflict, so they are installed separately: the Python peers in the environment
of `--peer-python`, the third one in the folder of `--mcp`, for Node. All use the same Chromium,
headless, 1280 x 720, without screenshots.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from web_contenders import Contender, ContenderFailed

from web_server.chromium.chromium import find_chromium

PEERS = ("browsergym", "browser-use", "playwright-mcp")
_HERE = Path(__file__).resolve().parent
_TIMEOUT = 180.0  # seconds for one request


class PeerMissing(Exception):
    """A peer is not installed. The message is one line with the command."""


class Lines:
    """A child process that exchanges lines of JSON.

    Args:
        command: the command to start it.
        folder: working directory and temporary folder.
    """

    def __init__(self, command: list[str], folder: str) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env={**os.environ, "TMPDIR": folder},
        )

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def send(self, message: dict[str, Any]) -> None:
        """Write one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def receive(self, accept: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """Return the next accepted line; kill the child after the timeout."""
        assert self._process.stdout is not None
        watch = threading.Timer(_TIMEOUT, self._process.kill)
        watch.start()
        try:
            for line in self._process.stdout:
                message: dict[str, Any] = json.loads(line)
                if accept(message):
                    return message
        finally:
            watch.cancel()
        raise ContenderFailed(f"{self._process.args!r} ended, or did not answer in {_TIMEOUT:g} s")

    def stop(self) -> None:
        """Close its input, which ends it; kill it after 30 s."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class PythonPeer:
    """A peer in its own Python environment, behind `web_peer_lines`."""

    floor = False

    def __init__(self, name: str, python: str, script: str, *arguments: str) -> None:
        self.name = name
        self._folder = tempfile.mkdtemp(prefix="peer")
        executable = str(Path(python).absolute()) if "/" in python else python
        command = [executable, str(_HERE / script), find_chromium(), *arguments]
        self._lines = Lines(command, self._folder)
        self._lines.receive()

    def _ask(self, **request: Any) -> dict[str, Any]:
        self._lines.send(request)
        reply = self._lines.receive(lambda message: True)
        if "error" in reply:
            raise ContenderFailed(f"{self.name}: {reply['error']}")
        return reply

    def open(self, url: str) -> tuple[Any, str]:
        reply = self._ask(do="open", url=url)
        return reply["session"], reply["text"]

    def click(self, session: Any) -> str:
        return str(self._ask(do="click", session=session)["text"])

    def close(self, session: Any) -> None:
        self._ask(do="close", session=session)

    def pids(self) -> list[int]:
        return [self._lines.pid]

    def stop(self) -> None:
        self._lines.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class Mcp:
    """@playwright/mcp over standard input and output, with a process for each session.

    Args:
        cli: its `cli.js`.
        settle: milliseconds for `--timeout-settle`; None for its default.
    """

    floor = False

    def __init__(self, name: str, cli: Path, settle: int | None = None) -> None:
        self.name = name
        self._folder = tempfile.mkdtemp(prefix="mcp")
        self._command = ["node", str(cli), "--headless", "--isolated", "--no-sandbox"]
        self._command += ["--executable-path", find_chromium(), "--viewport-size", "1280x720"]
        self._command += ["--snapshot-mode", "none", "--output-dir", self._folder]
        if settle is not None:
            self._command += ["--timeout-settle", str(settle)]
        self._running: list[Lines] = []
        self._number = 0

    def _ask(self, lines: Lines, method: str, **params: Any) -> str:
        self._number += 1
        number = self._number
        lines.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        reply = lines.receive(lambda message: message.get("id") == number)
        result = reply.get("result", {})
        text = "".join(part.get("text", "") for part in result.get("content", []))
        if "error" in reply or result.get("isError"):
            raise ContenderFailed(f"{self.name}: {reply.get('error') or text}")
        return text

    def _tool(self, lines: Lines, name: str, **arguments: Any) -> str:
        return self._ask(lines, "tools/call", name=name, arguments=arguments)

    def open(self, url: str) -> tuple[Any, str]:
        lines = Lines(self._command, self._folder)
        self._running.append(lines)
        client = {"name": "benchmark", "version": "1"}
        self._ask(
            lines, "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo=client
        )
        lines.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._tool(lines, "browser_navigate", url=url)
        text = self._tool(lines, "browser_snapshot")
        reference = text.split('button "Count"')[1].split("[ref=")[1].split("]")[0]
        return (lines, reference), text

    def click(self, session: Any) -> str:
        lines, reference = session
        self._tool(lines, "browser_click", element="Count", target=reference, ref=reference)
        return self._tool(lines, "browser_snapshot")

    def close(self, session: Any) -> None:
        self._running.remove(session[0])
        session[0].stop()

    def pids(self) -> list[int]:
        return [lines.pid for lines in self._running]

    def stop(self) -> None:
        while self._running:
            self._running.pop().stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def peers(names: list[str], python: str, mcp: str) -> list[Contender]:
    """Start the peers with these names.

    Args:
        names: some of `PEERS`.
        python: a Python with browsergym-core and browser-use.
        mcp: a folder with `node_modules/@playwright/mcp`.

    Raises:
        PeerMissing: a peer is not installed.
    """
    made: list[Contender] = []
    try:
        for name in names:
            made += _make(name, python, mcp)
    except PeerMissing:
        for contender in made:
            contender.stop()
        raise
    return made


def _make(name: str, python: str, mcp: str) -> list[Contender]:
    if name == "browsergym":
        _need(python, "browsergym.core", "browsergym-core")
        return [
            PythonPeer("browsergym", python, "web_peer_browsergym.py", "0.5"),
            PythonPeer("browsergym, no delay", python, "web_peer_browsergym.py", "0"),
        ]
    if name == "browser-use":
        _need(python, "browser_use", "browser-use")
        return [PythonPeer("browser-use", python, "web_peer_browser_use.py")]
    cli = Path(mcp).absolute() / "node_modules/@playwright/mcp/cli.js"
    if not cli.is_file() or shutil.which("node") is None:
        raise PeerMissing(
            f"@playwright/mcp is not in {mcp!r}: npm install --prefix peers @playwright/mcp, "
            "then use --mcp peers (requires Node)"
        )
    return [Mcp("playwright-mcp", cli), Mcp("playwright-mcp, settle 0", cli, settle=0)]


def _need(python: str, module: str, package: str) -> None:
    check = f"import importlib.util as u; raise SystemExit(u.find_spec({module!r}) is None)"
    try:
        found = subprocess.run([python, "-c", check], capture_output=True, timeout=60)
    except OSError:
        found = None
    if found is None or found.returncode:
        raise PeerMissing(
            f"{package} is not installed for {python}: python -m venv peers && "
            f"peers/bin/pip install {package}, then use --peer-python peers/bin/python"
        )
