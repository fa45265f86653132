"""The layers of isolation, one by one and together, and what becomes of workers."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from paths import ROOT

from ck_pro.exceptions import ConfigError, ExecutorError, IsolationError
from ck_pro.executor import CodeExecutor
from ck_pro.executor import core as executor_core
from ck_pro.executor.process import LostAtStart, WorkerProcess
from ck_pro.executor.worker import cgroup, seccomp

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's"),
]
LAYERS = executor_core.LAYERS
TRY = """
def attempt(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "YES"
"""


def with_layers(*layers: str) -> type[CodeExecutor]:
    return type("Some", (CodeExecutor,), {"layers": layers})


@pytest.fixture(scope="module")
def isolation():
    with CodeExecutor() as executor:
        return executor.isolation


def needs(isolation, *layers):
    lacking = {name: isolation["missing"][name] for name in layers if name in isolation["missing"]}
    if lacking:
        pytest.skip(f"not to be had here: {lacking}")


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


def test_without_a_fence_the_processes_above_the_worker_are_closed_to_code(tmp_path):
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
    assert gone(pid)


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_rlimits_alone(tmp_path):
    code = """
import resource as r
print(r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_NOFILE)[1] < 10000)
print(attempt(bytearray, 20 << 30))
"""
    assert run_with(["rlimits"], code, tmp_path) == ["(0, 0) True", "MemoryError"]


def test_namespaces_alone(tmp_path, isolation):
    needs(isolation, "namespaces")
    code = "import os\nprint(os.getpid(), os.getppid(), os.uname().nodename)"
    assert run_with(["namespaces"], code, tmp_path) == ["2 1 sandbox"]


def test_network_alone(tmp_path, isolation):
    needs(isolation, "network", "namespaces")
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


def test_a_network_of_its_own_has_a_loopback(tmp_path, isolation):
    needs(isolation, "network", "namespaces")
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
def test_files_by_one_layer_alone(tmp_path, isolation, monkeypatch, layer):
    needs(isolation, layer)
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


def test_a_workdir_in_the_home_directory_and_the_installation_inside_it(
    tmp_path, isolation, monkeypatch
):
    needs(isolation, "mounts", "landlock")
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
    needs(isolation, "mounts")

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
    needs(isolation, "seccomp")
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
    needs(isolation, "capabilities")
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


def test_memory_of_all_children_together(tmp_path, isolation):
    needs(isolation, "namespaces", "mounts")
    code = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        kept = bytearray(b'x') * (60 << 20)
        time.sleep(600)
time.sleep(600)
"""
    with CodeExecutor(workdir=tmp_path, memory_mb=256) as executor:
        result = executor.run(code, timeout=60)
        assert result.error.type == "MemoryError" and "256 MB" in result.error.message
        shared = """
import os, time
kept = bytearray(b'x') * (100 << 20)
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.5)
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
print('shared memory counts once')
"""
        assert executor.run(shared).output == "shared memory counts once\n"


def test_what_waits_in_sockets_is_memory_too(tmp_path, isolation):
    needs(isolation, "namespaces", "mounts", "network")
    code = """
import os, socket, time
for _ in range(6):
    if os.fork() == 0:
        kept = [socket.socketpair() for _ in range(240)]
        time.sleep(600)
time.sleep(600)
"""
    with CodeExecutor(workdir=tmp_path, memory_mb=128) as executor:
        assert executor.run(code, timeout=60).error.type == "MemoryError"
        some = "import socket\nlen([socket.socketpair() for _ in range(100)])"
        assert executor.run(some).value == "100"


def test_after_memory_is_full_the_next_step_can_free_it(tmp_path):
    with CodeExecutor(workdir=tmp_path, memory_mb=200) as executor:
        result = executor.run("x = []\nwhile True: x.append('y' * 100_000)")
        assert result.error.type == "MemoryError" and not result.state_lost
        assert executor.run("x = None\n'free'").value == "'free'"


def test_a_deep_recursion_is_told_in_short(tmp_path):
    with CodeExecutor(workdir=tmp_path, memory_mb=80) as executor:
        code = "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()"
        result = executor.run(code, timeout=100)
        # CPython itself may lose its way when a frame cannot be allocated
        assert result.error.type in {"MemoryError", "RecursionError", "WorkerDied", "SystemError"}
        assert executor.run("1").value == "1"


