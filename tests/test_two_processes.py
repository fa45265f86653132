"""The plugin that runs the unit tests in two processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import two_processes

pytestmark = pytest.mark.integration

FILES = 10
DIES = """
def test_dies():
    if os.getppid() == int(os.environ["FIRST"]):
        os._exit(9)
"""
TESTS = """
import os, pytest

@pytest.mark.parametrize("n", range(40))
def test_passes(n, tmp_path):
    assert not any(tmp_path.iterdir())

def test_fails():
    print("printed by", os.getpid())
    assert "left" == "right"

@pytest.mark.skip(reason="skipped")
def test_is_skipped():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in range(FILES):
        (tmp_path / f"test_file{n}.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["two_processes"]\n')
    return tmp_path


def run_pytest(folder: Path, *args: str) -> tuple[int, str]:
    support = str(Path(two_processes.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": support},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_test_runs_once_and_every_failure_is_shown(folder: Path) -> None:
    code, output = run_pytest(folder)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert f"{FILES} failed, {FILES * 40} passed, {FILES} skipped" in output
    assert output.count("assert 'left' == 'right'") >= FILES
    assert len(set(re.findall(r"printed by (\d+)", output))) == 2


def test_a_second_process_that_ends_early_is_an_error(folder: Path) -> None:
    (folder / "conftest.py").write_text(
        'import os\nos.environ["FIRST"] = str(os.getpid())\npytest_plugins = ["two_processes"]\n'
    )
    for n in range(FILES):
        (folder / f"test_file{n}.py").write_text(TESTS + DIES)
    code, output = run_pytest(folder)
    assert code == pytest.ExitCode.INTERNAL_ERROR
    assert "the second process of the tests ended early" in output


def test_few_tests_run_in_one_process(folder: Path) -> None:
    _, output = run_pytest(folder, "-k", "fails")
    assert f"{FILES} failed" in output
    assert len(set(re.findall(r"printed by (\d+)", output))) == 1
