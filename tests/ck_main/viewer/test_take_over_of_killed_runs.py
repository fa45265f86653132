"""Take over a run whose command was killed at a login page: real processes, real Chromium."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from member_sites import (
    answer_of,
    asks_the_bank,
    block,
    command,
    log_in,
    member_model,
    member_site,
    started,
    viewing,
)
from paths import ROOT
from person_browser import opened_page
from playwright.sync_api import Page, expect
from server_process import Process

from ck_pro.testing import FakeChatServer

pytestmark = [pytest.mark.integration, pytest.mark.browser]

NOTICE = "While the run waited, the user acted in your browser"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the resumed command write its rows here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


class Killed:
    """A command that is killed while the model thinks about a login page.

    Args:
        folder: the command's folder; the run is in `runs/a/balance`.
        bank: the site.
    """

    def __init__(self, folder: Path, bank: str) -> None:
        self.folder, self.bank = folder, bank
        self.at_login, self.resumed = threading.Event(), threading.Event()
        script = member_model(asks_the_bank(bank), self._reply_at_login)
        self.model = FakeChatServer(script)
        tasks = folder / "tasks.jsonl"
        tasks.write_text('{"id": "balance", "question": "What is my balance?"}\n')

    def _reply_at_login(self, text: str) -> str:
        if not self.at_login.is_set():
            self.at_login.set()
            self.resumed.wait(120)
        return block("ask_human('Please log in.')")

    @contextmanager
    def running(self, *args: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start the command, and wait until its agent sees the login page."""
        given = ("-i", "tasks.jsonl", "-o", "runs/a.jsonl", "--allow", self.bank)
        with self.model:
            process = started(self.folder, *given, "-m", self.model.url, *args)
            try:
                assert self.at_login.wait(60)
                yield process
            finally:
                process.kill()
                process.wait()
                self.resumed.set()

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the command as `kill -9` does."""
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.resumed.set()

    def prompts(self) -> str:
        return json.dumps([call.messages for call in self.model.calls])


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    with member_site("Bank", "Your balance is 42 crowns.") as bank:
        yield Killed(tmp_path, bank)


def hand_back(page: Page, code: int) -> None:
    page.get_by_role("button", name="Hand back and resume").click()
    ended = page.get_by_text(f"ended with exit code {code}")
    expect(ended).to_be_visible(timeout=60_000)


def test_the_browser_of_a_killed_run_is_on_its_server_and_can_be_taken_over(
    killed: Killed, tmp_path: Path
) -> None:
    with (
        Process("--allow", killed.bank) as server,
        killed.running("-u", f"web_agent.web_env.server_url={server.url}") as process,
    ):
        killed.kill(process)
        with viewing(tmp_path / "runs/a") as app, opened_page(app.url) as page:
            page.get_by_text("balance").first.click()
            expect(
                page.get_by_text("The command of this run was stopped or killed")
            ).to_be_visible()
            page.get_by_role("button", name="Look at the browser of ck_agent/web_agent").click()
            log_in(page)
            hand_back(page, 0)
            expect(page.get_by_text("42 crowns").first).to_be_visible()
    assert answer_of(tmp_path / "runs/resumed.jsonl") == "42 crowns"
    assert NOTICE in killed.prompts() and "Please log in" not in killed.prompts()


def test_a_killed_run_without_its_browser_is_resumed_and_then_asks_for_the_login(
    killed: Killed, tmp_path: Path
) -> None:
    with (
        killed.running() as process,
        viewing(tmp_path / "runs/a") as app,
        opened_page(app.url) as page,
    ):
        page.get_by_text("balance").first.click()
        expect(page.locator(".mark").get_by_text("running").first).to_be_visible()
        expect(page.get_by_role("heading", name="Take over")).to_have_count(0)
        killed.kill(process)
        closed = page.get_by_text("The browser of this run closed with its command")
        expect(closed).to_be_visible()  # without a reload
        expect(closed).to_contain_text(f"opens a new one at http://{killed.bank}/account")
        hand_back(page, 1)
        expect(page.get_by_text("Please log in.").first).to_be_visible()
        page.get_by_role("button", name="Look at the browser of ck_agent/web_agent").click()
        log_in(page)
        hand_back(page, 0)
        expect(page.get_by_text("42 crowns").first).to_be_visible()
    assert answer_of(tmp_path / "runs/resumed-2.jsonl") == "42 crowns"


def test_a_killed_run_that_is_resumed_by_command_asks_too(killed: Killed, tmp_path: Path) -> None:
    with killed.running() as process:
        killed.kill(process)
        given: tuple[Any, ...] = ("--resume", "runs/a/balance", "--allow", killed.bank)
        done = command(tmp_path, *given, "-m", killed.model.url)
    assert done.returncode == 1
    assert "answer it with --resume runs/a/balance --answer TEXT; its browser is at" in done.stderr
