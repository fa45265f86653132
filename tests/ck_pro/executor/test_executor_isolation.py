"""The layers of isolation, alone and together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from executor_tools import FILL_FOLDER, TRY, has_ended, require_layers, with_layers

from ck_pro.exceptions import ConfigError, IsolationError
from ck_pro.executor import CodeExecutor, zygotes
from ck_pro.executor import core as executor_core

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(sys.platform != "linux", reason="the layers require Linux"),
]


LAYERS = executor_core.LAYERS


def run_with(layers, code, tmp_path, **kwargs):
    with with_layers(*layers)(workdir=tmp_path / "work", **kwargs) as executor:
        assert set(executor.isolation["active"]) <= {"process", "network", *layers}
        result = executor.run(TRY + code)
        assert result.error is None, result.error
        return result.output.split("\n")[:-1]


def test_the_report_names_every_layer(isolation):
    assert set(isolation["active"]) | set(isolation["missing"]) == set(LAYERS)
    assert not set(isolation["active"]) & set(isolation["missing"])
    assert all(isinstance(why, str) and why for why in isolation["missing"].values())


UNFENCED_AGENT = """
import os, sys
from ck_pro import CodeExecutor
class Unfenced(CodeExecutor):
    layers = ("process", "rlimits", "seccomp", "capabilities")
code = '''
import os
def can_open(path):
    try:
        open(path, "rb").read(1)
    except OSError:
        return False
    return True
parents, pid = [], os.getppid()
while pid > 1:
    parents.append(pid)
    stat = open(f"/proc/{pid}/stat").read()
    if pid == AGENT: break
    pid = int(stat.rpartition(") ")[2].split()[1])
files = [f"/proc/{pid}/{name}" for pid in parents for name in ("environ", "mem", "maps")]
print(len(parents), list(filter(can_open, files)))
'''
with Unfenced(workdir=sys.argv[1]) as executor:
    print(executor.run(code.replace("AGENT", str(os.getpid()))).output, end="")
"""


def test_without_landlock_and_namespaces_code_cannot_open_the_memory_of_the_agent(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", UNFENCED_AGENT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "3 []\n"  # the supervisor, the zygote and the agent


def test_without_layers_it_still_runs(tmp_path):
    with with_layers()(workdir=tmp_path) as executor:
        assert executor.isolation["active"] == ["process"]
        assert executor.run("1 + 1").value == "2"
        assert executor.run("while True: pass", timeout=0.2).error.type == "TimeoutError"
        result = executor.run(
            "import subprocess\n"
            "p = subprocess.Popen(['sleep', '600'], start_new_session=True)\np.pid"
        )
        pid = int(result.value)
        assert Path(f"/proc/{pid}").exists()
    assert has_ended(pid)


def test_rlimits_alone(tmp_path):
    code = """
import resource as r
print(r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_NOFILE)[1] < 10000)
print(attempt(bytearray, 20 << 30))
"""
    assert run_with(["rlimits"], code, tmp_path) == ["(0, 0) True", "MemoryError"]


def test_namespaces_alone(tmp_path, isolation):
    require_layers(isolation, "namespaces")
    code = "import os\nprint(os.getpid(), os.getppid(), os.uname().nodename)"
    assert run_with(["namespaces"], code, tmp_path) == ["2 1 sandbox"]


def test_network_alone(tmp_path, isolation):
    require_layers(isolation, "network", "namespaces")
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket\nprint(attempt(socket.create_connection, ('127.0.0.1', {port}), 5))"
        assert run_with(["network"], code, tmp_path) == ["ConnectionRefusedError"]
        with CodeExecutor(workdir=tmp_path, network=True) as executor:
            assert "network=True" in executor.isolation["missing"]["network"]
            assert executor.run(TRY + code).output == "YES\n"
            rest = set(executor.isolation["active"])
        assert rest == set(isolation["active"]) - {"network"}


def test_the_network_namespace_has_a_loopback_device(tmp_path, isolation):
    require_layers(isolation, "network", "namespaces")
    code = """
