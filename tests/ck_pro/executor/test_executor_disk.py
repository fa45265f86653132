"""Limits of the working directory."""

from __future__ import annotations

import contextlib
import os
import sys

import pytest
from executor_tools import FILL_FOLDER, require_layers

from ck_pro.executor import CodeExecutor
from ck_pro.executor.worker.sandbox import disk

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(sys.platform != "linux", reason="the layers require Linux"),
]


@pytest.mark.parametrize("kind", ["kept", "gone"])
def test_the_working_directory_cannot_be_filled(tmp_path, isolation, kind):
    require_layers(isolation, "namespaces", "mounts")
    (tmp_path / "there before").write_bytes(bytes(60 << 20))
    with CodeExecutor(workdir=tmp_path, disk_mb=50) as executor:
        result = executor.run(f"kind, keep = {kind!r}, []" + FILL_FOLDER, timeout=100)
        assert result.state_lost and result.error.type == "OSError", result.error
        assert "50 MB" in result.error.message
        # the next step can delete files, and only then write more
        again = executor.run("import glob, os\nfor f in glob.glob('kept*'): os.unlink(f)\n'clear'")
        assert again.value == "'clear'" and again.error is None
        assert executor.run("open('new', 'wb').write(bytes(20 << 20))").value == str(20 << 20)
        assert executor.run("open('big', 'wb').write(bytes(60 << 20))").error.type == "OSError"


def test_a_moved_working_directory_is_still_limited(tmp_path, isolation):
    require_layers(isolation, "namespaces", "mounts")
    move = (
        "import contextlib, os\n"
        "with contextlib.suppress(OSError):\n"
        "    above = os.path.dirname(os.getcwd())\n"
        "    os.rename(above, above + '-moved')\n"
    )
    with CodeExecutor(workdir=tmp_path / "above" / "work", disk_mb=50) as executor:
        result = executor.run(f"{move}kind, keep = 'kept', []" + FILL_FOLDER, timeout=100)
        assert result.error.type == "OSError" and "50 MB" in result.error.message
        assert executor.run("1").value == "1"


def test_the_number_of_files_is_limited(tmp_path, monkeypatch):

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
    assert later.check() is None  # another worker may delete files
    os.link(tmp_path / "folder" / "1", tmp_path / "another name")
    (tmp_path / "a link").symlink_to("/")
    assert later.check() == {"why": "files", "limit": 5}


def test_files_removed_during_the_count_hide_no_others(tmp_path, monkeypatch):

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


def test_the_supervisor_may_report_after_the_worker(tmp_path, monkeypatch):
    # the worker is ready before its supervisor has reported the size of the directory
    monkeypatch.setattr("ck_pro.executor.channel._LAST_REPORT_SECONDS", 0.000001)
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run("1").value == "1"


def test_very_deep_folders_are_limited_too(tmp_path, isolation):
    require_layers(isolation, "namespaces", "mounts")
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


def test_a_flood_of_files_is_checked_early(tmp_path, monkeypatch):
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
    assert watched.check() is None  # the next check is not due
    left -= 40
    assert watched.check() == {"why": "files", "limit": 30}
