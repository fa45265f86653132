"""What code can read: an allow-list, held by mounts and by Landlock, each on its own."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from executor_tools import require_layers, with_layers
from paths import ROOT

from ck_pro.exceptions import ConfigError
from ck_pro.executor import CodeExecutor
from ck_pro.executor import core as executor_core
from ck_pro.executor import visible_paths as places
from ck_pro.executor.worker.sandbox import kernel

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's"),
]
LAYERS = executor_core.LAYERS
ONE_BY_ONE = [("mounts",), ("landlock", "capabilities"), LAYERS]
READ = """
import glob, os
def read(path):
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path))
        with open(path, 'rb') as file:
            return bool(file.read(1 << 16))
    except OSError:
        return False
"""


@pytest.fixture
def project(tmp_path):
    """A project as users have it: everything side by side, and other tasks beside this one."""
    for path in (
        "tasks.jsonl",
        ".env",
        "runs/out.jsonl",
        "runs/out.files/task0001/events.jsonl",
        "runs/out.files/task0000/events.jsonl",
        "runs/out.files/task0001/work/answer.txt",
        "shared/data.csv",
        "shared/other.csv",
        "shared/sub/more.csv",
    ):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("PLANTED")
    (tmp_path / "runs/out.files/task0000/work").mkdir()
    return tmp_path


def work_of(project: Path) -> Path:
    return project / "runs/out.files/task0000/work"


def readable_of(executor: CodeExecutor, paths: list[object]) -> list[str]:
    """The paths that code can read."""
    names = [str(path) for path in paths]
    result = executor.run(f"{READ}print([p for p in {names!r} if read(p)])")
    assert result.error is None, result.error
    found: list[str] = eval(result.output)
    return found


@pytest.mark.parametrize("layers", ONE_BY_ONE, ids=["mounts", "landlock", "all"])
def test_code_cannot_read_the_task_file_or_other_tasks(project, isolation, layers):
    require_layers(isolation, *set(layers) - {"cgroup"})
    planted = [path for path in project.rglob("*") if path.is_file()]
    elsewhere = [ROOT / "pyproject.toml", ROOT / "ck_pro/__init__.py", ROOT / "tests"]
    own = work_of(project) / "mine.txt"
    own.write_text("mine")
    with with_layers(*layers)(workdir=work_of(project)) as executor:
        assert set(executor.isolation["active"]) - {"process"} <= set(layers)
        assert readable_of(executor, [*planted, *elsewhere, own]) == [str(own)]
        through = [f"/proc/self/root{path}" for path in planted]
        through += [f"/proc/self/cwd/../../../../{path.name}" for path in planted]
        through += [f"/proc/{os.getpid()}/root{planted[0]}", f"/proc/{os.getpid()}/environ"]
        assert readable_of(executor, through) == []


def test_only_allowed_files_exist_in_the_view(project, isolation):
    require_layers(isolation, "mounts", "namespaces")
    code = (
        "import os\n"
        "print(sorted(os.listdir('/')))\n"
        f"print(os.listdir({str(project)!r}), os.listdir({str(project / 'runs/out.files')!r}))\n"
        "print(os.path.exists('/etc/shadow'), os.path.exists('/etc/ssl/private'))\n"
        "print('PLANTED' in open('/proc/self/mountinfo').read())\n"
    )
    with CodeExecutor(workdir=work_of(project)) as executor:
        lines = executor.run(code).output.splitlines()
        tops = {path.split("/")[1] for path in executor._config()["show"]}
        tops |= {path.split("/")[1] for path in executor._config()["links"]}
        allowed = tops | {"dev", "etc", "proc", "tmp", "var", project.parts[1]}
        assert set(eval(lines[0])) <= allowed
        assert lines[1] == "['runs'] ['task0000']"
        assert lines[2:] == ["False False", "False"]


@pytest.mark.parametrize("layers", ONE_BY_ONE, ids=["mounts", "landlock", "all"])
def test_named_files_and_folders_can_be_read_but_not_written(project, isolation, layers):
    require_layers(isolation, *set(layers) - {"cgroup"})
    (project / "link").symlink_to("shared/sub")
    given = [project / "shared/data.csv", project / "link"]
    with with_layers(*layers)(workdir=work_of(project), readable=given) as executor:
        shown = [project / "shared/data.csv", project / "link/more.csv", project / "link"]
        hidden = [project / ".env", project / "shared/other.csv", project / "runs/out.jsonl"]
        assert readable_of(executor, [*shown, *hidden]) == [str(path) for path in shown]
        write = f"open({str(project / 'shared/data.csv')!r}, 'a')"
        assert executor.run(write).error.type in {"OSError", "PermissionError"}


def test_a_working_directory_inside_a_named_folder_is_still_writable(project, isolation):
    require_layers(isolation, "mounts", "landlock")
    with CodeExecutor(workdir=work_of(project), readable=[project]) as executor:
        assert executor.run("open('new', 'w').write('x')").error is None
        assert executor.run("open('../new', 'w')").error is not None
        assert readable_of(executor, [project / ".env"]) == [str(project / ".env")]


def test_unusable_readable_paths_are_refused(project, monkeypatch):
    work = work_of(project)
    (work / "lure").symlink_to(project / ".env")
    (project / "way").symlink_to(work / "lure")
    monkeypatch.chdir(project)
    for given, why in (
        ("missing.csv", "does not exist"),
        ("", "does not exist"),
        ("/", "name the folders"),
        ("/proc/self", "name the folders"),
        ("/dev", "name the folders"),
        (work / "lure", "is in the working directory"),
        ("way", "is in the working directory"),
    ):
        with pytest.raises(ConfigError, match=why):
            CodeExecutor(workdir=work, readable=[given])
    with CodeExecutor(workdir=work, readable="shared") as executor:
        assert executor.readable == (str(project / "shared"),)


@pytest.mark.parametrize("layers", ONE_BY_ONE, ids=["mounts", "landlock", "all"])
def test_the_interpreter_works_in_the_view(project, isolation, layers):
    require_layers(isolation, *set(layers) - {"cgroup"})
    code = """
