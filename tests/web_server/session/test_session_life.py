"""Leases, the queue, crashes, and the process itself."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from server_client import Client
from server_process import Process
from server_site import CALLBACKS, PAGES, Site, until

from web_server.chromium.folder import folder_base, sweep

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def process(server_site: Site) -> Iterator[Process]:
    limits = ("--max-browsers", "1", "--queue-seconds", "30", "--idle-seconds", "600")
    with Process(*limits, site=server_site) as running:
        yield running


def _prepare(client: Client) -> None:
    client.open("/storage")
    client.act("click", "button 'Save'")
    # What a crash would lose is noted after the reply; a further request comes after that.
    client.tree()
    client.tree()


def test_a_crashed_renderer_is_restored(process: Process, server_site: Site) -> None:
    with Client(process.url, server_site.url) as client:
        _prepare(client)
        for pid in process.processes("--type=renderer"):
            os.kill(pid, signal.SIGKILL)
        tree = client.act("wait", timeout=50)
        assert "local kept session too c=1" in tree and "restored" in tree


@pytest.mark.parametrize("part", ["chromium", "renderers"])
def test_all_tabs_are_restored(process: Process, server_site: Site, part: str) -> None:
    with Client(process.url, server_site.url, tabs=True) as client:
        for path in ("/", "/two", "/storage"):
            client.open(path)
        client.page = "1"
        client.tree()
        client.tree()
        renderers = process.processes("--type=renderer")
        for pid in [process.chromium()] if part == "chromium" else renderers:
            os.kill(pid, signal.SIGKILL)
        tree = client.act("wait", timeout=50)
        if "restored" not in tree:
            tree = client.act("wait", timeout=50)
        assert "Tab 0: Home\nTab 1 (current): Two\nTab 2: Storage\n" in tree
        assert "restored" in tree and "was closed" not in str(client.view["events"])
        for client.page, title in (("0", "Home"), ("2", "Storage")):
            assert client.tree()["title"] == title


def test_sessions_share_several_chromiums(server_site: Site) -> None:
    with Process("--chromiums", "2", site=server_site) as several:
        assert len(several.chromiums()) == 1  # the other one starts when it is needed
        with (
            Client(several.url, server_site.url) as first,
            Client(several.url, server_site.url) as second,
        ):
            for client in (first, second):
                client.open("/storage")
                client.tree()
            running = several.chromiums()
            assert len(running) == 2
            os.kill(running[0], signal.SIGKILL)
            trees = [client.act("wait", timeout=50) for client in (first, second)]
            assert ["restored" in tree for tree in trees].count(True) <= 1
            assert all("button 'Save'" in tree for tree in trees)
        assert several.end(signal.SIGTERM) == 0


def test_a_page_that_crashes_whenever_it_is_opened_is_left(
    process: Process, server_site: Site
) -> None:
    def crash() -> None:
        for pid in process.processes("--type=renderer"):
            os.kill(pid, signal.SIGKILL)

    PAGES["/deadly"] = "<title>Deadly</title><script src=/deadly.js></script>"
    CALLBACKS["/deadly.js"] = crash
    with Client(process.url, server_site.url) as client:
        tree = client.open("/deadly")
        assert (
            "crashed again" in tree
            and "/deadly was left" in tree
            and client.view["url"] == "about:blank"
        )
        assert "Second page" in client.act("goto", actionValue=client.site + "/two")
        assert "was left" in client.act("goto", actionValue=client.site + "/deadly")


def test_an_action_on_a_page_that_had_crashed_is_not_told_as_done(
    process: Process, server_site: Site
) -> None:
    with Client(process.url, server_site.url) as client:
        client.open("/")
        for pid in process.processes("--type=renderer"):
            os.kill(pid, signal.SIGKILL)
        body = {"browserId": client.browser, "pageId": client.page, "observe": True}
        number = client.id_of("button 'Press'")
        reply = client.post("performAction", actionName="click", targetId=number, **body)
        answer = reply.json()
        # Where the crash was noticed before the action began, ids of the old page lead nowhere.
        assert reply.status_code in (404, 409), answer
        assert "interrupted" in answer["error"] or "not on the page" in answer["error"]
        assert "'nothing'" in answer["observation"]["yaml"]
        assert "restored" in answer["observation"]["yaml"]


@pytest.mark.parametrize("part", ["chromium", "driver"])
def test_a_killed_chromium_loses_no_session(process: Process, server_site: Site, part: str) -> None:
    with Client(process.url, server_site.url) as client:
        _prepare(client)
        victim = process.chromium() if part == "chromium" else process.processes("run-driver")[0]
        os.kill(victim, signal.SIGKILL)
        tree = client.act("wait", timeout=50)
        if "restored" not in tree:
            tree = client.act("wait", timeout=50)
        assert "local kept session too c=1" in tree
        assert f"restored at {server_site.url}/storage" in tree
        assert "Second page" in client.go("/two")
    with Client(process.url, server_site.url) as client:
        assert "Home" in client.open("/")
    assert "never retrieved" not in process.log()


def test_leases(process: Process, server_site: Site) -> None:
    with Client(process.url, server_site.url, leaseSeconds=100) as client:
        status = requests.get(f"{process.url}/status", timeout=60).json()
        (listed,) = status["browsers"]
        assert client.browser.startswith(listed["browserId"]) and len(listed["browserId"]) < 12
        assert 0 < listed["expiresAt"] - time.time() <= 100
        assert status["free"] == 0 and status["memory"] > 0
        renewed = client.ok("renewBrowser", browserId=client.browser, leaseSeconds=5000)
        assert renewed["expiresAt"] > time.time() + 4000
        metrics = requests.get(f"{process.url}/metrics", timeout=60).text
        assert "web_server_browsers_leased 1" in metrics


def test_callers_queue_in_order_and_closing_does_not_wait(
    process: Process, server_site: Site
) -> None:
    got: list[int] = []

    def wait_for_one(number: int) -> None:
        with Client(process.url, server_site.url):
            got.append(number)

    def waiting() -> int:
        answer: int = requests.get(f"{process.url}/status", timeout=60).json()["waiting"]
        return answer

    threads = []
    with Client(process.url, server_site.url):
        for number in range(4):
            threads.append(threading.Thread(target=wait_for_one, args=(number,)))
            threads[-1].start()
            assert until(lambda n=number: waiting() == n + 1)
        full = requests.post(f"{process.url}/getBrowser", json={}, timeout=60)
        assert full.status_code == 429 and int(full.headers["Retry-After"]) > 0
    for thread in threads:
        thread.join(60)
    assert got == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_running(number: signal.Signals, server_site: Site) -> None:
    with Process(site=server_site) as running:
        Client(running.url, server_site.url).__enter__().open("/")
        folders = f"ck-web-server-{running.child.pid}-*"
        assert len(list(folder_base().glob(folders))) == 1
        code = running.end(number)
    assert code == (-9 if number is signal.SIGKILL else 0)
    assert not list(folder_base().glob(folders))


def test_a_folder_whose_janitor_was_killed_too_goes_with_the_next_server(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, own = (tmp_path / f"ck-web-server-{pid}-x" for pid in (gone.pid, os.getpid()))
    other = tmp_path / "ck-web-server-notes"
    for folder in (left, own, other):
        (folder / "below").mkdir(parents=True)
    sweep(tmp_path)
    assert not left.exists() and own.exists() and other.exists()


def test_a_token_is_asked_for_on_every_route(server_site: Site) -> None:
    with Process("--token", "s3cret") as running:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert requests.get(f"{running.url}/status", headers=headers).status_code == 401
            reply = requests.post(f"{running.url}/getBrowser", json={}, headers=headers)
            assert reply.status_code == 401 and "token" in reply.json()["error"]
        good = {"Authorization": "Bearer s3cret"}
        assert requests.get(f"{running.url}/status", headers=good).status_code == 200


def test_a_folder_that_is_locked_has_a_server_whatever_its_process_id_says(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    folder = tmp_path / f"ck-web-server-{gone.pid}-x"
    folder.mkdir()
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweep(tmp_path)
        assert folder.exists()
    sweep(tmp_path)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--chromium", "/no/such"], "not an executable file"),
        (["--allow", "a b"], "not a rule"),
        (["--host", "203.0.113.1", "--token", "x"], "cannot listen on"),
    ],
)
def test_a_start_that_cannot_work_says_why_in_one_line(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "web_server", "--port", "0", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 2 and run.stdout == "" and len(run.stderr.splitlines()) == 1
    assert said in run.stderr and "Traceback" not in run.stderr


def test_a_long_path_for_temporary_files_does_not_keep_chromium_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    with Process() as running:
        assert requests.post(f"{running.url}/getBrowser", json={}, timeout=60).status_code == 200
        assert running.end(signal.SIGTERM) == 0
    assert list(deep.iterdir()) == []


@pytest.mark.parametrize("part", ["chromium", "renderers"])
def test_a_crash_before_a_step_picture_costs_only_the_picture(
    process: Process, server_site: Site, part: str
) -> None:
    with Client(process.url, server_site.url) as client:
        _prepare(client)
        renderers = process.processes("--type=renderer")
        for pid in [process.chromium()] if part == "chromium" else renderers:
            os.kill(pid, signal.SIGKILL)
        where = {"browserId": client.browser, "pageId": client.page}
        reply = client.post("takePicture", **where)
        assert reply.status_code in (200, 409), reply.text
        tree = client.act("wait", timeout=50)
        assert "local kept session too c=1" in tree
