"""`BrowserServer`: a browser server as a child process.

The child reads from a pipe and exits when the pipe closes. So it exits with its parent, even if the
parent is killed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from ck_pro.exceptions import BrowserServerError, ConfigError
from ck_web.browser import kept_servers

_LISTENING = re.compile(r"listening on (https?://\S+)")
_SECRET_NAME = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
_START_TIMEOUT = 90.0
_STOP_TIMEOUT = 15.0
_LINES_KEPT = 200
_ID_SHOWN = 8  # /status shows so much of a browser's id
_CHECK = """
import importlib.util, sys
for name in ("flask", "playwright"):
    if importlib.util.find_spec(name) is None:
        sys.exit(f'the package {name} is missing: pip install "ck-pro[web]"')
from web_server.chromium.chromium import ChromiumNotFound, find_chromium
try:
    find_chromium(sys.argv[1])
except ChromiumNotFound as e:
    sys.exit(str(e))
"""


@dataclass(frozen=True)
class ServerOptions:
    """How to start a browser server. Runs with equal options share one.

    Attributes:
        allow, block: hosts (or host:port) that pages may or may not reach. The default policy
            allows the public network only.
        max_browsers: maximum number of leased browsers.
        chromium: path of the browser; if empty, search for it.
    """

    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    max_browsers: int = 16
    chromium: str = ""

    def command(self) -> list[str]:
        """Return the command line that starts such a server."""
        child = str(Path(__file__).with_name("server_child.py"))
        out = [sys.executable, child, "--host", "127.0.0.1", "--port", "0"]
        out += ["--max-browsers", str(self.max_browsers)]
        for host in self.allow:
            out += ["--allow", host]
        for host in self.block:
            out += ["--block", host]
        return [*out, "--chromium", self.chromium] if self.chromium else out


class BrowserServer:
    """A child process with a browser server on a loopback port. Requests need its secret token.

    Args:
        options: how to start it.

    Raises:
        BrowserServerError: it did not start; the message has the last line of its output.
    """

    def __init__(self, options: ServerOptions):
        self.options = options
        self.token = secrets.token_urlsafe(24)
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._address: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            options.command(),
            stdin=subprocess.PIPE,  # closes when this process exits: the signal to exit
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_child_environment(self.token),
            start_new_session=True,  # no Ctrl-C from the terminal: runs close their browsers first
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, name="browser-server-log", daemon=True)
        self._reader.start()
        self._kept = False
        self._kept_seconds = 0.0
        self._holds: dict[str, float] = {}
        self._hold_lock = threading.Lock()
        self.url = self._wait_until_listening()

    @property
    def alive(self) -> bool:
        """Whether the child is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the child, the leader of its process group."""
        return self._process.pid

    def exit_report(self, timeout: float) -> str:
        """Return exit code and last output in one line; empty if the child is still running.

        Args:
            timeout: seconds to wait for the exit; a connection may break before it.
        """
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return ""
        how = f"killed by signal {-status}" if status < 0 else f"exit code {status}"
        return f"{how}: {self.last_output()}"

    def last_output(self) -> str:
        """Return the last line that the server printed, for error messages."""
        last = next((line for line in reversed(self._lines) if line), "it printed nothing")
        return last.removeprefix("error: ")

    def keep_parked(self, seconds: float) -> bool:
        """Ask the server to keep running after this process exits, for its parked browsers.

        Another process of this user finds it by `kept_servers.token_of`.

        Args:
            seconds: maximum time from now.

        Returns:
            Whether it will keep running.
        """
        self._kept = self._write_keep(seconds) or self._kept
        return self._kept

    def hold(self, browser_id: str, seconds: float) -> bool:
        """Ask the server to keep running for a browser if this process is killed.

        Args:
            browser_id: the browser.
            seconds: maximum time from now; 0 ends the request.

        Returns:
            Whether the server was asked.
        """
        with self._hold_lock:
            held = {b: s for b, s in self._holds.items() if b != browser_id}
            self._holds = {**held, **({browser_id: seconds} if seconds else {})}
            return self._write_keep(max(self._holds.values(), default=0.0))

    def _write_keep(self, seconds: float) -> bool:
        """Tell the server how long to keep running, and for which browsers that are not parked."""
        file = kept_servers.write(self.url, self.token, self.pid)
        if file is None or self._process.stdin is None:
            return False
        if self._kept:
            seconds = max(seconds, self._kept_seconds)
        self._kept_seconds = seconds
        held = ",".join(browser_id[:_ID_SHOWN] for browser_id in self._holds) or "-"
        try:
            self._process.stdin.write(f"{seconds:g} {self.url} {held} {file}\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # it exited or was stopped
            return False
        return True

    def stop(self) -> None:
        """Stop the server and its Chromium. Later calls have no effect.

        A server that keeps parked browsers stops later, after their leases.
        """
        if self._kept:
            self._detach()
            return
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self._process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)  # any remaining processes
        except (ProcessLookupError, PermissionError):  # macOS raises the latter for a zombie group
            pass
        self._process.wait()
        self._reader.join(_STOP_TIMEOUT)

    def _detach(self) -> None:
        """Leave the server running."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.returncode = 0  # avoids the warning that the child is still running

    def _read(self) -> None:
        """Store the last lines of output; report the address, or "" at the end of the output."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.append(line.rstrip()[:1000])
                found = _LISTENING.search(line)
                if found:
                    self._address.put(found[1])
        self._address.put("")

    def _wait_until_listening(self) -> str:
        try:
            url = self._address.get(timeout=_START_TIMEOUT)
        except queue.Empty:
            url = ""
        if url:
            return url
        self.stop()
        raise BrowserServerError(f"the browser server did not start: {self.last_output()}")


def _child_environment(token: str) -> dict[str, str]:
    """Return this process's environment without secrets, and with this project's packages."""
    env = {k: v for k, v in os.environ.items() if not _SECRET_NAME.search(k)}
    here = str(Path(__file__).resolve().parents[2])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [here, env.get("PYTHONPATH", "")]))
    env["PYTHONUNBUFFERED"] = "1"
    env["CK_WEB_TOKEN"] = token
    return env


def check_chromium(chromium: str = "") -> None:
    """Check that a server can start: its packages and its browser are installed.

    The check runs in a child process, because this package does not import `web_server`.

    Args:
        chromium: path of the browser; if empty, search for it.

    Raises:
        ConfigError: something is missing; the message says what to do.
    """
    command = [sys.executable, "-c", _CHECK, chromium]
    try:
        done = subprocess.run(
            command,
            env=_child_environment(""),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_START_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return  # the machine is too busy; the first task will report a problem
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(f"cannot start a browser: {reason}")
