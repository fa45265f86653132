"""Browser servers started as a child of this process, shared by its runs, gone when it goes.

A run that names no server acquires one here. All runs that want the same options share one child;
it is stopped some time after the last of them released it, and at exit. The child holds the read
end of a pipe from us and leaves when that closes, so it also goes when we are killed.
"""

from __future__ import annotations

import atexit
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
from dataclasses import dataclass, field
from pathlib import Path

from ck_pro.exceptions import BrowserServerError
from ck_web.browser import kept_servers

_LISTENING = re.compile(r"listening on (https?://\S+)")
_SECRET_NAME = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
_START_TIMEOUT = 90.0
_STOP_TIMEOUT = 15.0
_LINES_KEPT = 200
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
class Sandbox:
    """A place to act in that is ours for a time: a leased browser of a browser server.

    Attributes:
        id: names it in every request (the wire's `browserId`).
        url: address of the server that holds it.
        expires_at: end of the lease in seconds since 1970; None when the server sets none.
        features: what the server can do beyond the old wire, see `web_server.contract.FEATURES`.
    """

    id: str
    url: str
    expires_at: float | None = None
    features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ServerOptions:
    """How to start a browser server; runs with equal options share one.

    Attributes:
        allow, block: hosts (or host:port) that pages may or may not reach, beyond the default
            policy: the public network only.
        max_browsers: browsers that may be leased at once.
        chromium: path of the browser; found by itself when empty.
    """

    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    max_browsers: int = 16
    chromium: str = ""

    def command(self) -> list[str]:
        """The command line that starts such a server."""
        child = str(Path(__file__).with_name("server_child.py"))
        out = [sys.executable, child, "--host", "127.0.0.1", "--port", "0"]
        out += ["--max-browsers", str(self.max_browsers)]
        for host in self.allow:
            out += ["--allow", host]
        for host in self.block:
            out += ["--block", host]
        return [*out, "--chromium", self.chromium] if self.chromium else out


class BrowserServer:
    """A running child with a browser server on a loopback port, reachable with a secret token.

    Args:
        options: how to start it.

    Raises:
        BrowserServerError: it did not come up; the message has its last words.
    """

    def __init__(self, options: ServerOptions):
        self.options = options
        self.token = secrets.token_urlsafe(24)
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._found: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            options.command(),
            stdin=subprocess.PIPE,  # closes when we end, however we end: the sign to leave
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_child_environment(self.token),
            start_new_session=True,  # Ctrl-C is for us: runs close their browsers first
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, name="browser-server-log", daemon=True)
        self._reader.start()
        self._kept = False
        self.url = self._wait_until_listening()

    @property
    def alive(self) -> bool:
        """Whether the child still runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the child, which leads a process group of its own."""
        return self._process.pid

    def ended(self, within: float) -> str:
        """How the child ended and what it printed last, in one line; empty while it runs.

        Args:
            within: seconds to wait for its end, of which a broken connection may tell first.
        """
        try:
            status = self._process.wait(within)
        except subprocess.TimeoutExpired:
            return ""
        how = f"killed by signal {-status}" if status < 0 else f"exit code {status}"
        return f"{how}: {self.last_words()}"

    def last_words(self) -> str:
        """The last line that the server printed, for error messages."""
        last = next((line for line in reversed(self._lines) if line), "it printed nothing")
        return last.removeprefix("Error: ")

    def keep_parked(self, seconds: float) -> bool:
        """Have the server outlive this process while it holds parked browsers.

        Another process of this user finds it by `kept_servers.token_of`.

        Args:
            seconds: how long at most, from now.

        Returns:
            Whether it will.
        """
        note = kept_servers.write(self.url, self.token, self.pid)
        if note is None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(f"{seconds:g} {self.url} {note}\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # it ended, or was stopped
            return False
        self._kept = True
        return True

    def stop(self) -> None:
        """Stop the server and its Chromium; harmless when repeated.

        A server that keeps parked browsers stops by itself, when they are gone.
        """
        if self._kept:
            self._leave()
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
            os.killpg(self._process.pid, signal.SIGKILL)  # what is left of it, if anything
        except (ProcessLookupError, PermissionError):  # macOS says the latter of a zombie group
            pass
        self._process.wait()
        self._reader.join(_STOP_TIMEOUT)

    def _leave(self) -> None:
        """Let the server go on by itself."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.returncode = 0  # nobody waits for it: no warning that it still runs

    def _read(self) -> None:
        """Keep the last lines of output; report the address when it comes, or the end."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.append(line.rstrip()[:1000])
                found = _LISTENING.search(line)
                if found:
                    self._found.put(found[1])
        self._found.put("")

    def _wait_until_listening(self) -> str:
        try:
            url = self._found.get(timeout=_START_TIMEOUT)
        except queue.Empty:
            url = ""
        if url:
            return url
        self.stop()
        raise BrowserServerError(f"the browser server could not be started: {self.last_words()}")


def _child_environment(token: str) -> dict[str, str]:
    """Our environment without what looks like a secret, and with the way to our packages."""
    env = {k: v for k, v in os.environ.items() if not _SECRET_NAME.search(k)}
    here = str(Path(__file__).resolve().parents[2])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [here, env.get("PYTHONPATH", "")]))
    env["PYTHONUNBUFFERED"] = "1"
    env["CK_WEB_TOKEN"] = token
    return env


