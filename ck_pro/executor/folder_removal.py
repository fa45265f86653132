"""Remove a folder that code has filled, at any depth, with any links and modes."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_CAN_USE_DESCRIPTORS = {os.open, os.unlink, os.rmdir, os.rename, os.chmod} <= os.supports_dir_fd


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove a folder and its content, as far as possible.

    Inner folders are moved up before they are emptied, so that neither depth nor path length
    matters. Links are removed and never followed.
    """
    if not _CAN_USE_DESCRIPTORS:
        shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        root = os.open(folder, _FOLDER)
    except OSError:
        return
    try:
        _empty(root)
    finally:
        os.close(root)
    try:
        Path(folder).rmdir()
    except OSError:  # not empty
        pass


def _empty(root: int) -> None:
    prefix = secrets.token_hex(8)
    folders = _unlink_files(root)
    moved = 0
    while folders:
        name = folders.pop()
        try:
            os.rmdir(name, dir_fd=root)
            continue
        except OSError:  # usually because it is not empty
            pass
        try:
            inside = _opened(name, root)
        except OSError:
            continue
        try:
            for one in _unlink_files(inside):
                moved += 1
                target = f"{prefix}-{moved}"
                if _move(one, inside, target, root):
                    folders.append(target)
        finally:
            os.close(inside)
        try:
            os.rmdir(name, dir_fd=root)
        except OSError:
            pass


def _unlink_files(folder: int) -> list[str]:
    """Remove the files of a folder; return the names of its folders."""
    folders = []
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
    for name, is_folder in found:
        if is_folder:
            folders.append(name)
            continue
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            pass
    return folders


def _opened(name: str, root: int) -> int:
    try:
        inside = os.open(name, _FOLDER, dir_fd=root)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=root)
        return os.open(name, _FOLDER, dir_fd=root)
    if os.fstat(inside).st_mode & 0o700 != 0o700:
        try:
            os.fchmod(inside, 0o700)
        except OSError:
            pass
    return inside


def _move(name: str, source: int, target: str, root: int) -> bool:
    for _ in range(2):
        try:
            os.rename(name, target, src_dir_fd=source, dst_dir_fd=root)
            return True
        except PermissionError:  # a folder can be moved only if it is writable
            try:
                os.chmod(name, 0o700, dir_fd=source)
            except OSError:
                return False
        except OSError:
            return False
    return False
