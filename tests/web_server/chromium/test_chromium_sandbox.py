"""Chromium runs in its sandbox and without the secrets of the server's environment."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from server_client import Client
from server_process import Process
from server_site import Site

from web_server.chromium import engine, environment
from web_server.chromium.chromium import find_chromium
from web_server.chromium.memory import process_tree

pytestmark = [pytest.mark.browser, pytest.mark.integration]

_UNPRIVILEGED = 65534


def _field(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def _may_import(home: Path) -> bool:
    """Whether an ordinary user may read the sources and the Python of these tests."""
    trying = [sys.executable, "-c", "import web_server.api.server"]
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            trying, user=_UNPRIVILEGED, stdout=quiet, stderr=quiet, env={"HOME": str(home)}
        )
    except OSError:
        return False
    return done.returncode == 0


def test_pages_of_an_ordinary_user_run_in_the_sandbox(server_site: Site) -> None:
    more = {}
    home = Path("/tmp") / f"ck-sandbox-{os.getpid()}"
    home.mkdir()
    try:
        if os.geteuid() == 0:
            os.chown(home, _UNPRIVILEGED, _UNPRIVILEGED)
            if not _may_import(home):
                pytest.skip("an ordinary user may not read these sources")
            more = {"user": _UNPRIVILEGED, "group": _UNPRIVILEGED, "extra_groups": []}
        plain = {"PATH": os.environ["PATH"], "HOME": str(home), "OPENAI_API_KEY": "sk-secret"}
        with Process(site=server_site, env=plain, **more) as running:
            status = requests.get(f"{running.url}/status", timeout=60).json()
            if not status["sandbox"]:
                pytest.skip("this system lets ordinary users have no sandbox: " + running.log())
            with Client(running.url, server_site.url) as client:
                client.open("/")
                renderers = running.processes("--type=renderer")
                assert renderers and not running.processes("--no-sandbox")
                for pid in renderers:
                    assert _field(pid, "Seccomp") == "2"
                    assert os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user")
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)


def test_chromium_and_playwright_do_not_get_the_environment(server_site: Site) -> None:
    keys = {
        "OPENAI_API_KEY": "sk-secret",
        "CK_WEB_NOTE": "sk-secret",
        "https_proxy": "http://sk-secret",
    }
    with Process(site=server_site, env={**os.environ, **keys}) as running:
        for pid in set(process_tree(running.child.pid)) - {running.child.pid}:
            assert "sk-secret" not in Path(f"/proc/{pid}/environ").read_text()


def test_an_unusable_sandbox_is_turned_off_and_logged_once(
    server_site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from server_process import serving

    stand_in = tmp_path / "chromium"
    stand_in.write_text(
        f"""#!/bin/sh
case "$*" in *--no-sandbox*) exec {find_chromium()} "$@";; esac
echo "[1:1:1/2:FATAL:host.cc(1)] No usable sandbox! Update your kernel" >&2
exit 1
"""
    )
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CK_CHROMIUM", str(stand_in))
    monkeypatch.setattr(engine, "can_have_sandbox", lambda: True)
    with serving(server_site) as server:
        assert requests.get(f"{server.url}/status", timeout=60).json()["sandbox"] is False
    assert caplog.text.count("without its sandbox") >= 1


def test_a_start_restores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    monkeypatch.delenv("TMPDIR", raising=False)
    before = dict(os.environ)
    with environment.reduced(TMPDIR="/x"):
        assert "SOME_API_KEY" not in os.environ and os.environ["TMPDIR"] == "/x"
    assert dict(os.environ) == before