PARENT = """
import os, sys
from ck_pro.executor import CodeExecutor
executors = [CodeExecutor(workdir=sys.argv[1]) for _ in range(3)]
for one in executors:
    one.run("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
print(*[one._worker.pid for one in executors], flush=True)
if sys.argv[2] == "fork":
    if os.fork() == 0:
        import signal
        signal.pause()
executors[0].run("while True: pass", timeout=600)
"""


@pytest.mark.parametrize("mode", ["plain", "fork"])
def test_no_worker_outlives_its_parent(tmp_path, mode):
    root = str(ROOT)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), mode],
        stdout=subprocess.PIPE,
        cwd=root,
        text=True,
        start_new_session=True,
    ) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 3
        below = {pid for top in pids for pid in descendants(top)}
        assert len(below) >= 6
        parent.kill()
        parent.wait()
        try:
            assert all(gone(pid) for pid in below | set(pids))
        finally:
            try:
                os.killpg(parent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def test_an_executor_that_is_never_closed_leaves_nothing(tmp_path):
    code = """
import sys
from ck_pro.executor import CodeExecutor
executor = CodeExecutor(workdir=sys.argv[1])
executor.run("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
from ck_pro.executor.process import _workers
from pathlib import Path
pid = next(iter(_workers)).pid
print(pid, Path(f"/proc/{pid}/task/{pid}/children").read_text())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == ""
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2 and all(gone(pid) for pid in pids)


def descendants(pid: int) -> set[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child) for child in children}.union(*(descendants(int(c)) for c in children))


def test_a_fork_of_the_parent_has_workers_of_its_own(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("x = 1")
        code = """
            executor = CodeExecutor(workdir=path)
            executor.run("x = 1")
            pid = os.fork()
            if pid == 0:
                ok = executor.run("x").error.type == "NameError"
                executor.close()
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert executor.run("x").value == "1"
            executor.close()
            print("fine")
        """
        head = "import os, sys\nfrom ck_pro.executor import CodeExecutor\npath = sys.argv[1]\n"
        done = subprocess.run(
            [sys.executable, "-c", head + textwrap.dedent(code), str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.stdout == "fine\n", done.stderr


def test_fifty_workers_at_once(tmp_path):
    executors = [CodeExecutor(workdir=tmp_path / str(n)) for n in range(50)]
    try:
        for number, executor in enumerate(executors):
            assert executor.run(f"x = {number}").error is None
        values = [executor.run("x").value for executor in executors]
        assert values == [str(number) for number in range(50)]
        pids = [pid for e in executors for pid in (e._worker.pid, *descendants(e._worker.pid))]
        megabytes = sum(share(pid) for pid in pids) / 1024
        assert megabytes < 3000
    finally:
        for executor in executors:
            executor.close()
    assert all(gone(pid) for pid in pids)


def share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def test_an_interrupt_kills_the_step_and_passes_on(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("x = 1")
        killer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])

        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)

        killer = threading.Timer(0.3, interrupt)
        killer.start()
        with pytest.raises(KeyboardInterrupt):
            executor.run("while True: pass")
            killer.join()
        killer.join()
        assert executor._worker is None
        assert executor.run("1").value == "1"


def test_the_zygote_comes_back_when_it_was_killed(tmp_path):
    from ck_pro.executor.zygotes import _zygotes

    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("x = 1")
        zygote = _zygotes[()]._process
        os.kill(zygote.pid, signal.SIGKILL)
        zygote.wait()
        # its workers die with it: one step is lost, the next one has a new worker
        results = [executor.run("1") for _ in range(50)]
        lost = [one for one in results if one.error is not None]
        assert len(lost) <= 1 and all(one.state_lost for one in lost)
        assert results[-1].value == "1"
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run("1").value == "1"


def test_preloaded_modules_are_there(tmp_path):
    with CodeExecutor(workdir=tmp_path, preload=["fractions", "decimal"]) as executor:
        assert executor.run("import sys; 'fractions' in sys.modules").value == "True"
    from ck_pro.exceptions import ExecutorError

    with pytest.raises(ExecutorError, match="no_such_module"):
        CodeExecutor(workdir=tmp_path, preload=["no_such_module"]).run("1")


# -- pieces that need no worker


def make_cgroups(root: Path, own: str, given: dict[str, str]) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    (root / "proc/self/cgroup").write_text(f"0::{own}\n")
    for path, controllers in given.items():
        folder = root / "sys/fs/cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(controllers)


def test_a_control_group_is_made_where_memory_is_handed_on(tmp_path):
    make_cgroups(tmp_path, "/user/app", {"": "", "user": "cpu memory pids", "user/app": ""})
    place = cgroup.find_place(str(tmp_path))
    assert place == (str(tmp_path / "sys/fs/cgroup/user"), 2)
    folder = Path(place.folder, "one")
    folder.mkdir()
    Path(folder, "memory.events").write_text("oom 1\noom_kill 2\n")
    Path(folder, "memory.swap.max").touch()
    Path(folder, "cgroup.procs").touch()
    with pytest.MonkeyPatch.context() as patch:  # the kernel fills a directory as it is made
        patch.setattr(cgroup.os, "mkdir", lambda path: None)
        group = cgroup.Group(place._replace(folder=str(folder)), 100 << 20, 50)
    group.enter()
    assert Path(folder, "memory.max").read_text() == str(100 << 20)
    assert Path(folder, "memory.swap.max").read_text() == "0"
    assert Path(folder, "cgroup.procs").read_text() == "0"  # the process itself
    assert group.ran_out()
    Path(folder, "memory.events").write_text("oom 0\noom_kill 0\n")
    assert not group.ran_out()
    group.close()


def test_a_delegated_control_group_hands_memory_on_once_it_has_no_processes(tmp_path, monkeypatch):
    make_cgroups(tmp_path, "/unit", {"": "memory pids", "unit": ""})
    unit = tmp_path / "sys/fs/cgroup/unit"
    (unit / "cgroup.controllers").write_text("cpu memory pids\n")
    (unit / "cgroup.procs").write_text("7\n8\n")
    moved = []

    def write(path, text):  # as the kernel does
        if path.endswith("ck-agent/cgroup.procs"):
            moved.append(text)
            if text == "8":
                raise ProcessLookupError
            (unit / "cgroup.procs").write_text("9\n" if moved == ["7"] else "")
        elif path.endswith("subtree_control"):
            assert (unit / "cgroup.procs").read_text() == "" and text == "+memory +pids"
            Path(path).write_text("memory pids")

    monkeypatch.setattr(cgroup, "_write", write)
    monkeypatch.setattr(cgroup, "_is_delegated", lambda group: group == str(unit))
    assert cgroup.find_place(str(tmp_path)) == (str(unit), 2)
    assert moved == ["7", "8"] or moved == ["7", "8", "9"]
    (tmp_path / "proc/self/cgroup").write_text("0::/unit/ck-agent\n")
    assert cgroup.find_place(str(tmp_path)) == (str(unit), 2)


def test_no_control_group_without_the_memory_controller(tmp_path):
    make_cgroups(tmp_path, "/app", {"": "cpu", "app": ""})
    with pytest.raises(cgroup.NoGroup, match="memory"):
        cgroup.find_place(str(tmp_path))


def test_a_control_group_of_version_1(tmp_path):
    make_cgroups(tmp_path, "/", {"": ""})
    mounts = tmp_path / "proc/self/mounts"
    mounts.write_text(mounts.read_text() + "cgroup /sys/fs/memory cgroup rw,relatime,memory 0 0\n")
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/app\n3:cpu:/other\n0::/\n")
    group = tmp_path / "sys/fs/memory/app"
    group.mkdir(parents=True)
    with pytest.raises(cgroup.NoGroup):
        cgroup.find_place(str(tmp_path))
    (group / "memory.limit_in_bytes").touch()
    assert cgroup.find_place(str(tmp_path)) == (str(group), 1)


def interpret(program, number, args=(), arch=0xC000003E):
    """Run a filter as the kernel does."""
    words = {0: number, 4: arch, **{16 + 8 * i: a & 0xFFFFFFFF for i, a in enumerate(args)}}
    at, held = 0, 0
    while True:
        code, yes, no, operand = program[at]
        if code == 0x06:
            return operand
        if code in (0x20, 0x54):
            held = words.get(operand, 0) if code == 0x20 else held & operand
            at += 1
            continue
        hit = {0x15: held == operand, 0x35: held >= operand, 0x45: bool(held & operand)}[code]
        at += 1 + (yes if hit else no)


ALLOW, EPERM, ENOSYS, ENOMEM = 0x7FFF0000, 0x00050001, 0x00050026, 0x0005000C


@pytest.mark.parametrize(
    ("number", "args", "expected"),
    [
        (0, (), ALLOW),  # read
        (101, (), EPERM),  # ptrace
        (435, (), ENOSYS),  # clone3
        (56, (0x11,), ALLOW),  # clone as fork does
        (56, (0x10000000 | 17,), EPERM),  # clone into a user namespace
        (41, (2, 1), ALLOW),  # internet
        (41, (1, 1), EPERM),  # unix
        (53, (1, 1), ALLOW),  # a pair of streams
        (53, (1, 5 | 0o2000000), ALLOW),  # a pair of packets, closed on exec
        (53, (1, 2), EPERM),  # a datagram socket can send to any path
        (53, (1, 3 | 0o2000000), EPERM),  # so can what the kernel makes of a raw one
        (53, (30, 5), EPERM),  # another family
        (64, (), EPERM),  # semget
        (240, (), EPERM),  # mq_open
        (278, (), ENOSYS),  # vmsplice
        (9, (0, 1 << 21, 3, 0x21), ALLOW),
        (9, (0, 1 << 21, 3, 0x40022), ENOMEM),  # huge pages
        (72, (3, 1031), EPERM),  # a larger pipe
        (72, (3, 3), ALLOW),
        (90, (0, 0o755), ALLOW),
        (90, (0, 0o4755), EPERM),
        (2, (0, 0, 0o4000), ALLOW),  # open without O_CREAT: the mode is not one
        (2, (0, 0o101, 0o4755), EPERM),
        (257, (0, 0, 0o101, 0o644), ALLOW),
        (257, (0, 0, 0o101, 0o2755), EPERM),
        (16, (0, 0x5412), EPERM),
        (16, (0, 0x5401), ALLOW),
        (54, (0, 1, 7), 0x50000),  # a bigger socket: done, it says
        (54, (0, 1, 8), 0x50000),
        (54, (0, 1, 9), ALLOW),
        (54, (0, 0, 32), ALLOW),  # the same number means something else for IP
        (62, (-1, 9), ALLOW),
        (0x40000000 + 1, (), ENOSYS),
    ],
)
def test_the_filter(number, args, expected):
    assert interpret(seccomp.program("x86_64", True, True), number, args) == expected


def test_the_filter_of_other_settings():
    closed = seccomp.program("x86_64", False, False)
    assert interpret(closed, 41, (2, 1)) == EPERM
    assert interpret(closed, 62, (-1, 9)) == EPERM
    assert interpret(closed, 62, (5, 9)) == ALLOW
    assert interpret(closed, 0, arch=0x40000003) == 0x80000000
    arm = seccomp.program("aarch64", True, True)
    assert interpret(arm, 117, arch=0xC00000B7) == EPERM
    assert interpret(arm, 63, arch=0xC00000B7) == ALLOW
    assert max(max(yes, no) for _, yes, no, _ in closed + arm) < 256


FILL = """
import os, time
piece = os.urandom(1 << 20)
for i in range(200):
    with open(f'{kind}{i}', 'wb') as file:
        file.write(piece)
        if kind == 'gone':
            os.unlink(file.name)
            keep.append(os.dup(file.fileno()))
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["kept", "gone"])
def test_the_working_directory_cannot_be_filled(tmp_path, isolation, kind):
    needs(isolation, "namespaces", "mounts")
    (tmp_path / "there before").write_bytes(bytes(60 << 20))
    with CodeExecutor(workdir=tmp_path, disk_mb=50) as executor:
        result = executor.run(f"kind, keep = {kind!r}, []" + FILL, timeout=100)
        assert result.state_lost and result.error.type == "OSError", result.error
        assert "50 MB" in result.error.message
        # it can be cleared up, and only then be filled again
        again = executor.run("import glob, os\nfor f in glob.glob('kept*'): os.unlink(f)\n'clear'")
        assert again.value == "'clear'" and again.error is None
        assert executor.run("open('new', 'wb').write(bytes(20 << 20))").value == str(20 << 20)
        assert executor.run("open('big', 'wb').write(bytes(60 << 20))").error.type == "OSError"


