"""`python -m ck_main.view` from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from viewer_runs import output_with

from ck_main.view import main
from ck_pro.command_line import ExitCode


def _error(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(args) == ExitCode.USAGE
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_help_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--port", "--host", "--open / --no-open", "--labels"):
        assert option in text
    assert len(text.splitlines()) < 35


def test_an_input_that_cannot_be_used_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "rows.jsonl.gz").write_bytes(b"\x1f\x8b123456789")
    assert "No such file" in _error(capsys, str(tmp_path / "none.jsonl"))
    assert "no journal in it" in _error(capsys, str(tmp_path / "empty"))
    assert "compressed (gzip)" in _error(capsys, str(tmp_path / "rows.jsonl.gz"))
    assert "Missing argument" in _error(capsys)
    assert "port" in _error(capsys, "--port", "99999", str(tmp_path))


@contextmanager
def _running(tmp_path: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-W", "error", "-m", "ck_main.view", *args]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.integration
def test_the_command_prints_one_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    rows = output_with(tmp_path, "one")
    with _running(tmp_path, str(rows)) as (process, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", address)
        with urllib.request.urlopen(address) as answer:
            assert "ck-page-" in answer.headers["Set-Cookie"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (out, err, process.returncode) == ("", "", 0)


@pytest.mark.integration
def test_other_machines_are_let_in_only_with_a_warning(tmp_path: Path) -> None:
    rows = output_with(tmp_path, "one")
    with _running(tmp_path, "--host", "0.0.0.0", str(rows)) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert err.startswith("warning: 0.0.0.0 is reachable from other machines")
        assert process.returncode == 0


@pytest.mark.integration
def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = output_with(tmp_path, "one")
    with _running(tmp_path, str(rows)) as (_, address):
        port = address.split(":")[2].split("/")[0]
        assert f"cannot listen on 127.0.0.1:{port}" in _error(capsys, "--port", port, str(rows))
