"""Conversations, typed actions and policies in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pages_site import browser_settings, serve
from web_scripts import code

from ck_pro import AgentSession, Status
from ck_pro.approval import CallbackApprover, PolicyApprover
from ck_pro.events import Action, BrowserAction, BrowserObservation, BrowseURLAction
from ck_pro.run.run import run_of
from ck_pro.session import StopReason
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.browser import shared_servers

pytestmark = pytest.mark.browser

FORM = """<!doctype html><title>Desk</title><h1>Desk</h1>
<form action="/sent"><label>Name <input name="name"></label><label>Code
<input name="code" type="password"></label><button>Send it</button></form>"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    pages = {"/": lambda path: FORM, "/sent": lambda path: "<title>Sent</title><p>Thank you.</p>"}
    with serve(pages) as address:
        yield address
        shared_servers.stop_servers()


def web_agent(url: str, *replies: str, **settings: Any) -> WebAgent:
    return WebAgent(
        model=ScriptedLLM(list(replies)),
        web_env=browser_settings(target_url=f"{url}/"),
        templates={"plan": None, "end": None},
        **settings,
    )


def test_the_page_stays_between_turns(url: str) -> None:
    agent = web_agent(
        url,
        code("type(4, 'Ada', enter=False)\nstop('typed')"),
        code("click(6)\nstop('clicked')"),
        code("stop('read')"),
    )
    session = agent.turn(None, "Type Ada.", info={"target_url": f"{url}/"})
    assert session.final_results["output"] == "typed", session.message
    page = run_of(session).environment
    session = agent.turn(session, "Send it.")
    assert session.final_results["output"] == "clicked", session.message
    assert run_of(session).environment is page
    session = agent.turn(session, "Where are you?")
    assert session.steps[-1]["action"]["web_state_before"]["step_url"].endswith("name=Ada&code=")
    agent.end_session(session)
    assert session.run is None and session.status is Status.DONE


class Visitor(WebAgent):
    """A web agent whose first action opens a page."""

    def decide(self, session: AgentSession, kwargs: Any = None) -> list[Action]:
        if len(session.steps) == 1:
            return [BrowseURLAction(url=f"{session.info['target_url']}sent")]
        return super().decide(session, kwargs)


def test_a_page_is_browsed_and_observed(url: str) -> None:
    agent = Visitor(
        model=ScriptedLLM(lambda messages, context: code("stop('seen')")),
        web_env=browser_settings(target_url=f"{url}/"),
        templates={"plan": None, "end": None},
    )
    session = agent.run("Look.", target_url=f"{url}/")
    action, seen = session.history[0]
    assert action == BrowseURLAction(url=f"{url}/sent")
    assert isinstance(seen, BrowserObservation) and "Thank you." in seen.text
    assert session.status is Status.DONE, session.message


def test_an_approver_sees_role_name_page_and_text(url: str) -> None:
    seen: list[BrowserAction] = []

    def look(action: Action) -> Any:
        if isinstance(action, BrowserAction):
            seen.append(action)
        return True

    fill = "type(4, 'Ada', enter=False)\ntype(5, 'k3y', enter=False)\n"
    agent = web_agent(url, code(f"{fill}stop('x')"), approver=CallbackApprover(look))
    session = agent.run("t", target_url=f"{url}/")
    assert session.status is Status.DONE, session.message
    name, secret = seen
    assert (name.role, name.element_name, name.value) == ("textbox", "Name", "Ada")
    assert (secret.role, secret.element_name, secret.value) == ("textbox", "Code", "***")
    assert name.url == f"{url}/"


def test_a_policy_stops_a_button_of_a_site(url: str) -> None:
    rules = [
        {
            "kind": "browser",
            "role": "button",
            "element": "send",
            "domain": "127.0.0.1",
            "verdict": "stop",
            "reason": "sending is for people",
        },
        {"kind": "browser", "domain": ["127.0.0.1", "localhost"], "verdict": "approve"},
        {"tool": "stop", "verdict": "approve"},
    ]
    push = "type(4, 'Ada', enter=False)\nclick(6)\nstop('x')"
    agent = web_agent(url, code(push), approver=PolicyApprover(rules, "reject"))
    session = agent.run("t", target_url=f"{url}/")
    assert session.stop_reason is StopReason.GUARD
    assert "sending is for people" in session.message