def test_a_working_directory_that_is_moved_is_still_watched(tmp_path, isolation):
    needs(isolation, "namespaces", "mounts")
    move = (
        "import contextlib, os\n"
        "with contextlib.suppress(OSError):\n"
        "    above = os.path.dirname(os.getcwd())\n"
        "    os.rename(above, above + '-moved')\n"
    )
    with CodeExecutor(workdir=tmp_path / "above" / "work", disk_mb=50) as executor:
        result = executor.run(f"{move}kind, keep = 'kept', []" + FILL, timeout=100)
        assert result.error.type == "OSError" and "50 MB" in result.error.message
        assert executor.run("1").value == "1"


def test_the_number_of_files_is_limited(tmp_path, monkeypatch):
    from ck_pro.executor.worker import disk

    monkeypatch.setattr(disk, "MAX_NEW_FILES", 5)
    monkeypatch.setattr(disk, "_SLACK_FILES", 0)
    monkeypatch.setattr(disk, "_INTERVAL_SECONDS", 0)
    monkeypatch.setattr(disk, "_PAUSE_FACTOR", 0)
    watched = disk.DiskWatchdog(str(tmp_path), 10, None, False)
    (tmp_path / "folder").mkdir()
    for number in range(5):
        assert watched.check() is None
        (tmp_path / "folder" / str(number)).touch()
    assert watched.check() == {"why": "files", "limit": 5}
    monkeypatch.setattr(disk, "_SLACK_FILES", 1)
    later = disk.DiskWatchdog(str(tmp_path), 10, watched.held, False)
    assert later.check() is None  # another worker may clear up
    os.link(tmp_path / "folder" / "1", tmp_path / "another name")
    (tmp_path / "a link").symlink_to("/")
    assert later.check() == {"why": "files", "limit": 5}


