"""Folders that code filled are removed: deep, wide, with links, with any modes."""

from __future__ import annotations

import os

import pytest

from ck_pro.executor import CodeExecutor, remove_folder

DEEP = "import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\n"


def test_a_folder_is_removed_with_its_content_and_nothing_else(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    at = os.open(folder, os.O_RDONLY)
    for level in range(1500):  # longer than any path may be
        name = "d" * 10
        os.mkdir(name, dir_fd=at)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        if level % 500 == 0:
            os.symlink(outside, "link", dir_fd=at)
            os.symlink(outside / "kept", "file link", dir_fd=at)
            os.mkfifo("pipe", dir_fd=at)
            os.fchmod(at, 0o500)
        os.close(at)
        at = inner
    os.close(at)
    for n in range(300):
        (tmp_path / "folder").chmod(0o700)
        (folder / f"wide{n}" / "in").mkdir(parents=True)
    (folder / "wide0").chmod(0)
    remove_folder(folder)
    assert not folder.exists() and (outside / "kept").read_text() == "x"


def test_a_link_is_not_a_folder_to_remove(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kept").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    remove_folder(tmp_path / "link")
    remove_folder(tmp_path / "not there")
    assert (tmp_path / "a" / "kept").exists()


@pytest.mark.worker
def test_a_temporary_workdir_of_any_depth_is_removed():
    executor = CodeExecutor()
    result = executor.run(DEEP)  # the watchdog may see it, or may not
    assert result.error is None or "nested too deeply" in result.error.message
    executor.close()
    assert not executor.workdir.exists()
