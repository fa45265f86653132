"""Take over a run that stopped for a person: log in for it, in real Chromium, and hand it back."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
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
    viewing,
)
from paths import ROOT
from person_browser import opened_page
from playwright.sync_api import expect

from ck_main import CKAgent
from ck_main.viewer.stopped_run import StoppedRun
from ck_pro import MultiStepAgent
from ck_pro.approval import Decision
from ck_pro.exceptions import ConfigError, InputError
from ck_pro.journal import Journal, read_events
from ck_pro.testing import ChatCall, FakeChatServer, ScriptedLLM
from ck_pro.tools.human import AskHumanTool

pytestmark = [pytest.mark.integration, pytest.mark.browser]

SECRETS = {"code": {"value": "open sesame", "domains": ["shop.example"]}}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the resumed command write its rows here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def bank() -> Iterator[str]:
    with member_site("Bank", "Your balance is 42 crowns.") as site:
        yield site


def events_of(folder: Path, kind: str) -> list[Any]:
    return [e for e in read_events(folder) if e["kind"] == kind]


def test_a_person_logs_in_for_a_run_and_hands_it_back(bank: str, tmp_path: Path) -> None:
    at_login = block("ask_human('Please log in.')")
    with FakeChatServer(member_model(asks_the_bank(bank), lambda text: at_login)) as model:
        task = tmp_path / "tasks.jsonl"
        task.write_text('{"id": "balance", "question": "What is my balance?"}\n')
        command(tmp_path, "-i", str(task), "-o", "runs/a.jsonl", "--allow", bank, "-m", model.url)
        run = StoppedRun(tmp_path / "runs/a/balance")
        assert run.question == "Please log in." and len(run.browsers) == 1
        with viewing(tmp_path / "runs/a.jsonl") as app, opened_page(app.url) as page:
            page.get_by_text("balance").first.click()
            page.get_by_role("button", name="Look at the browser of ck_agent/web_agent").click()
            log_in(page)
            page.get_by_label("Your answer").fill("You are logged in now.")
            expect(page.locator(".hand-back pre")).to_contain_text("You are logged in now.")
            page.get_by_role("button", name="Hand back and resume").click()
            expect(page.get_by_text("ended with exit code 0")).to_be_visible(timeout=40_000)
            expect(page.get_by_text("42 crowns").first).to_be_visible()
    text = (tmp_path / "runs/a/balance/events.jsonl").read_text()
    assert "hunter2" not in text
    done = events_of(tmp_path / "runs/a/balance", "user_acted")
    assert len(done) == 4 and done[1]["data"]["action"].startswith("type_text textbox 'Name'")
    assert "***" in done[3]["data"]["action"] and done[3]["data"]["url"].endswith("/account")
    assert answer_of(tmp_path / "runs/resumed.jsonl") == "42 crowns"
    prompts = json.dumps([call.messages for call in model.calls])
    assert "While the run waited, the user acted in your browser" in prompts
    assert "one new browser" not in prompts and "is a new one at the same address" not in prompts


def test_a_person_chooses_between_the_browsers_of_two_agents(bank: str, tmp_path: Path) -> None:
    with member_site("Library", "You have 3 books.") as library:
        main = f"""from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor() as pool:
    one = pool.submit(web_agent, 'The balance?', 'http://{bank}/account')
    two = pool.submit(web_agent, 'How many books?', 'http://{library}/account')
    stop(one.result()['output'] + ', ' + two.result()['output'], '')"""
        at_bank = threading.Event()

        def at_login(text: str) -> str:
            if "The balance?" in text:  # is interrupted while the model thinks
                at_bank.set()
                model.closing.wait(5)
                return block("ask_human('Please log in at the Bank.')")
            at_bank.wait(30)
            return block("ask_human('Please log in at the Library.')")

        with FakeChatServer(member_model(main, at_login)) as model:
            task = tmp_path / "tasks.jsonl"
            task.write_text('{"id": "both", "question": "Both?"}\n')
            allow = ("--allow", bank, "--allow", library)
            command(tmp_path, "-i", str(task), "-o", "runs/a.jsonl", *allow, "-m", model.url)
            folder = tmp_path / "runs/a/both"
            browsers = StoppedRun(folder).browsers
            assert [one.asks for one in browsers] == [True, False]
            with viewing(tmp_path / "runs/a.jsonl") as app, opened_page(app.url) as page:
                page.get_by_text("both").first.click()
                choices = page.locator(".browser-choice")
                expect(choices).to_have_count(2)
                expect(choices.first).to_contain_text(f"Library loginasks youhttp://{library}/")
                expect(choices.first).to_contain_text("ck_agent/web_agent: How many books?")
                expect(choices.last).to_contain_text(f"Bank loginhttp://{bank}/account")
                expect(page.get_by_role("region", name="Browser: Library login")).to_be_visible()
                page.get_by_role("radio").first.focus()
                page.keyboard.press("ArrowRight")  # the keyboard chooses, too
                expect(page.get_by_role("region", name="Browser: Bank login")).to_be_visible()
                expect(page.get_by_role("radio").last).to_be_checked()
                log_in(page)
                page.get_by_role("radio").first.check()
                expect(page.get_by_role("region", name="Browser: Library login")).to_be_visible()
                log_in(page, 4)
                expect(page.get_by_label("Your answer")).to_have_value(re.compile("click .*Name"))
                page.get_by_role("button", name="Hand back and resume").click()
                expect(page.get_by_text("ended with exit code 0")).to_be_visible(timeout=60_000)
    task_of = {e["sid"]: e["data"]["task"] for e in events_of(folder, "session")}
    acted = [task_of[event["sid"]] for event in events_of(folder, "user_acted")]
    assert acted == ["The balance?"] * 4 + ["How many books?"] * 4
    assert answer_of(tmp_path / "runs/resumed.jsonl") == "42 crowns, 3 books"
    for name in ("The balance?", "How many books?"):
        prompts = [str(c.messages) for c in model.calls if name in str(c.messages[1])]
        notice = next(p for p in prompts if "While the run waited" in p)
        lines = notice[notice.index("While the run waited") :]
        assert lines.count("- type_text") == 2, "each agent reads what was done in its browser"


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
