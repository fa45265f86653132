"""What counts as memory of a worker: everything that its code makes the kernel keep."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ck_pro.executor import CodeExecutor
from ck_pro.executor import core as executor_core
from ck_pro.executor.worker import memory

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
    "a shared mapping, again and again, of which one page is kept": """
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
    kind = type("Some", (CodeExecutor,), {"layers": layers})
    executor: CodeExecutor = kind(workdir=tmp_path, memory_mb=memory_mb)
    return executor


def check_layers(executor: CodeExecutor, *needed: str) -> None:
    lacking = set(needed) - set(executor.isolation["active"])
    if lacking:
        executor.close()
        pytest.skip(f"not to be had here: {lacking}")


@pytest.mark.parametrize("layers", [WATCHED, executor_core.LAYERS], ids=["watchdog", "all"])
@pytest.mark.parametrize("name", HOLDING)
def test_memory_that_is_held_counts(name, layers, tmp_path):
    with executor_for(layers, tmp_path) as executor:
        check_layers(executor, "namespaces", "mounts")
        result = executor.run(START + HOLDING[name] + END, timeout=60)
        assert result.error.type == "MemoryError", result.error
        assert "256 MB" in result.error.message and result.state_lost
        assert executor.run("1").value == "1"


def test_a_control_group_alone_limits_memory(tmp_path):
    with executor_for(("cgroup", "namespaces"), tmp_path) as executor:
        check_layers(executor, "cgroup")
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
        check_layers(executor, "namespaces", "mounts")
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
        check_layers(executor, "namespaces", "mounts")
        assert executor.run(START + code + END, timeout=60).error.type == "MemoryError"


def test_mappings_of_files_in_memory_are_told_from_others(monkeypatch):
    smaps = (
        "7f00-7f01 rw-s 00000000 00:01 55    /dev/zero (deleted)\nRss: 8 kB\nPss: 8 kB\n"
        "7f02-7f03 rw-s 00000000 00:2a 9    /dev/shm/zero\nRss: 4 kB\nPss: 4 kB\n"
        "7f04-7f05 rw-p 00000000 00:00 0\nPss: 2 kB\n"
        "7f06-7f07 rw-s 00000000 00:2a 9    /dev/zero of mine\nPss: 16 kB\nVmFlags: rd\n"
    )
    monkeypatch.setattr(memory, "_lines", lambda path: smaps.split("\n"))
    assert memory._shared_elsewhere("7", {0x2A}) == 8192


def test_there_are_few_pseudo_terminals(tmp_path):
    code = "import pty\nkept = []\nwhile True: kept.append(pty.openpty())"
    with executor_for(executor_core.LAYERS, tmp_path) as executor:
        check_layers(executor, "mounts")
        assert executor.run(code).error.type == "OSError"
        assert int(executor.run("len(kept)").value) <= 32


def test_locks_and_entries_of_epoll_are_counted(monkeypatch):
    texts = {"/proc/locks": "1: POSIX\n2: POSIX\n", "/proc/9/fdinfo/4": "pos: 0\ntfd: 5\ntfd: 6"}
    monkeypatch.setattr(memory, "_lines", lambda path: texts[path].split("\n"))
    monkeypatch.setattr(memory.os, "listdir", lambda path: ["3", "4"])
    names = {"/proc/9/fd/3": "/dev/null", "/proc/9/fd/4": "anon_inode:[eventpoll]"}
    monkeypatch.setattr(memory.os, "readlink", names.__getitem__)
    assert memory._in_kernel(["9"]) == 2 * memory._LOCK_BYTES + 3 * memory._WATCH_BYTES
