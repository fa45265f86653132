"""Commands with a closed or full standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from sample_runs import Samples

from ck_pro.command_line import SteadyStream, steady_streams
from ck_pro.trajectory import diff

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")


@pytest.fixture
def broken() -> Iterator[SteadyStream]:
    """A pipe whose read end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as file:
        yield SteadyStream(file)


def test_a_closed_pipe_is_not_a_failure(broken: SteadyStream) -> None:
    for _ in range(3):
        assert broken.write("x" * 100_000) == 100_000
        broken.flush()
    assert isinstance(broken.lost, BrokenPipeError) and broken.failure is None
    assert broken.writable()  # other attributes pass through


@needs_full
def test_a_full_disk_is_a_failure() -> None:
    with FULL.open("w") as file:
        stream = SteadyStream(file)
        stream.write("x")
        assert stream.failure is None
        stream.flush()
        stream.write("y")
        assert stream.failure == "No space left on device"


def test_a_command_survives_a_closed_pipe(
    samples: Samples, monkeypatch: pytest.MonkeyPatch, broken: SteadyStream
) -> None:
    same = [str(samples.plain), str(samples.plain)]
    monkeypatch.setattr(sys, "stdout", broken._stream)
    assert diff.main(same) == 0
    assert diff.main([str(samples.plain), str(samples.good)]) == 1


@pytest.mark.parametrize("columns", ["0", ""])
def test_a_terminal_of_width_zero_gets_a_default_width(
    monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with steady_streams():
        assert Console().width > 0


@needs_full
def test_a_command_reports_a_full_disk(
    samples: Samples, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FULL.open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert diff.main([str(samples.plain), str(samples.plain)]) == 4
        monkeypatch.undo()
    said = capsys.readouterr().err
    assert said == "error: cannot write to standard output: No space left on device\n"


@pytest.mark.integration
def test_closed_standard_streams_are_opened(samples: Samples) -> None:
    command = f"{sys.executable} -m ck_pro.trajectory.diff {samples.plain} {samples.plain}"
    done = subprocess.run(["sh", "-c", f"{command} <&- >&- 2>&-"], check=False, timeout=60)
    assert done.returncode == 0
