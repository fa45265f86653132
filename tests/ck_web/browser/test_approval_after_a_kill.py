"""A sub-agent stops for approval, its command is killed, and the run resumes on the same page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pages_site import serve

from ck_web.browser import kept_servers

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE = """<!doctype html><title>Order</title><form action="/approved-order">
  <input aria-label="Name" name="n"><button>Buy</button></form>"""
AGENT = """
import json, os, signal, sys
from pathlib import Path
from ck_pro import Journal, MultiStepAgent, StopTool
from ck_pro.exceptions import InputError
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent

url, folder, approve, kill_at, *actions = sys.argv[1:]

def replies(texts):
    left = iter(texts)
    return ScriptedLLM(lambda messages, context: f"Thought: go\\n```python\\n{next(left)}\\n```")

def watch(event):
    if kill_at == event["kind"] + ":" + event["path"][-1] + ":" + event.get("text", ""):
        os.kill(os.getpid(), signal.SIGKILL)

class Person:
    def answer(self, question):
        if kill_at == "asked":
            os.kill(os.getpid(), signal.SIGKILL)
        return "42"

web = WebAgent(
    model=replies(actions), planning="off", web_env={"allow": ["127.0.0.1"], "target_url": url}
)
main = MultiStepAgent(
    name="main", model=replies(["stop(web_agent('Order')['output'])"]), sub_agents=[web],
    tools=[StopTool()], approver={"stop": ["button 'Buy'"]}, person=Person(),
)
with Journal(Path(folder) / "j") as journal:
    given = {"journal": journal, "workdir": Path(folder) / "w", "on_event": watch}
    if (Path(folder) / "w").is_dir():
        session = main.resume(approve=approve == "approve", **given)
    else:
        session = main.run("Order", **given)
(child,) = session.children.values()
states = [s["action"]["web_state_before"] for s in child.steps]
print(json.dumps({
    "status": str(session.status.value), "message": session.message,
    "output": session.final_results["output"],
    "observation": child.steps[0]["action"]["observation"],
    "browsers": [s["browser_id"] for s in states], "steps": len(child.steps),
}))
"""
CODE = "type(3, 'Ada', enter=False)\nprint(click(4))\nprint('ordered')"


@pytest.fixture
def orders() -> list[str]:
    return []


@pytest.fixture
def shop(orders: list[str]) -> Iterator[str]:
    def order(path: str) -> str:
        orders.append(path)
        return "<title>Paid</title>paid"

    with serve({"/approval-shop": PAGE, "/approved-order": order}) as url:
        yield f"{url}/approval-shop"


@pytest.fixture(autouse=True)
def no_server_stays(tmp_path: Path) -> Iterator[None]:
    """End the server that a run of this test left for its resume."""
    yield
    urls = {e["data"]["lease"]["server"] for e in events(tmp_path) if e["data"].get("lease")}
    folder = kept_servers._folder()
    for url in urls:
        facts = kept_servers._read(kept_servers._path(folder, url)) if folder else {}
        with suppress(ProcessLookupError):
            if isinstance(pid := facts.get("pid"), int):
                os.kill(pid, signal.SIGTERM)


def run(
    shop: str, folder: Path, *actions: str, approve: bool = False, kill_at: str = ""
) -> dict[str, Any]:
    """Run one command to its end, or to its kill."""
    how = "approve" if approve else ""
    command = [sys.executable, "-c", AGENT, shop, str(folder), how, kill_at, *actions]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    if kill_at:
        assert done.returncode == -signal.SIGKILL, done.stderr
        return {}
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "j" / "events.jsonl").read_text().splitlines()]


def test_a_killed_command_resumes_on_the_same_page_and_acts_once(
    shop: str, orders: list[str], tmp_path: Path
) -> None:
    stopped = f"run_ended:web_agent:stopped for the user's decision: {_click(shop)}"
    run(shop, tmp_path, CODE, kill_at=stopped)
    assert not orders
    done = run(shop, tmp_path, "stop('bought')", approve=True)
    assert (done["status"], done["output"], done["steps"]) == ("done", "bought", 2), done
    assert [path.partition("n=")[2] for path in orders] == ["Ada"], "the typed name was lost"
    assert "ordered" in done["observation"] and "type [3]" in done["observation"]
    assert len(set(done["browsers"])) == 1
    typed = [e for e in events(tmp_path) if e["kind"] == "started" and e["data"]["name"] == "type"]
    assert len(typed) == 1, "the first action was repeated"


def test_a_kill_after_the_approved_action_does_not_repeat_it(
    shop: str, orders: list[str], tmp_path: Path
) -> None:
    assert run(shop, tmp_path, CODE)["status"] == "sensitive-action"
    run(shop, tmp_path, approve=True, kill_at="call_ended:web_agent:click")
    assert len(orders) == 1
    done = run(shop, tmp_path, "stop('bought')")
    assert (done["status"], done["output"]) == ("done", "bought"), done
    assert len(orders) == 1 and len(set(done["browsers"])) == 1
    assert "may have had an effect" in done["observation"]


def test_an_approval_is_valid_for_one_call(shop: str, orders: list[str], tmp_path: Path) -> None:
    assert run(shop, tmp_path, CODE)["status"] == "sensitive-action"
    again = run(shop, tmp_path, "goback()", "click('Buy')", approve=True)
    assert again["status"] == "sensitive-action" and len(orders) == 1
    assert run(shop, tmp_path)["status"] == "sensitive-action" and len(orders) == 1


def test_a_kill_while_a_person_is_asked_keeps_the_page(
    shop: str, orders: list[str], tmp_path: Path
) -> None:
    asks = "type(3, 'Ada', enter=False)\nprint(ask_human('The code?'))"
    run(shop, tmp_path, asks, kill_at="asked")
    done = run(shop, tmp_path, "stop(find('Ada'))")
    assert done["status"] == "done" and "textbox 'Name' value: Ada" in done["output"], done
    assert "42" in done["observation"] and len(set(done["browsers"])) == 1


def _click(shop: str) -> str:
    line = f"click(id=4) on button 'Buy' at {shop}"
    return f"{line}: the rule \"button 'Buy'\" matches"
