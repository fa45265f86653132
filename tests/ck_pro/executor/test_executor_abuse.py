"""Attacks by code. Each one runs for real; afterwards everything outside must be unchanged."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from executor_abuse_cases import CASES, Case
from executor_tools import descendants
from paths import ROOT

from ck_pro.executor import CodeExecutor
from ck_pro.executor.zygotes import _zygotes

pytestmark = [pytest.mark.worker, pytest.mark.slow]
ABSTRACT = f"\0ck-executor-test-{os.getpid()}"


def left_over() -> set[int]:
    """Wait for the processes of all zygotes to end; return those that are still running."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        left = set().union(*(descendants(z._process.pid) for z in _zygotes.values()))
        if not left:
            break
        time.sleep(0.01)
    return left


class Listener:
    """Counts connections to sockets of the parent."""

    def __init__(self, folder: Path):
        self.unix = str(folder / "listener")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.path = socket.socket(socket.AF_UNIX)
        self.path.bind(self.unix)
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(ABSTRACT)
        self.all = (self.tcp, self.path, self.abstract)
        for one in self.all:
            one.listen()
            one.setblocking(False)

    def reached(self) -> int:
        count = 0
        for one in self.all:
            try:
                one.accept()[0].close()
                count += 1
            except BlockingIOError:
                pass
        return count

    def close(self) -> None:
        for one in self.all:
            one.close()


@pytest.fixture(scope="module")
def listener(tmp_path_factory):
    found = Listener(tmp_path_factory.mktemp("listener"))
    yield found
    found.close()


@pytest.fixture
def outside(tmp_path, monkeypatch):
    secret = "PLANTED-SECRET-VALUE"
    place = tmp_path / "outside"
    place.mkdir()
    (place / "kept").write_text("as it was")
    (tmp_path / "secret.txt").write_text(secret)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text(secret)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    return tmp_path


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
        if "work" not in path.relative_to(folder).parts
    }


def prelude(outside: Path, listener: Listener) -> str:
    port = listener.tcp.getsockname()[1]
    return (
        f"SECRET_FILE = {str(outside / 'secret.txt')!r}; OUTSIDE = {str(outside / 'outside')!r}; "
        f"HOME = {str(outside / 'home')!r}; PORT = {port}; UNIX = {listener.unix!r}; "
        f"ABSTRACT = {ABSTRACT!r}; PARENT = {os.getpid()}\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the layers require Linux")
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.section}/{c.name.replace(' ', '-')}")
def test_abuse(case: Case, outside: Path, listener: Listener):
    release = threading.Event()
    functions = {"add": lambda a, b: a + b, "wait": lambda: release.wait(60)}
    before = snapshot(outside)
    work = outside / "work"
    with CodeExecutor(functions=functions, workdir=work, memory_mb=512) as executor:
        executor.run("pass") if "frame(" not in case.code else None
        limit = 0.5 if case.expect.get("error") == {"TimeoutError"} else 30
        if "TimeoutError" in case.expect.get("error", ()):
            limit = min(limit, 1)
        began = time.monotonic()
        result = executor.run(prelude(outside, listener) + case.code, timeout=limit)
        took = time.monotonic() - began
        release.set()
        after = executor.run("add(1, 1)")
        assert after.value == "2" and after.error is None, after
    check(case, result)
    assert took < limit + 30
    assert listener.reached() == 0
    assert snapshot(outside) == before
    assert left_over() == set()


def check(case: Case, result) -> None:
    expect = case.expect
    error = result.error.type if result.error else None
    if "error" in expect:
        assert error in expect["error"], result
    elif "ends" not in expect:
        assert error is None, result
    if "output" in expect:
        assert result.output == expect["output"], result
    if "has" in expect:
        assert expect["has"] in result.output
    if "lost" in expect:
        assert result.state_lost == expect["lost"], result
    assert len(result.output) < 70_000
    assert len(result.value or "") < 70_000
    assert "YES" not in result.output


AS_ORDINARY_USER = """
set -e
mount --make-rprivate /
base=$(mktemp -d)
mount --bind "$1" "$base"
top=/$(echo "$1" | cut -d/ -f2)
if [ ! -r "$1" ] || [ "$(stat -c %a "$top")" = 700 ]; then
    mount -t tmpfs -o mode=755 tmpfs "$top"
    mkdir -p "$1"
    mount --bind "$base" "$1"
fi
umount "$base"
rmdir "$base"
shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all "$@"
"""


# These cases do not depend on the user's rights. With CK_LONG=1 they run as an ordinary user too.
TESTED = ("abuse", "isolation", "files", "memory", "disk")
INDEPENDENT_OF_USER = ["time/", "output/", "protocol/", "recursion", "number_of_files"]
INDEPENDENT_OF_USER += ["other_systems", "checked_early", "removed_during"]


def can_change_user() -> bool:
    tools = all(shutil.which(tool) for tool in ("unshare", "setpriv", "mount"))
    return sys.platform == "linux" and os.geteuid() == 0 and tools


@pytest.mark.skipif(not can_change_user(), reason="needs root, unshare and setpriv")
@pytest.mark.timeout(600)
def test_everything_as_an_ordinary_user():
    """Run this file and the files about isolation again with another user's rights."""
    folder = f"/tmp/ck-executor-user-{os.getpid()}"
    here = Path(__file__).parent
    command = ["unshare", "-m", "sh", "-c", AS_ORDINARY_USER, "sh", sys.base_prefix]
    command += [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    if os.environ.get("CK_LONG") != "1":
        command += ["-k", " and ".join(f"not {name}" for name in INDEPENDENT_OF_USER)]
    command += ["--basetemp", folder, "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    files = [str(here / f"test_executor_{name}.py") for name in TESTED]
    environment = {**os.environ, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
