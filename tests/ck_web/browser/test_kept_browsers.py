"""A browser outlives its command while its run waits for a person."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_site import serve

from ck_web.browser import kept_servers, shared_servers

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>Order</title><form action="/paid">
  <input aria-label="Name"><button>Buy</button></form>"""
AGENT = """
import json, sys
from pathlib import Path
from ck_pro import Journal
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.computer import ComputerAgent

kind, url, folder, approver, *actions = sys.argv[1:]
plan = "{'completed_list': [], 'todo_list': [], 'experience': [], 'information': []}"
left = iter(actions)
def answer(messages, context):
    text = plan if context.phase == "plan" else next(left)
    return f"Thought: go\\n```python\\n{text}\\n```"
settings = {"model": ScriptedLLM(answer), "web_env": {"allow": ["127.0.0.1"], "target_url": url}}
settings["approver"] = json.loads(approver)
if kind == "computer":
    agent = ComputerAgent(language="code", **settings)
else:
    agent = WebAgent(**settings)
with Journal(Path(folder) / "j") as journal:
    started = (Path(folder) / "w").is_dir()
    do = agent.resume if started else lambda **given: agent.run("Order", **given)
    session = do(journal=journal, workdir=Path(folder) / "w")
states = [s["action"]["web_state_before"] for s in session.steps]
print(json.dumps({
    "status": str(session.status.value), "message": session.message, "lease": session.lease,
    "trees": [s["current_accessibility_tree"] for s in states],
    "browsers": [s["browser_id"] for s in states],
}))
"""


@pytest.fixture
def paid() -> list[str]:
    return []


@pytest.fixture
def shop(paid: list[str]) -> Iterator[str]:
    def pay(path: str) -> str:
        paid.append(path)
        return "<title>Paid</title>paid"

    with serve({"/": PAGE, "/paid": pay}) as url:
        yield f"{url}/"


def run(kind: str, shop: str, folder: Path, approver: Any, *actions: str) -> dict[str, Any]:
    """Run one command to its end."""
    command = [sys.executable, "-c", AGENT, kind, shop, str(folder), json.dumps(approver), *actions]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def until(done: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


STEPS = {
    "web": ("type(3, 'Ada', enter=False)", "click(4)"),
    "computer": (
        "computer('click', x=60, y=18); computer('type', text='Ada')",
        "computer('click', x=190, y=18)",
    ),
}


@pytest.mark.parametrize("kind", STEPS)
def test_typed_text_survives_the_command(
    kind: str, shop: str, paid: list[str], tmp_path: Path
) -> None:
    stopped = run(kind, shop, tmp_path, {"stop": ["Buy"]}, *STEPS[kind])
    assert stopped["status"] == "sensitive-action" and "Buy" in stopped["message"]
    server = stopped["lease"]["server"]
    token = kept_servers.token_of(server)
    assert token and token not in (tmp_path / "j" / "events.jsonl").read_text()
    resumed = run(kind, shop, tmp_path, None, "stop('done')")
    assert resumed["status"] == "done", resumed["message"]
    assert "Ada" in resumed["trees"][1] and paid, "the stopped click was not executed"
    assert len(set(resumed["browsers"])) == 1
    until(lambda: not kept_servers.token_of(server))  # the server exits after its last browser


def test_a_run_whose_kept_server_was_killed_gets_a_new_browser(
    shop: str, paid: list[str], tmp_path: Path
) -> None:
    stopped = run("web", shop, tmp_path, {"stop": ["Buy"]}, *STEPS["web"])
    note = next(p for p in _notes() if _port(stopped["lease"]["server"]) in p.name)
    os.killpg(json.loads(note.read_text())["pid"], signal.SIGKILL)
    resumed = run("web", shop, tmp_path, None, "print('look')", "stop('done')")
    assert resumed["status"] == "done" and len(set(resumed["browsers"])) == 2 and not paid


def test_a_command_without_a_journal_leaves_no_server(shop: str) -> None:
    server = shared_servers.acquire_server(shared_servers.ServerOptions(allow=("127.0.0.1",)))
    before = set(_notes())
    try:
        from ck_web import WebEnv

        env = WebEnv({"allow": ["127.0.0.1"], "target_url": shop})
        assert env.suspend() is not None
        assert set(_notes()) == before
    finally:
        shared_servers.stop_servers()
    assert not server.alive


def _notes() -> list[Path]:
    folder = kept_servers._folder()
    assert folder is not None
    return list(folder.glob("*.json"))


def _port(url: str) -> str:
    return url.rpartition(":")[2]