import socket
server = socket.create_server(('127.0.0.1', 0))
print(attempt(socket.create_connection, server.getsockname(), 5))
"""
    assert run_with(LAYERS, code, tmp_path) == ["YES"]


FILES = """
import contextlib
import errno
import os
print(attempt(open, SECRET), attempt(open, OUTSIDE, 'w'), attempt(open, '/etc/new', 'w'))
print(attempt(open, 'inside', 'w'), attempt(os.listdir, '.'), attempt(open, '/dev/null', 'w'))
"""


@pytest.mark.parametrize("layer", ["mounts", "landlock"])
def test_one_layer_alone_protects_the_files(tmp_path, isolation, monkeypatch, layer):
    require_layers(isolation, layer)
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    code = f"SECRET = {str(home / 'secret')!r}; OUTSIDE = {str(tmp_path / 'new')!r}\n" + FILES
    first, second = run_with([layer], code, tmp_path)
    of_secret, _, of_system = first.split()
    assert "YES" not in (of_secret, of_system)
    assert second == "YES YES YES"
    assert not (tmp_path / "new").exists()


def test_a_workdir_in_the_home_directory(tmp_path, isolation, monkeypatch):
    require_layers(isolation, "mounts", "landlock")
    work = tmp_path / "project" / "run"
    (tmp_path / "secret").write_text("x")
    monkeypatch.setenv("HOME", str(tmp_path))
    with CodeExecutor(workdir=work) as executor:
        code = f"import os\nprint(attempt(open, {str(tmp_path / 'secret')!r}))"
        assert "YES" not in executor.run(TRY + code).output
        executor.run("open('made.txt', 'w').write('x')")
        assert executor.run("import email.mime, sqlite3, csv").error is None
        assert executor.run("import os; os.getcwd()").value == repr(str(work.resolve()))
    assert (work / "made.txt").read_text() == "x"


def test_an_installation_inside_the_workdir_stays_read_only(tmp_path, isolation):
    require_layers(isolation, "mounts")

    class Inside(CodeExecutor):
        def _config(self):
            found = super()._config()
            return {**found, "show": [*found["show"], str(tmp_path / "venv")]}

    (tmp_path / "venv").mkdir()
    with Inside(workdir=tmp_path) as executor:
        code = "print(attempt(open, 'venv/x', 'w'), attempt(open, 'x', 'w'))"
        assert executor.run(TRY + code).output == "OSError YES\n"


def test_pseudo_terminals_and_processes_of_all_kinds_work(tmp_path):
    code = """
import multiprocessing, os, pty
main, child = pty.openpty()
os.write(child, b'x')
print(os.read(main, 9))
for kind in ('fork', 'spawn'):
    process = multiprocessing.get_context(kind).Process(target=print, args=(kind,))
    process.start()
    process.join()
print(attempt(open, '/dev/ptmx'))
"""
    expected = ["b'x'", "fork", "spawn", "YES"]
    assert run_with(LAYERS, code, tmp_path) == expected


def test_seccomp_alone(tmp_path, isolation):
    require_layers(isolation, "seccomp")
    code = """
import os, socket, threading, subprocess, asyncio
print(attempt(socket.socket, socket.AF_UNIX), attempt(os.chroot, '.'))
print(attempt(socket.socketpair), attempt(subprocess.run, ['true'], check=True))
threading.Thread(target=print, args=('thread',)).start()
"""
    assert run_with(["seccomp"], code, tmp_path) == [
        "PermissionError PermissionError",
        "YES YES",
        "thread",
    ]


def test_capabilities_alone(tmp_path, isolation):
    require_layers(isolation, "capabilities")
    code = """
import subprocess
for text in (open('/proc/self/status').read(), subprocess.getoutput('cat /proc/self/status')):
    print([int(l.split()[1], 16) for l in text.split('\\n') if l.startswith(('CapEff', 'CapPrm'))])
"""
    assert run_with(["capabilities"], code, tmp_path) == ["[0, 0]", "[0, 0]"]


def test_required_isolation(tmp_path, isolation):
    with CodeExecutor(workdir=tmp_path, require_isolation=isolation["active"]) as executor:
        assert executor.run("1").value == "1"
    if isolation["missing"]:
        with pytest.raises(IsolationError, match=next(iter(isolation["missing"]))):
            CodeExecutor(workdir=tmp_path, require_isolation="full")
    else:
        CodeExecutor(workdir=tmp_path, require_isolation="full").close()
    with pytest.raises(IsolationError, match="seccomp"):
        with_layers("rlimits")(workdir=tmp_path, require_isolation={"seccomp"})
    with pytest.raises(ConfigError, match="unknown"):
        CodeExecutor(workdir=tmp_path, require_isolation="most")


def test_on_other_systems_there_are_a_process_and_rlimits(tmp_path, monkeypatch):

    elsewhere = (
        "from _ck_worker import supervisor\n"
        "from _ck_worker.sandbox import kernel\n"
        "kernel.LINUX = False\n"
        "supervisor.children = lambda: []\n"
        "zygote.main("
    )
    monkeypatch.setattr(zygotes, "_BOOT", zygotes._BOOT.replace("zygote.main(", elsewhere))
    try:
        with CodeExecutor(
            functions={"double": lambda x: 2 * x},
            workdir=tmp_path,
            preload=["stringprep"],
            disk_mb=50,
        ) as executor:
            assert executor.isolation["active"] == ["process", "rlimits"]
            assert set(executor.isolation["missing"].values()) == {"Linux only"}
            assert executor.run("import subprocess\ndouble(21)").value == "42"
            left = executor.run("p = subprocess.Popen(['sleep', '600'])\np.pid")
            assert executor.run("while True: pass", timeout=0.3).error.type == "TimeoutError"
            assert has_ended(int(left.value))
            assert executor.run("bytearray(20 << 30)").error.type == "MemoryError"
            result = executor.run("kind, keep = 'kept', []" + FILL_FOLDER, timeout=100)
            assert result.error.type == "OSError" and "50 MB" in result.error.message
            assert executor.run("1").value == "1"
        with pytest.raises(IsolationError, match="Linux only"):
            CodeExecutor(workdir=tmp_path, preload=["stringprep"], require_isolation="full")
    finally:
        zygotes._zygotes.pop(("stringprep",)).stop()
