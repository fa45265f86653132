"""Take over a run that stopped for a person: log in for it, in real Chromium, and hand it back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from paths import ROOT
from person_browser import opened_page
from playwright.sync_api import expect

from ck_main import CKAgent
from ck_main.viewer.app import create_app
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_main.viewer.take_over import StoppedRun
from ck_pro import MultiStepAgent
from ck_pro.approval import Decision
from ck_pro.exceptions import ConfigError, InputError
from ck_pro.journal import Journal, read_events
from ck_pro.testing import ChatCall, FakeChatServer, ScriptedLLM
from ck_pro.tools.human import AskHumanTool

pytestmark = [pytest.mark.integration, pytest.mark.browser]

SECRETS = {"code": {"value": "open sesame", "domains": ["shop.example"]}}
LOGIN = """<title>Login</title><h1>Members</h1><form method="post" action="/login">
<label>Name <input name="user"></label>
<label>Password <input type="password" name="password"></label>
<button>Log in</button></form>"""


class _Site(BaseHTTPRequestHandler):
    """A page behind a login."""

    def do_GET(self) -> None:
        member = "member=yes" in (self.headers.get("Cookie") or "")
        self._answer("<title>Account</title><p>Your balance is 42 crowns.</p>" if member else LOGIN)

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        right = sent == {"user": ["ada"], "password": ["hunter2hunter2"]}
        self._answer("", location="/account", cookie="member=yes" if right else "")

    def _answer(self, page: str, location: str = "", cookie: str = "") -> None:
        self.send_response(303 if location else 200)
        if location:
            self.send_header("Location", location)
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def block(code: str) -> str:
    return f"So.\n```python\n{code}\n```"


def replies(site: str) -> Any:
    """Return a model that asks for help at the login, and then reads the page."""

    def reply(call: ChatCall) -> str:
        text = json.dumps(call.messages)
        if "You are the web agent" not in text:
            return block(
                f"r = web_agent('What is the balance?', 'http://{site}/account')\n"
                "stop(r['output'], r['log'])"
            )
        if "crowns" in text:
            return block(r"stop(re.search(r'\d+ crowns', find('crowns'))[0], '')").replace(
                "stop(re", "import re\nstop(re"
            )
        return block("ask_human('Please log in.')")

    return reply


def command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-m", "ck_main.main", "--plain", *args],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
    )


def test_a_person_logs_in_for_a_run_and_hands_it_back(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the resumed command writes its rows here
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("CK_CHROMIUM", raising=False)  # other tests of commands need no browser
    with FakeChatServer(replies(site)) as model:
        task = tmp_path / "tasks.jsonl"
        task.write_text('{"id": "balance", "question": "What is my balance?"}\n')
        allow = ("--allow", site, "-m", model.url)
        command(tmp_path, "-i", str(task), "-o", "runs/a.jsonl", *allow)
        run = StoppedRun(tmp_path / "runs/a/balance")
        assert run.question == "Please log in." and len(run.browsers) == 1
        app = create_app(Library(sources_of([tmp_path / "runs/a.jsonl"])))
        app.start()
        try:
            with opened_page(app.url) as page:
                page.get_by_text("balance").first.click()
                page.get_by_role("button", name="Look at the browser of web_agent").click()
                picture = page.get_by_role("application")
                expect(picture).to_be_visible()
                page.get_by_text(re.compile(r"^Elements")).click()
                page.get_by_role("button", name="textbox 'Name'").click()
                expect(page.locator(".done-list li")).to_have_count(1)
                picture.focus()
                page.keyboard.type("ada")
                expect(page.locator(".done-list li")).to_have_count(2)
                page.get_by_role("button", name="textbox 'Password'").click()
                expect(page.locator(".done-list li")).to_have_count(3)
                picture.focus()
                page.keyboard.type("hunter2hunter2")
                page.keyboard.press("Enter")
                expect(page.locator(".done-list li")).to_have_count(4)
                expect(page.locator(".browser")).to_contain_text("Account")
                page.get_by_label("Your answer").fill("You are logged in now.")
                expect(page.locator(".hand-back pre")).to_contain_text("You are logged in now.")
                page.get_by_role("button", name="Hand back and resume").click()
                expect(page.get_by_text("ended with exit code 0")).to_be_visible(timeout=40_000)
                expect(page.get_by_text("42 crowns").first).to_be_visible()
        finally:
            app.stop()
    text = (tmp_path / "runs/a/balance/events.jsonl").read_text()
    assert "hunter2" not in text
    done = [e for e in read_events(tmp_path / "runs/a/balance") if e["kind"] == "user_acted"]
    assert len(done) == 4 and done[1]["data"]["action"].startswith("type_text textbox 'Name'")
    assert "***" in done[3]["data"]["action"] and done[3]["data"]["url"].endswith("/account")
    (row,) = (tmp_path / "runs/resumed.jsonl").read_text().splitlines()
    assert json.loads(row)["eval"]["pred"] == "42 crowns"
    prompts = json.dumps([call.messages for call in model.calls])
    assert "While the run waited, the user acted in your browser" in prompts
    assert "one new browser" not in prompts and "is a new one at the same address" not in prompts


def test_a_run_without_browser_or_journal_cannot_be_taken_over(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the journal has no run"), Journal(tmp_path / "j"):
        StoppedRun(tmp_path / "j")
    with Journal(tmp_path / "k") as journal:
        model = ScriptedLLM([block("ask_human('Well?')")])
        agent = MultiStepAgent(name="mine", model=model, tools=[AskHumanTool()])
        agent.run("t", journal=journal, workdir=tmp_path / "w")
    run = StoppedRun(tmp_path / "k")
    assert run.browsers == [] and run.question == "Well?" and run.action == ""
    with pytest.raises(ConfigError, match="the run of mine was not started by a command"):
        run.command("yes")


def test_an_action_is_approved_with_the_approver_of_the_run(tmp_path: Path) -> None:
    def reply(call: ChatCall) -> str:
        if "You are the main agent" in json.dumps(call.messages):
            return block("stop(ask_llm('What is 6 * 7?'), 'asked')")
        return "42"

    with FakeChatServer(reply) as model:
        tasks = tmp_path / "tasks.jsonl"
        tasks.write_text('{"id": "sum", "question": "What is 6 * 7?"}\n')
        gate = "approver={'stop': ['ask_llm']}"
        more = ("-u", "model.call_kwargs={'temperature': 0}")
        said = command(
            tmp_path, "-i", str(tasks), "-o", "runs/a.jsonl", "-m", model.url, "-u", gate, *more
        )
        run = StoppedRun(tmp_path / "runs/a/sum")
        assert run.action.startswith("ask_llm(") and run.question == "", said.stderr
        resume = run.command(approve=True)
        updates = json.loads(resume[resume.index("--updates") + 1])
        assert updates["approver"] == {"stop": ["ask_llm"]} and resume[-1] == "--approve"
        assert updates["model"]["call_kwargs"] == {"temperature": 0}
        done = command(tmp_path, *resume[3:])
        assert done.returncode == 0 and done.stdout.strip() == "42", done.stderr
        assert StoppedRun(tmp_path / "runs/a/sum").action == ""


def test_a_run_with_settings_that_no_journal_has_needs_its_own_command(tmp_path: Path) -> None:
    class Approver:
        def review(self, action: Any) -> Decision:
            return Decision("stop", "not now")

    for name, settings, missing in (
        ("a", {"approver": Approver()}, "approver"),
        ("b", {"web_agent": {"web_env": {"secrets": SECRETS}}}, "secrets"),
    ):
        model = ScriptedLLM([block("ask_human('Well?')")])
        agent = CKAgent(model=model, **settings)  # type: ignore[arg-type]
        with Journal(tmp_path / name) as journal:
            agent.run("t", journal=journal, workdir=tmp_path / "w", max_steps=1)
        with pytest.raises(ConfigError, match=rf"not have these settings: .*{missing}.*--resume"):
            StoppedRun(tmp_path / name).command("yes")
