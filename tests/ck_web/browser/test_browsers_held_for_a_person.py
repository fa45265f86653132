"""A run that waits for a person keeps its browser, with both agents on a fake server."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire
from web_scripts import code, web_env, web_script

from ck_pro import Journal, MultiStepAgent, Status, StopTool
from ck_pro.exceptions import LeaseExpired
from ck_pro.language import CodeLanguage, text_of
from ck_pro.model import CallContext
from ck_pro.session import StopReason
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.computer import ComputerAgent
from ck_web.env import WebEnv

pytestmark = pytest.mark.worker

ASKING = ("ask_human('Which?')", "stop('found')")


def agent(kind: str, wire: FakeWire, **settings: Any) -> Any:
    """Return an agent that asks the user in its second step."""
    web = kind == "web"
    first = "click(3)" if web else "goto('http://shop.test/lamps')"
    given = {"web_env": {"server_url": wire.url, "target_url": SHOP}, **settings}
    given.setdefault("model", web_script(first, *ASKING))
    if web:
        return WebAgent(**given)
    return ComputerAgent(language=CodeLanguage(), **given)


@pytest.mark.parametrize("kind", ["web", "computer"])
@pytest.mark.parametrize("leased", [True, False])
def test_a_question_keeps_the_browser_for_the_resumed_run(
    wire: FakeWire, tmp_path: Path, kind: str, leased: bool
) -> None:
    asking = agent(kind, wire)
    with Journal(tmp_path / "j") as journal:
        session = asking.run("t", journal=journal, workdir=tmp_path)
    assert session.status is Status.HUMAN_INTERVENTION
    assert list(wire.browsers) == ["b1"] and wire.browsers["b1"]["parked"]
    assert not asking.web_envs
    if not leased:
        wire.browsers.clear()
    with Journal(tmp_path / "j") as journal:
        session = asking.resume(journal=journal, workdir=tmp_path, answer="the red one")
    assert (session.status, session.final_results["output"]) == (Status.DONE, "found")
    state = session.steps[-1]["action"]["web_state_before"]
    assert state["browser_id"] == ("b1" if leased else "b2") and state["title"] == "Lamps"
    prompts = "".join(text_of(m["content"]) for c in asking.model.calls for m in c.messages)
    assert ("the browser of this run was closed, and" in prompts) is not leased
    assert not wire.browsers, "a browser is still leased after the end"


def test_a_run_without_a_journal_reconnects_in_the_same_process(
    wire: FakeWire, tmp_path: Path
) -> None:
    asking = agent("web", wire)
    session = asking.run("t", workdir=tmp_path)
    assert list(wire.browsers) == ["b1"]
    session = asking.resume(session, workdir=tmp_path, answer="the red one")
    assert session.status is Status.DONE and not wire.browsers
    assert wire.count("getBrowser") == 1


@pytest.mark.parametrize(
    ("actions", "settings"),
    [
        (("stop('done')",), {}),
        (("click(99)",), {"max_steps": 2}),
        (("ask_human('a')",), {"max_steps": 1, "sub_agent_stops": "message"}),
    ],
)
def test_every_other_ending_closes_the_browser(
    wire: FakeWire, tmp_path: Path, actions: tuple[str, ...], settings: dict[str, Any]
) -> None:
    sub = agent("web", wire, model=web_script(*actions))
    if "sub_agent_stops" not in settings:
        sub = agent("web", wire, model=web_script(*actions), **settings)
        sub.run("t", workdir=tmp_path)
    else:
        model = ScriptedLLM([code("print(web_agent('x'))"), code("print('stopped')")])
        MultiStepAgent(model=model, tools=[sub], **settings).run("t", workdir=tmp_path)
    assert wire.count("getBrowser") == 1 and not wire.browsers


def test_a_lease_that_ends_during_a_run_is_the_stop_reason(wire: FakeWire, tmp_path: Path) -> None:
    def answer(messages: Any, context: CallContext) -> str:
        wire.browsers.clear()
        return code("print(read())")

    session = agent("computer", wire, model=ScriptedLLM(answer)).run("t", workdir=tmp_path)
    assert session.stop_reason is StopReason.LEASE_EXPIRED
    assert session.status is Status.PROBLEM
    assert "a resumed run opens a new browser at http://shop.test/" in session.message


def test_a_lease_is_renewed_when_half_of_it_is_over(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = web_env(wire, tmp_path)
    try:
        env.observe()
        assert wire.count("renewBrowser") == 0
        now = time.monotonic()
        monkeypatch.setattr("ck_web.browser.lease.time.monotonic", lambda: now + 1e9)
        env.observe()
        env.observe()
        assert wire.count("renewBrowser") == 1
    finally:
        monkeypatch.undo()
        env.close()


def test_an_older_server_keeps_a_browser_without_a_request(wire: FakeWire, tmp_path: Path) -> None:
    wire.old = True
    left = web_env(wire, tmp_path).suspend()
    env = WebEnv({"server_url": wire.url}, workdir=tmp_path, suspended=left)
    assert env.taken_up and env.get_state().browser_id == "b1"
    env.close()


def test_a_closed_browser_cannot_be_suspended(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    wire.browsers.clear()
    assert env.suspend() is None
    with pytest.raises(LeaseExpired):
        second = web_env(wire, tmp_path)
        wire.browsers.clear()
        second.observe()


def test_a_stop_of_the_guard_keeps_the_browser_of_a_sub_agent(
    wire: FakeWire, tmp_path: Path
) -> None:
    wire.target_facts = {"target": "button 'Buy'"}
    sub = agent("web", wire, model=web_script("click(5)", "stop('bought')"))

    def main(approver: Any, *replies: str) -> MultiStepAgent:
        tools = [sub, StopTool()]
        return MultiStepAgent(model=ScriptedLLM([*replies]), tools=tools, approver=approver)

    with Journal(tmp_path / "j") as journal:
        session = main({"stop": ["Buy"]}, code("print(web_agent('x'))")).run(
            "t", journal=journal, workdir=tmp_path / "w"
        )
    assert session.status is Status.SENSITIVE_ACTION and list(wire.browsers) == ["b1"]
    assert not wire.acted
    with Journal(tmp_path / "j") as journal:
        session = main(None, code("stop('done')")).resume(journal=journal, workdir=tmp_path / "w")
    assert session.status is Status.DONE
    assert [body["targetId"] for body in wire.acted] == ["5"] and not wire.browsers
    assert wire.count("getBrowser") == 1


def test_an_approval_is_void_after_the_person_left_the_page(wire: FakeWire, tmp_path: Path) -> None:
    model = web_script("click(5)\nstop('bought')")
    buying = agent("web", wire, model=model, approver={"stop": ["Buy"]}, planning="off")
    wire.target_facts = {"target": "button 'Buy'"}
    with Journal(tmp_path / "j") as journal:
        session = buying.run("t", journal=journal, workdir=tmp_path / "w")
    assert session.status is Status.SENSITIVE_ACTION
    wire.browsers["b1"]["history"].append("http://shop.test/lamps")
    with Journal(tmp_path / "j") as journal:
        session = buying.resume(journal=journal, workdir=tmp_path / "w", approve=True)
    assert session.status is Status.SENSITIVE_ACTION and not wire.acted
    assert "http://shop.test/lamps" in session.message, "the model did not look again"
    assert wire.count("getBrowser") == 1, "the person's page was lost"


def test_a_killed_run_uses_the_browser_of_a_given_server_again(
    wire: FakeWire, tmp_path: Path
) -> None:
    shopping = agent("web", wire, model=web_script("click(3)", "stop('found')"), planning="off")
    with Journal(tmp_path / "j") as journal:
        steps = shopping.run("t", journal=journal, workdir=tmp_path / "w", stream=True)
        next(steps)
        shutil.copytree(tmp_path / "j", tmp_path / "killed")
        leased = dict(wire.browsers)
        steps.close()
    wire.browsers.update(leased)  # a killed process closes nothing
    again = agent("web", wire, model=web_script("stop('found')"), planning="off")
    with Journal(tmp_path / "killed") as journal:
        session = again.resume(journal=journal, workdir=tmp_path / "w")
    assert session.status is Status.DONE and wire.count("getBrowser") == 1
    state = session.steps[-1]["action"]["web_state_before"]
    assert (state["browser_id"], state["title"]) == ("b1", "Lamps")


def test_a_wait_for_a_person_renews_the_lease(wire: FakeWire, tmp_path: Path) -> None:
    env = WebEnv({"server_url": wire.url, "target_url": SHOP}, workdir=tmp_path)
    try:
        before = wire.count("renewBrowser")
        env.hold(True)
        env.hold(True)
        assert wire.count("renewBrowser") == before + 2
        env.hold(False)
        assert wire.count("renewBrowser") == before + 2
        wire.browsers.clear()
        env.hold(True)  # the next request of the run reports the lost browser
    finally:
        env.close()
    env.hold(True)  # no effect after the end
