"""Browser servers for the tests: in this process, and as a child."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from server_site import Site, until

from web_server.chromium.chromium import find_chromium
from web_server.chromium.memory import process_tree
from web_server.network.policy import Policy
from web_server.pool.options import PoolOptions


@contextmanager
def serving(site: Site, **options: Any) -> Iterator[Any]:
    """Run a `Server` on threads in this process; it may reach the site.

    Args:
        site: the one place that its pages may reach.
        options: of `PoolOptions`.
    """
    from web_server.api.server import Server

    policy = Policy.of(allow=[f"127.0.0.1:{site.server_port}"])
    server = Server(PoolOptions(chromium=find_chromium(), policy=policy, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(20)


class Process:
    """`python -m web_server` as a child; as a context it is ended at the end.

    Args:
        arguments: of the command line.
        site: what its pages may reach, if anything.
        more: arguments of `subprocess.Popen`.

    Attributes:
        url: where it listens.
        family: ids of its processes when it had started.
    """

    def __init__(self, *arguments: str, site: Site | None = None, **more: Any) -> None:
        command = [sys.executable, "-m", "web_server", "--port", "0", *arguments]
        if site is not None:
            command += ["--allow", f"127.0.0.1:{site.server_port}"]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": self._log, "text": True}
        self.child = subprocess.Popen(command, **streams, **more)
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line + self.log()
        self.url = line.split()[-1]
        self.family = process_tree(self.child.pid)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.child.poll() is None:
            self.end(signal.SIGTERM)
        self._log.close()

    def log(self) -> str:
        """The output on standard error."""
        self._log.seek(0)
        return self._log.read()

    def processes(self, *parts: str) -> list[int]:
        """Ids of its Chromium processes whose command line contains all these parts."""
        return [
            pid
            for pid in process_tree(self.child.pid)
            if all(part in _command(pid) for part in parts)
        ]

    def chromium(self) -> int:
        """Id of the main process of Chromium."""
        return self.chromiums()[0]

    def chromiums(self) -> list[int]:
        """Ids of the main processes of all Chromiums."""
        found = self.processes("--remote-debugging-pipe")
        return [pid for pid in found if "--type=" not in _command(pid)]

    def end(self, number: int) -> int:
        """Send a signal, wait for all processes, and return the exit code."""
        family = set(self.family) | set(process_tree(self.child.pid))
        self.child.send_signal(number)
        code = self.child.wait(60)
        assert self.child.stdout is not None
        self.child.stdout.close()
        assert until(lambda: not any(map(_runs, family)), 60)
        return code


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
