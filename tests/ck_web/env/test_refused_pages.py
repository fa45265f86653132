"""Pages that the policy refuses: the run ends and names the setting to change."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_site import browser_settings, serve
from web_scripts import code

from ck_main.agent import CKAgent
from ck_pro import Status
from ck_pro.model import CallContext
from ck_pro.session import StopReason
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.browser import shared_servers

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serve({"*": "<title>Here</title>here"}) as url:
        yield url
        shared_servers.stop_servers()


def acting(*replies: str) -> ScriptedLLM:
    plan = "{'completed_list': [], 'todo_list': [], 'experience': [], 'information': []}"

    def answer(messages: list[dict[str, Any]], context: CallContext) -> str:
        return code(replies[context.step] if context.phase == "action" else plan)

    return ScriptedLLM(answer)


def test_a_refused_first_page_ends_the_run_before_any_model_call(site: str, tmp_path: Path) -> None:
    model = acting("stop('x')")
    settings = browser_settings(allow=[], target_url=f"{site}/")
    session = WebAgent(model=model, web_env=settings).run("t", workdir=tmp_path)
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.PAGE_REFUSED)
    place = site.removeprefix("http://")
    assert f"-u \"web_env.allow=['{place}']\"" in session.message
    assert not model.calls


def test_the_message_names_the_setting_of_the_command(site: str, tmp_path: Path) -> None:
    sub = {"model": acting("stop('x')"), "web_env": browser_settings(allow=[])}
    model = acting(f"print(web_agent('look', '{site}/').log)", "stop('x')")
    session = CKAgent(model=model, web_agent=sub).run("t", workdir=tmp_path)
    assert "web_agent.web_env.allow=['127.0.0.1:" in session.steps[0]["action"]["observation"]
    (child,) = session.children.values()
    assert child.stop_reason is StopReason.PAGE_REFUSED


def test_a_blocked_first_page_ends_the_run(site: str, tmp_path: Path) -> None:
    settings = browser_settings(block=["*"], allow=[], target_url="http://example.com/")
    session = WebAgent(model=acting("stop('x')"), web_env=settings).run("t", workdir=tmp_path)
    assert session.stop_reason is StopReason.PAGE_REFUSED
    assert "example.com:80: web_env.block blocks it" in session.message


def test_a_run_whose_first_goto_is_refused_ends(site: str, tmp_path: Path) -> None:
    model = acting(f"goto('{site}/')", "stop('x')")
    session = WebAgent(model=model, web_env=browser_settings(allow=[])).run("t", workdir=tmp_path)
    assert session.stop_reason is StopReason.PAGE_REFUSED and len(session.steps) == 1


def test_a_page_refused_later_is_logged_once(
    site: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    goto = "print(goto('http://127.0.0.2:9/'))"
    settings = browser_settings(target_url=f"{site}/")
    with caplog.at_level(logging.WARNING, "ck_web"):
        model = acting(goto, goto, "stop('x')")
        session = WebAgent(model=model, web_env=settings).run("t", workdir=tmp_path)
    assert session.status is Status.DONE
    seen = session.steps[0]["action"]["observation"]
    assert "127.0.0.2 is not a public address" in seen and "--allow" not in seen
    logged = [r.getMessage() for r in caplog.records if "127.0.0.2" in r.getMessage()]
    assert len(logged) == 1 and "web_env.allow=['127.0.0.2:9']" in logged[0]