import csv, ctypes, email.mime, json, sqlite3, ssl, subprocess, sys, zoneinfo
import pydantic
zoneinfo.ZoneInfo('Europe/Oslo')
print(len(ssl.create_default_context().get_ca_certs()) > 0)
print(subprocess.run([sys.executable, '-c', 'import pydantic; print(1)'], capture_output=True))
print(subprocess.run('date | sort', shell=True, capture_output=True).returncode)
"""
    with with_layers(*layers)(workdir=work_of(project)) as executor:
        result = executor.run(code)
        assert result.error is None, result.error
        assert r"stdout=b'1\n'" in result.output and result.output.endswith("0\n"), result.output


def test_links_on_the_way_to_a_readable_path_are_kept(tmp_path):
    real = tmp_path / "real"
    (real / "lib").mkdir(parents=True)
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(real)
    work = tmp_path / "work"
    work.mkdir()
    found = places.session_paths(work, (str(tmp_path / "first" / "lib"),))
    assert str(real / "lib") in found["show"]
    assert found["links"][str(tmp_path / "first")] == "second"
    assert found["links"][str(tmp_path / "second")] == str(real)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match="does not exist"):
        places.check_readable([tmp_path / "loop"], work)


def test_library_folders_of_the_environment_never_include_the_project(tmp_path, monkeypatch):
    (tmp_path / "project/lib").mkdir(parents=True)
    (tmp_path / "libs").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    given = (
        tmp_path,
        tmp_path / "project",
        tmp_path / "libs",
        tmp_path / "missing",
        "",
        "relative",
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(map(str, given)))
    assert places._library_folders() == [str(tmp_path / "libs")]


def test_landlock_protects_the_files_if_the_mounts_fail(project, isolation, monkeypatch):
    """Where mounts fail half-way, the report says so and the rest still holds."""
    require_layers(isolation, "mounts", "landlock", "namespaces")
    from ck_pro.executor import zygotes

    broken = "from _ck_worker.sandbox import kernel\nkernel._PIVOT_ROOT.clear()\nzygote.main("
    monkeypatch.setattr(zygotes, "_BOOT", zygotes._BOOT.replace("zygote.main(", broken))
    try:
        with CodeExecutor(
            workdir=work_of(project), preload=["stringprep"], memory_mb=64
        ) as executor:
            assert f"not supported on {kernel.MACHINE}" in executor.isolation["missing"]["mounts"]
            assert "landlock" in executor.isolation["active"]
            assert readable_of(executor, [project / ".env", ROOT / "pyproject.toml"]) == []
            assert executor.run("open('new', 'w').write('x')").error is None
        assert (work_of(project) / "new").read_text() == "x"
    finally:
        zygotes._zygotes.pop(("stringprep",)).stop()


SEND = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
def pair(kind):
    ends = (ctypes.c_int * 2)()
    if libc.socketpair(1, kind, 0, ends) < 0:
        return None
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM, fileno=ends[0])
for kind in (1, 2, 3, 5, 2 | socket.SOCK_CLOEXEC, 10):
    one = pair(kind)
    for place in PLACES:
        for send in ('sendto', 'connect', 'sendmsg'):
            try:
                if send == 'sendto':
                    one.sendto(b'x', place)
                elif send == 'sendmsg':
                    one.sendmsg([b'x'], [], 0, place)
                else:
                    one.connect(place)
                    one.send(b'x')
            except (OSError, AttributeError):
                pass
"""


@pytest.mark.parametrize(
    ("layers", "network"),
    [(("seccomp",), False), (("seccomp",), True), (LAYERS, False), (LAYERS, True)],
    ids=["seccomp", "seccomp-network", "all", "all-network"],
)
def test_no_message_reaches_a_socket_outside(project, isolation, layers, network):
    """Also where its path can be seen: a read-only view does not stop what is sent to a socket."""
    require_layers(isolation, *set(layers) - {"cgroup"})
    services = project / "services"
    services.mkdir()
    given = {"workdir": work_of(project), "readable": [services], "network": network}
    with contextlib.ExitStack() as stack, with_layers(*layers)(**given) as executor:
        listeners = [stack.enter_context(one) for one in listen(services)]
        names = [one.getsockname() for one in listeners]
        places = [name if isinstance(name, str) else name.decode() for name in names]
        result = executor.run(f"PLACES = {places!r}" + SEND)
        assert result.error is None, result.error
        for one in listeners:
            with pytest.raises(BlockingIOError):
                one.recv(9) if one.type == socket.SOCK_DGRAM else one.accept()


def listen(folder: Path) -> Iterator[socket.socket]:
    """Sockets of every kind, by path and by abstract name."""
    for number, kind in enumerate((socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET)):
        for place in (str(folder / f"{number}"), f"\0ck-test-{os.getpid()}-{number}"):
            listener = socket.socket(socket.AF_UNIX, kind)
            listener.bind(place)
            listener.setblocking(False)
            if kind != socket.SOCK_DGRAM:
                listener.listen()
            yield listener
