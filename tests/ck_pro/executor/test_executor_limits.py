"""Limits at their edges: address space, shared memory, floods of files, endless time, closing."""

from __future__ import annotations

import os
import threading

import pytest

from ck_pro.exceptions import ConfigError, ExecutorError
from ck_pro.executor import CodeExecutor
from ck_pro.executor.worker import disk

pytestmark = pytest.mark.worker


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


def test_what_is_stopped_while_memory_is_summed_up_goes_on(tmp_path):
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
            pytest.skip("no /proc of its own")
        assert executor.run(code).output == "TSSSS\n"


def test_what_is_forked_while_memory_is_summed_up_goes_on_too(tmp_path):
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


def test_a_flood_of_files_is_looked_at_before_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "MAX_NEW_FILES", 30)
    monkeypatch.setattr(disk, "_FAST_GROWTH_FILES", 10)
    monkeypatch.setattr(disk, "_SLACK_FILES", 0)
    room = os.statvfs(tmp_path)
    left = room.f_ffree
    monkeypatch.setattr(disk, "_free", lambda _: (room.f_bfree * room.f_frsize, left))
    watched = disk.DiskWatchdog(str(tmp_path), 10, None, private=False)
    monkeypatch.setattr(disk, "_INTERVAL_SECONDS", 1000.0)
    watched._next_check = float("inf")
    for number in range(40):
        (tmp_path / str(number)).touch()
    assert watched.check() is None  # it is not time yet
    left -= 40
    assert watched.check() == {"why": "files", "limit": 30}


@pytest.mark.parametrize("seconds", [float("inf"), 10**30])
def test_a_time_without_end_is_none(tmp_path, seconds):
    with CodeExecutor(
        {"add_one": add_one},
        workdir=tmp_path,
        timeout=seconds,
        call_timeout=seconds,
        wall_timeout=seconds,
    ) as executor:
        assert executor.run("add_one(2)").value == "3"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timeout": "5"}, "timeout must be a number of seconds"),
        ({"call_timeout": float("nan")}, "call_timeout must be"),
        ({"wall_timeout": True}, "wall_timeout must be"),
        ({"memory_mb": None}, "memory_mb must be a whole number"),
        ({"max_output": 0.5}, "max_output must be"),
        ({"functions": {"class": add_one}}, "'class' is not a valid"),
    ],
)
def test_what_is_no_limit_is_told(given, said):
    with pytest.raises(ConfigError, match=said):
        CodeExecutor(**given)


def test_a_step_without_descriptors_spoils_no_other(tmp_path):
    code = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))"
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run(code).error is None
        result = executor.run("print(1)\n2")
        assert (result.output, result.value, result.state_lost) == ("1\n", "2", False)


def test_closing_ends_a_step_that_runs(tmp_path):
    begun = threading.Event()
    executor = CodeExecutor({"begun": begun.set}, workdir=tmp_path, timeout=None)
    results = []
    thread = threading.Thread(
        target=lambda: results.append(executor.run("print('part')\nbegun()\nwhile True: pass"))
    )
    thread.start()
    assert begun.wait(60)
    executor.close()
    thread.join(60)
    assert results[0].error.type == "Cancelled" and results[0].output == "part\n"
    with pytest.raises(ExecutorError, match="closed"):
        executor.run("1")


def test_a_function_may_close_the_executor(tmp_path):
    executor = CodeExecutor({"leave": lambda: executor.close()}, workdir=tmp_path)
    assert executor.run("leave()").error.type == "Cancelled"


def test_the_plainest_exception_crosses_as_it_is(tmp_path):
    def fail():
        raise Exception("plain", 1)

    with CodeExecutor({"fail": fail}, workdir=tmp_path) as executor:
        caught = "try: fail()\nexcept RuntimeError: print('no')\nexcept Exception as e: print(e)"
        assert executor.run(caught).output == "('plain', 1)\n"
        assert executor.run("fail()").error.type == "Exception"
