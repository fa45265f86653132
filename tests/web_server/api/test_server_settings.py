"""Settings of the process, and the reason if Chromium does not start."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web_server.chromium import process
from web_server.chromium.chromium import launch_failure

resource = pytest.importorskip("resource")


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "warning"),
    [
        (64, 64, None, 64),
        (64, 500, 500, 500),
        (1024, 1024, None, None),
        (256, 10**6, 65_536, None),
        (256, resource.RLIM_INFINITY, 65_536, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, None),
    ],
)
def test_the_limit_of_open_files_is_raised_and_a_low_one_logged(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int | None, warning: int | None
) -> None:
    seen, set_to = [], []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    monkeypatch.setattr(logging.getLogger("web_server"), "warning", lambda *said: seen.append(said))
    process.allow_many_files()
    assert set_to == ([] if raised is None else [(raised, hard)])
    assert [args for _, *args in seen] == ([] if warning is None else [[warning]])


_HEADING = "BrowserType.launch: Target page, context or browser has been closed\n"
_COMPLAINT = (
    "[pid=7][err] [7:9:1122/215552.162733:ERROR:dbus/bus.cc:405] Failed to connect to bus\n"
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("", "no message"),
        ("Executable doesn't exist at /x\nCall log", "Executable doesn't exist at /x"),
        (
            _HEADING + "Browser logs:\n\n<launched> pid=7\n"
            "[pid=7][err] /x/chrome: error while loading shared libraries: libnss3.so: no such file"
            "\n[pid=7][err] more\n  - [pid=7] <process did exit: exitCode=127, signal=null>",
            "/x/chrome: error while loading shared libraries: libnss3.so: no such file "
            "(exitCode=127, signal=null)",
        ),
        (
            _HEADING + _COMPLAINT + "[pid=7][err] [7:8:1122/2.4:FATAL:base/pump.cc:143] Check "
            "failed: . : Too many open files (24)\n" + _COMPLAINT,
            "Check failed: . : Too many open files (24)",
        ),
        (_HEADING + "[pid=7][err] [7:8:1122/2.4:ERROR:a.cc:1] Broken\n" + _COMPLAINT, "Broken"),
        (
            _HEADING + _COMPLAINT + "  - [pid=7] <process did exit: exitCode=null, signal=SIGKILL>",
            _HEADING.strip() + " (exitCode=null, signal=SIGKILL)",
        ),
    ],
)
def test_the_reason_for_a_failed_start_is_one_line(error: str, reason: str) -> None:
    assert launch_failure(error) == reason


@given(st.text())
def test_any_error_gives_one_line(error: str) -> None:
    assert "\n" not in launch_failure("[err] " + error)
