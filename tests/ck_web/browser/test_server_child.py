"""Server child processes: shared, counted, stopped, and never orphaned."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ck_pro.exceptions import BrowserServerError
from ck_web.browser import shared_servers
from ck_web.browser.server_process import (
    BrowserServer,
    ServerOptions,
)
from ck_web.browser.shared_servers import acquire_server, release_server

pytestmark = pytest.mark.integration

# Listens, prints the address and accepts one connection, which breaks when the process exits.
CHILD = """
import os, socket, sys, threading
s = socket.create_server(("127.0.0.1", 0))
print("starting up", os.environ.get("OPENAI_API_KEY"), bool(os.environ["CK_WEB_TOKEN"]))
print(f"listening on http://127.0.0.1:{s.getsockname()[1]}", flush=True)
kept = []
threading.Thread(target=lambda: [kept.append(s.accept()) for _ in range(9)], daemon=True).start()
os.read(0, 1)
"""


@dataclass(frozen=True)
class FakeOptions(ServerOptions):
    """Options that start a child of a few lines instead of a browser server."""

    code: str = CHILD

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.code]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    shared_servers.stop_servers()


def _watch(url: str) -> socket.socket:
    """Connect to the child; the connection breaks when the child exits."""
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def _wait_for_end(connection: socket.socket) -> None:
    """Wait until the process at the other end has exited."""
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def test_runs_share_a_server_until_the_last_releases_it() -> None:
    a = acquire_server(FakeOptions())
    b = acquire_server(FakeOptions())
    other = acquire_server(FakeOptions(allow=("127.0.0.1:1",)))
    assert a is b and other is not a and a.url.startswith("http://127.0.0.1:")
    release_server(a)
    assert a.alive
    release_server(b)
    assert not a.alive and other.alive
    assert acquire_server(FakeOptions()) is not a


def test_an_unused_server_is_kept_for_the_next_run() -> None:
    a = acquire_server(FakeOptions())
    release_server(a, keep_seconds=600)
    assert acquire_server(FakeOptions()) is a
    release_server(a, keep_seconds=0.001)
    with _watch(a.url) as end:
        _wait_for_end(end)


def test_a_crashed_server_is_replaced() -> None:
    a = acquire_server(FakeOptions())
    with _watch(a.url) as end:
        os.kill(a.pid, signal.SIGKILL)
        _wait_for_end(end)
    a.stop()
    b = acquire_server(FakeOptions())
    assert b is not a and b.alive
    release_server(a)
    assert b.alive
    release_server(b)


def test_the_exit_of_a_server_is_reported() -> None:
    server = acquire_server(FakeOptions())
    assert server.exit_report(0.0) == ""
    os.kill(server.pid, signal.SIGKILL)
    assert server.exit_report(60.0).startswith("killed by signal 9: listening on http://")
    server.stop()
    code = CHILD.replace("os.read(0, 1)", "sys.exit(3)")
    server = BrowserServer(FakeOptions(code=code))
    assert server.exit_report(60.0).startswith("exit code 3: ")
    server.stop()


def test_no_secret_reaches_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    server = BrowserServer(FakeOptions())
    server.stop()
    server.stop()
    assert "starting up None True" in server._lines


def test_a_server_that_does_not_start_reports_why() -> None:
    code = "import sys; print('a line'); sys.exit('error: no Chromium was found: install one')"
    with pytest.raises(BrowserServerError) as e:
        BrowserServer(FakeOptions(code=code))
    assert str(e.value).endswith("did not start: no Chromium was found: install one")


def test_options_become_the_command_line() -> None:
    options = ServerOptions(("a:1", "b"), ("c",), 3, "/opt/chromium")
    assert " ".join(options.command()[2:]) == (
        "--host 127.0.0.1 --port 0 --max-browsers 3 --allow a:1 --allow b --block c "
        "--chromium /opt/chromium"
    )


@pytest.mark.worker
def test_the_server_exits_when_its_parent_is_killed(tmp_path: Path) -> None:
    package = tmp_path / "web_server"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(CHILD.replace("os.read(0, 1)", "threading.Event().wait()"))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(shared_servers.__file__).parent.parent)},
    )
    assert parent.stdout is not None
    with parent.stdout, _watch(parent.stdout.readline().strip()) as end:
        parent.kill()
        parent.wait()
        _wait_for_end(end)


# Starts the real child program; the package of the test is first on its path.
PARENT = """
import sys, threading
from pathlib import Path
from ck_web.browser import shared_servers

class Options(shared_servers.ServerOptions):
    def command(self):
        child = Path(shared_servers.__file__).with_name("server_child.py")
        code = f"import sys, runpy; sys.path.insert(1, {sys.argv[1]!r}); "
        return [sys.executable, "-c", code + f"runpy.run_path({str(child)!r}, run_name='__main__')"]

print(shared_servers.acquire_server(Options()).url, flush=True)
threading.Event().wait()
"""
