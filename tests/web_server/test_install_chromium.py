"""An installed Chromium is used; otherwise each command is tried until one works."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from web_server.chromium.chromium import ChromiumNotFound
from web_server.install_chromium import install, install_commands, working_chromium


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of one empty folder, no Playwright cache, and us as root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "none"))
    monkeypatch.delenv("CK_CHROMIUM", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    return folder


def program(path: Path, code: int = 0) -> Path:
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)
    return path


def never(command: Sequence[str], seconds: float) -> bool:
    raise AssertionError(command)


def test_a_working_chromium_is_used(bin_folder: Path) -> None:
    chromium = program(bin_folder / "chromium")
    assert install(never, never) == str(chromium)  # type: ignore[arg-type]


def test_a_chromium_that_does_not_start_is_ignored(bin_folder: Path) -> None:
    program(bin_folder / "chromium", code=1)
    assert working_chromium() == ""


def test_a_wrong_CK_CHROMIUM_is_an_error(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_CHROMIUM", "/nope")
    with pytest.raises(ChromiumNotFound, match="CK_CHROMIUM: '/nope'"):
        install(never, never)  # type: ignore[arg-type]


def test_each_command_is_tried_until_one_works(bin_folder: Path) -> None:
    program(bin_folder / "apt-get")
    program(bin_folder / "brew")
    ran: list[str] = []
    said: list[str] = []

    def run(command: Sequence[str], seconds: float) -> bool:
        ran.append(" ".join(command[-2:]))
        if "apt-get" in command and command[-1] == "chromium":
            program(bin_folder / "chromium")
        return True

    assert install(run, said.append) == str(bin_folder / "chromium")
    assert ran == ["install chromium", "update -q", "--no-install-recommends chromium"]
    assert len(said) == 3


def test_a_failed_installation_explains_what_to_do(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(bin_folder / "apt-get")
    assert len(list(install_commands())) == 1
    with pytest.raises(ChromiumNotFound, match="CK_CHROMIUM=/path"):
        install(lambda command, seconds: False, lambda text: None)
