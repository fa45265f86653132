"""The lock of a task's folder: who has it, and whether a look at it disturbs a command."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ck_main.runner.task_folder import LOCK_FILE, claimed, in_use


def test_a_folder_is_in_use_while_a_command_has_its_lock(tmp_path: Path) -> None:
    folder = tmp_path / "task1"
    assert in_use(folder) is None, "no command has locked it, ever"
    with claimed(folder) as locked:
        assert locked and in_use(folder) is True
        assert in_use(folder / "try-2") is True, "the tries of a task have one lock"
        assert in_use(folder / "attempt-1") is None, "an attempt that was set aside has none"
        with claimed(folder) as second:
            assert not second
    assert in_use(folder) is False and in_use(folder / "try-2") is False


def test_a_look_at_a_lock_does_not_keep_a_command_from_it(tmp_path: Path) -> None:
    with claimed(tmp_path):
        pass
    looking = os.open(tmp_path / LOCK_FILE, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    assert in_use(tmp_path) is False, "another look is no use"
    attempts: list[float] = []

    def wait(seconds: float) -> None:
        attempts.append(seconds)
        if len(attempts) == 2:
            os.close(looking)

    with claimed(tmp_path, wait) as locked:
        assert locked and len(attempts) == 2