@dataclass
class _Shared:
    """A shared server, how many hold it, and the timer that stops it when nobody does."""

    server: BrowserServer
    holders: int = 0
    timer: threading.Timer | None = field(default=None)


def check_chromium(chromium: str = "") -> None:
    """Find out, without starting a server, whether one could: its packages and its browser.

    It is asked in a process of its own, as the server itself is none of our modules.

    Args:
        chromium: path of the browser; found by itself when empty.

    Raises:
        BrowserServerError: something is missing; the message says what to do.
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
        return  # a machine too busy to tell: the first task will
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BrowserServerError(f"no browser can be started here: {said}")


_lock = threading.Lock()
_shared: dict[ServerOptions, _Shared] = {}


def acquire_server(options: ServerOptions) -> BrowserServer:
    """The shared server with these options, started if there is none. Release it when done.

    Raises:
        BrowserServerError: it could not be started.
    """
    with _lock:
        entry = _shared.get(options)
        if entry is not None and not entry.server.alive:
            entry.server.stop()
            entry = None
        if entry is None:
            if not _shared:
                atexit.register(stop_servers)
            entry = _shared[options] = _Shared(BrowserServer(options))
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        entry.holders += 1
        return entry.server


def running_server(url: str) -> BrowserServer | None:
    """The shared server of this process at an address, acquired; None if there is none."""
    with _lock:
        entry = next((e for e in _shared.values() if e.server.url == url), None)
        if entry is None or not entry.server.alive:
            return None
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        entry.holders += 1
        return entry.server


def release_server(server: BrowserServer, keep_seconds: float = 0.0) -> None:
    """Give an acquired server back; the last one to do so has it stopped.

    Args:
        server: from `acquire_server`; once per acquiring.
        keep_seconds: how long to keep an unused server for the next run.
    """
    with _lock:
        entry = _shared.get(server.options)
        if entry is None or entry.server is not server:
            return  # it crashed and was replaced, or all were stopped
        entry.holders -= 1
        if entry.holders > 0:
            return
        if keep_seconds > 0:
            entry.timer = threading.Timer(keep_seconds, _stop_if_unused, [server])
            entry.timer.daemon = True
            entry.timer.start()
            return
        del _shared[server.options]
    server.stop()


def stop_servers() -> None:
    """Stop every server that this process started, used or not. Runs at exit by itself."""
    with _lock:
        entries = list(_shared.values())
        _shared.clear()
        atexit.unregister(stop_servers)
    for entry in entries:
        if entry.timer is not None:
            entry.timer.cancel()
        entry.server.stop()


def _stop_if_unused(server: BrowserServer) -> None:
    with _lock:
        entry = _shared.get(server.options)
        if entry is None or entry.server is not server or entry.holders > 0:
            return
        del _shared[server.options]
    server.stop()
