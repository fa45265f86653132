"""What counts as memory of a worker: everything that its code makes the kernel keep."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from executor_tools import require_layers, with_layers

from ck_pro.executor import CodeExecutor
from ck_pro.executor import core as executor_core
from ck_pro.executor.worker.sandbox import memory

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's"),
]
WATCHED = tuple(layer for layer in executor_core.LAYERS if layer != "cgroup")
"""The watchdog alone counts."""
START = """
import ctypes, mmap, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
MB = 1 << 20
def fill(buffer, size):
    piece = b'x' * MB
    for at in range(0, size, MB):
        buffer[at:at + MB] = piece
"""
END = "\ntime.sleep(600)\n"
HOLDING = {
    "shared mappings of forked children": """
for _ in range(4):
    if os.fork() == 0:
        kept = mmap.mmap(-1, 150 * MB)
        fill(kept, 150 * MB)
        break
""",
    "repeated shared mappings with one page kept": """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
for _ in range(6):
    at = libc.mmap(None, 100 * MB, 3, 0x21, -1, 0)
    ctypes.memset(at, 1, 100 * MB)
    libc.munmap(at + 4096, 100 * MB - 4096)
""",
    "a shared mapping of the zero device": """
zero = os.open('/dev/zero', os.O_RDWR)
for _ in range(4):
    if os.fork() == 0:
        kept = mmap.mmap(zero, 150 * MB)
        fill(kept, 150 * MB)
        break
""",
    "files in all folders of memory": """
for folder in ('/tmp', '/var/tmp', '/dev/shm'):
    with open(folder + '/kept', 'wb') as file:
        for _ in range(60):
            file.write(os.urandom(MB))
kept = bytearray(b'x') * (180 * MB)
""",
    "entries of epoll": """
import select
for _ in range(100):
    if os.fork() == 0:
        watched = [os.eventfd(0) for _ in range(250)]
        kept = [select.epoll() for _ in range(230)]
        for poll in kept:
            for one in watched:
                poll.register(one)
        break
""",
    "empty files in memory": """
for folder in ('/tmp', '/var/tmp', '/dev/shm'):
    for number in range(20_000):
        os.mkdir(f'{folder}/{number}')
kept = bytearray(b'x') * (220 * MB)
""",
    "deleted files in memory": """
kept = []
for folder in ('/tmp', '/var/tmp', '/dev/shm'):
    file = open(folder + '/kept', 'wb')
    os.unlink(file.name)
    kept.append(file)
    for _ in range(60):
        file.write(os.urandom(MB))
        file.flush()
kept.append(bytearray(b'x') * (180 * MB))
""",
}


def executor_for(layers: tuple[str, ...], tmp_path: Any, memory_mb: int = 256) -> CodeExecutor:
    return with_layers(*layers)(workdir=tmp_path, memory_mb=memory_mb)


@pytest.mark.parametrize("layers", [WATCHED, executor_core.LAYERS], ids=["watchdog", "all"])
@pytest.mark.parametrize("name", HOLDING)
def test_memory_that_is_held_counts(name, layers, tmp_path):
    with executor_for(layers, tmp_path) as executor:
        require_layers(executor.isolation, "namespaces", "mounts")
        result = executor.run(START + HOLDING[name] + END, timeout=150)
        assert result.error.type == "MemoryError", result.error
        assert "256 MB" in result.error.message and result.state_lost
        assert executor.run("1").value == "1"


def test_a_control_group_alone_limits_memory(tmp_path):
    with executor_for(("cgroup", "namespaces"), tmp_path) as executor:
        require_layers(executor.isolation, "cgroup")
        code = START + HOLDING["shared mappings of forked children"] + END
        result = executor.run(code, timeout=60)
        assert result.error.type == "MemoryError" and "256 MB" in result.error.message
        assert executor.run("1").value == "1"


@pytest.mark.parametrize("layers", [WATCHED, executor_core.LAYERS], ids=["watchdog", "all"])
def test_shared_memory_counts_once(layers, tmp_path):
    code = """
kept = mmap.mmap(-1, 100 * MB)
fill(kept, 100 * MB)
file = os.open('/dev/shm/kept', os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 50 * MB)
mapped = mmap.mmap(file, 50 * MB)
fill(mapped, 50 * MB)
children = []
for _ in range(5):
    if (pid := os.fork()) == 0:
        sum(kept[::4096]) + sum(mapped[::4096])
        time.sleep(0.6)
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
print('counts once')
"""
    with executor_for(layers, tmp_path) as executor:
        require_layers(executor.isolation, "namespaces", "mounts")
        result = executor.run(START + code)
        assert result.output == "counts once\n", result.error


def test_pipes_of_a_fork_tree_count(tmp_path):
    code = """
kept = []
for _ in range(40):
    if os.fork() == 0:
        for _ in range(240):
            ends = os.pipe()
            os.set_blocking(ends[1], False)
            try:
                os.write(ends[1], bytes(1 << 16))
            except BlockingIOError:
                pass
            kept.append(ends)
        break