def test_files_that_vanish_while_they_are_counted_hide_no_others(tmp_path, monkeypatch):
    from ck_pro.executor.worker import disk

    class Vanished:
        path = "gone"

        def is_dir(self, follow_symlinks):
            return False

        def stat(self, follow_symlinks):
            raise FileNotFoundError

    @contextlib.contextmanager
    def scan(path):
        with scandir(path) as entries:
            yield [Vanished(), *entries]

    scandir = os.scandir
    monkeypatch.setattr(disk.os, "scandir", scan)
    (tmp_path / "file").write_bytes(bytes(100_000))
    assert disk.DiskWatchdog(str(tmp_path), 10, None, False).held[0] >= 100_000


def test_a_working_directory_that_takes_long_to_count(tmp_path, monkeypatch):
    # the worker is up before its supervisor has told what the directory holds
    monkeypatch.setattr("ck_pro.executor.channel._LAST_REPORT_SECONDS", 0.000001)
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run("1").value == "1"


def test_nothing_hides_deep_down_in_the_working_directory(tmp_path, isolation):
    needs(isolation, "namespaces", "mounts")
    code = """
import os, time
for _ in range(30):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
time.sleep(600)
"""
    with CodeExecutor(workdir=tmp_path) as executor:
        result = executor.run(code, timeout=100)
        assert result.error.type == "OSError" and "files" in result.error.message
        assert executor.run("import shutil\nshutil.rmtree('d' * 200)").error is None


