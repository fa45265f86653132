"""Control groups and the system call filter, without a worker."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ck_pro.executor.worker.sandbox import cgroup, seccomp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers require Linux")


def make_cgroups(root: Path, own: str, given: dict[str, str]) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    (root / "proc/self/cgroup").write_text(f"0::{own}\n")
    for path, controllers in given.items():
        folder = root / "sys/fs/cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(controllers)


def test_a_control_group_is_created_where_the_memory_controller_is_passed_on(tmp_path):
    make_cgroups(tmp_path, "/user/app", {"": "", "user": "cpu memory pids", "user/app": ""})
    place = cgroup.find_place(str(tmp_path))
    assert place == (str(tmp_path / "sys/fs/cgroup/user"), 2)
    folder = Path(place.folder, "one")
    folder.mkdir()
    Path(folder, "memory.events").write_text("oom 1\noom_kill 2\n")
    Path(folder, "memory.swap.max").touch()
    Path(folder, "cgroup.procs").touch()
    with pytest.MonkeyPatch.context() as patch:  # the kernel creates the files of a new group
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


def test_a_process_enters_a_group_of_version_1_as_a_single_thread(tmp_path):
    for name in ("memory.limit_in_bytes", "memory.oom_control", "tasks", "cgroup.procs"):
        (tmp_path / name).touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgroup.os, "mkdir", lambda path: None)
        group = cgroup.Group(cgroup.Place(str(tmp_path), 1), 100 << 20, 50)
    group.enter()  # any other way waits for a global lock
    assert ((tmp_path / "tasks").read_text(), (tmp_path / "cgroup.procs").read_text()) == ("0", "")
    group.close()


def test_a_delegated_control_group_passes_memory_on_once_it_has_no_processes(tmp_path, monkeypatch):
    make_cgroups(tmp_path, "/unit", {"": "memory pids", "unit": ""})
    unit = tmp_path / "sys/fs/cgroup/unit"
    (unit / "cgroup.controllers").write_text("cpu memory pids\n")
    (unit / "cgroup.procs").write_text("7\n8\n")
    moved = []

    def write(path, text):  # like the kernel
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


def test_old_control_groups_without_processes_are_removed(tmp_path):
    for name in ("ck-executor-old", "ck-executor-new", "ck-executor-busy", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "ck-executor-busy/process").touch()  # a group with processes cannot be removed
    for name in ("ck-executor-old", "ck-executor-busy", "other"):
        os.utime(tmp_path / name, (0, 0))
    cgroup.remove_orphans(cgroup.Place(str(tmp_path), 1))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["ck-executor-busy", "ck-executor-new", "other"]


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
        (56, (0x11,), ALLOW),  # clone for a fork
        (56, (0x10000000 | 17,), EPERM),  # clone into a user namespace
        (41, (2, 1), ALLOW),  # internet
        (41, (1, 1), EPERM),  # unix
        (53, (1, 1), ALLOW),  # a pair of streams
        (53, (1, 5 | 0o2000000), ALLOW),  # a pair of packets, closed on exec
        (53, (1, 2), EPERM),  # a datagram socket can send to any path
        (53, (1, 3 | 0o2000000), EPERM),  # the kernel turns a raw one into a datagram socket
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
        (2, (0, 0, 0o4000), ALLOW),  # without O_CREAT the mode is ignored
        (2, (0, 0o101, 0o4755), EPERM),
        (257, (0, 0, 0o101, 0o644), ALLOW),
        (257, (0, 0, 0o101, 0o2755), EPERM),
        (16, (0, 0x5412), EPERM),
        (16, (0, 0x5401), ALLOW),
        (54, (0, 1, 7), 0x50000),  # larger buffers: no effect, and no error
        (54, (0, 1, 8), 0x50000),
        (54, (0, 1, 9), ALLOW),
        (54, (0, 0, 32), ALLOW),  # the same number at the IP level
        (62, (-1, 9), ALLOW),
        (0x40000000 + 1, (), ENOSYS),
    ],
)
def test_the_filter_allows_or_denies(number, args, expected):
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