"""
    with executor_for(WATCHED, tmp_path, 64) as executor:
        require_layers(executor.isolation, "namespaces", "mounts")
        assert executor.run(START + code + END, timeout=60).error.type == "MemoryError"


def test_mappings_of_files_are_distinguished_from_anonymous_ones(monkeypatch):
    smaps = (
        "7f00-7f01 rw-s 00000000 00:01 55    /dev/zero (deleted)\nRss: 8 kB\nPss: 8 kB\n"
        "7f02-7f03 rw-s 00000000 00:2a 9    /dev/shm/zero\nRss: 4 kB\nPss: 4 kB\n"
        "7f04-7f05 rw-p 00000000 00:00 0\nPss: 2 kB\n"
        "7f06-7f07 rw-s 00000000 00:2a 9    /dev/zero of mine\nPss: 16 kB\nVmFlags: rd\n"
    )
    monkeypatch.setattr(memory, "_lines", lambda path: smaps.split("\n"))
    assert memory._shared_elsewhere("7", {0x2A}) == 8192


def test_the_number_of_pseudo_terminals_is_limited(tmp_path):
    code = "import pty\nkept = []\nwhile True: kept.append(pty.openpty())"
    with executor_for(executor_core.LAYERS, tmp_path) as executor:
        require_layers(executor.isolation, "mounts")
        assert executor.run(code).error.type == "OSError"
        assert int(executor.run("len(kept)").value) <= 32


def test_locks_and_entries_of_epoll_are_counted(monkeypatch):
    texts = {"/proc/locks": "1: POSIX\n2: POSIX\n", "/proc/9/fdinfo/4": "pos: 0\ntfd: 5\ntfd: 6"}
    monkeypatch.setattr(memory, "_lines", lambda path: texts[path].split("\n"))
    monkeypatch.setattr(memory.os, "listdir", lambda path: ["3", "4"])
    names = {"/proc/9/fd/3": "/dev/null", "/proc/9/fd/4": "anon_inode:[eventpoll]"}
    monkeypatch.setattr(memory.os, "readlink", names.__getitem__)
    assert memory._in_kernel(["9"], 1 << 20) == 2 * memory._LOCK_BYTES + 3 * memory._WATCH_BYTES
    assert memory._in_kernel(["9", "ended"], 1000) == 1000  # it stops counting there


def test_memory_of_all_children_together(tmp_path, isolation):
    require_layers(isolation, "namespaces", "mounts")
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


def test_data_in_sockets_counts_as_memory(tmp_path, isolation):
    require_layers(isolation, "namespaces", "mounts", "network")
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


def test_a_deep_recursion_ends_with_an_error(tmp_path):
    with CodeExecutor(workdir=tmp_path, memory_mb=80) as executor:
        code = "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()"
        result = executor.run(code, timeout=100)
        # CPython itself may lose its way when a frame cannot be allocated
        assert result.error.type in {"MemoryError", "RecursionError", "WorkerDied", "SystemError"}
        assert executor.run("1").value == "1"


def add_one(number):
    return number + 1


def test_threads_need_little_address_space(tmp_path):
    code = """
import threading
from concurrent.futures import ThreadPoolExecutor
together = threading.Barrier(24)
def work(number):
    found = add_one(number)
    together.wait(60)
    return found
with ThreadPoolExecutor(24) as pool:
    print(sum(pool.map(work, range(24))))
"""
    with CodeExecutor({"add_one": add_one}, workdir=tmp_path, memory_mb=512) as executor:
        assert executor.run(code).output == "300\n"


def test_processes_stopped_for_the_exact_sum_continue(tmp_path):
    code = """
import os, signal, time
kept = bytearray(b'x') * (100 << 20)
def child(stop):
    pid = os.fork()
    if pid == 0:
        if stop: os.kill(os.getpid(), signal.SIGSTOP)
        while True: time.sleep(0.01)
    return pid
stopped = child(True)
running = [child(False) for _ in range(4)]
os.waitpid(stopped, os.WUNTRACED)
time.sleep(0.7)  # the sum is looked at meanwhile
def state(pid): return open(f'/proc/{pid}/stat').read().rpartition(') ')[2][0]
deadline, found = time.monotonic() + 30, None
while found != 'T' + 4 * 'S' and time.monotonic() < deadline:
    found = ''.join(state(pid) for pid in [stopped, *running])
print(found)
"""
    with CodeExecutor(workdir=tmp_path, memory_mb=256) as executor:
        if {"namespaces", "mounts"} & set(executor.isolation["missing"]):
            pytest.skip("/proc is not private")
        assert executor.run(code).output == "TSSSS\n"


def test_processes_forked_during_the_exact_sum_continue(tmp_path):
    code = """
import os, time
kept = bytearray(b'x') * (100 << 20)
end = time.monotonic() + 1.5
def fork_and_wait():
    while time.monotonic() < end:
        pid = os.fork()
        if pid == 0:
            time.sleep(0.01)
            os._exit(0)
        os.waitpid(pid, 0)
children = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        fork_and_wait()
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
print('all ended')
"""
    with CodeExecutor(workdir=tmp_path, memory_mb=256) as executor:
        assert executor.run(code).output == "all ended\n"