def test_elsewhere_than_on_linux(tmp_path, monkeypatch):
    from ck_pro.executor import zygotes

    elsewhere = (
        "from _ck_worker import kernel, supervisor\n"
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
            assert gone(int(left.value))
            assert executor.run("bytearray(20 << 30)").error.type == "MemoryError"
            result = executor.run("kind, keep = 'kept', []" + FILL, timeout=100)
            assert result.error.type == "OSError" and "50 MB" in result.error.message
            assert executor.run("1").value == "1"
        with pytest.raises(IsolationError, match="Linux only"):
            CodeExecutor(workdir=tmp_path, preload=["stringprep"], require_isolation="full")
    finally:
        zygotes._zygotes.pop(("stringprep",)).stop()


def test_a_worker_killed_while_it_starts_is_started_again(monkeypatch, tmp_path):
    wait, killed = WorkerProcess._wait_until_ready, []

    def kill_first(self):
        if len(killed) == 2:
            return wait(self)
        killed.append(self.pid)
        os.kill(self.pid, signal.SIGKILL)  # the supervisor: the worker dies with it
        wait(self)
        self.kill()  # it had been ready already
        raise LostAtStart("a worker for code did not start: it was killed")

    monkeypatch.setattr(WorkerProcess, "_wait_until_ready", kill_first)
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run("print(1)").output == "1\n"
    assert len(killed) == 2


def test_no_descriptors_are_left(monkeypatch, tmp_path):
    def none_left(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    with CodeExecutor(workdir=tmp_path) as executor:
        with monkeypatch.context() as patch:
            patch.setattr("ck_pro.executor.channel.socket.socketpair", none_left)
            with pytest.raises(ExecutorError, match="cannot start: Too many open files"):
                executor.run("1")
        assert executor.run("1").value == "1"
