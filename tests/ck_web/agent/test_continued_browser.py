"""Calls of the web agent that continue the browser of an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_site import Page, browser_settings, serve
from scripted_agents import agent, prompts
from web_scripts import code

from ck_pro import Journal
from ck_pro.session import AgentSession, Status
from ck_pro.session.observed import observation_text
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.browser import shared_servers

pytestmark = pytest.mark.browser

LOGIN = """<title>Log in</title><h1>Log in</h1>
<button onclick="document.cookie='user=ann'; location='/desk'">Enter</button>"""
DESK = Page(
    """<title>Desk</title><h1>Desk</h1><label>Note <input name="note"></label><p id="who"></p>
<script>document.getElementById('who').textContent = document.cookie || 'no user'</script>"""
)
PAGES = {"/continued-login": LOGIN, "/desk": DESK}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serve(PAGES) as url:
        yield url
        shared_servers.stop_servers()


def team(site: str, caller: list[str], *replies: str, **settings: Any) -> tuple[Any, WebAgent]:
    """Return a main agent and its web agent, with scripts."""
    web_env = browser_settings(target_url=f"{site}/continued-login")
    sub = WebAgent(model=ScriptedLLM([code(r) for r in replies]), web_env=web_env, **settings)
    return agent(*map(code, caller), sub_agents=[sub]), sub


def seen(session: AgentSession, step: int) -> str:
    return observation_text(session.steps[step]["action"]["observation"])


def test_page_login_typed_text_and_variables_stay(site: str, tmp_path: Path) -> None:
    a, sub = team(
        site,
        [
            "r = web_agent('Log in.')",
            "print(web_agent('Read the note.', continue_from=r)['output'])",
            "print(web_agent('Who?', target_url='SITE/desk', continue_from=r)['output'])".replace(
                "SITE", site
            ),
            "stop(1)",
        ],
        "click('Enter')\ntype('Note', 'hello', enter=False)\nmine = 7\nstop('in')",
        "assert 'user=ann' in read()\nstop(('hello' in find('Note'), mine))",
        "stop(find('user') or 'no user')",
    )
    session = a.run("t", workdir=tmp_path)
    assert seen(session, 1) == "(True, 7)"
    first = prompts(sub)[1]
    assert "/desk" in first and "user=ann" in first and "mine: 7" in first
    assert "user=ann" in seen(session, 2)  # `r` means its browser as it is now
    assert "/desk" in prompts(sub)[2] and "a new one" not in prompts(sub)[2]
    assert "/desk, an address of the task" in prompts(sub)[2]
    sessions = list(session.children.values())
    assert sessions[1].info["continue_from"] == sessions[0].id
    server = shared_servers._shared
    assert all(entry.users == 0 for entry in server.values())


def test_a_call_continues_after_a_step_limit(site: str, tmp_path: Path) -> None:
    a, _ = team(
        site,
        [
            "r = web_agent('Log in.')\nprint(r['variables'], r['log'])",
            "print(web_agent('Go on.', continue_from=True)['output'])",
            "stop(1)",
        ],
        "click('Enter')\nfound = ['a']",
        "",  # an unusable reply of the end phase
        "",
        "stop(found[0] + str('user=ann' in read()))",
        max_steps=1,
    )
    session = a.run("t", workdir=tmp_path)
    assert seen(session, 0).startswith("{'found': ['a']} ")
    assert next(iter(session.children.values())).status is Status.PROBLEM
    assert seen(session, 1) == "aTrue"


def test_only_results_can_be_continued(site: str, tmp_path: Path) -> None:
    a, _ = team(site, ["web_agent('Log in.', continue_from='the login')", "stop(1)"])
    session = a.run("t", workdir=tmp_path)
    assert "continue_from: give the result of an earlier call" in seen(session, 0)


def test_a_resumed_caller_continues_at_the_address_of_the_earlier_call(
    site: str, tmp_path: Path
) -> None:
    a, sub = team(
        site,
        [
            "r = web_agent('Log in.')",
            "print(web_agent('Read.', continue_from=True)['output'])",
            "stop(1)",
        ],
        "click('Enter')",
        "found = 1\nstop('in')",
        "stop(read())",
    )
    with Journal(tmp_path / "journal") as journal:
        session = a.run("t", workdir=tmp_path, journal=journal, max_steps=1)
        assert session.status is Status.PROBLEM
        a.resume(journal=journal, workdir=tmp_path)
    assert "Its variables are lost." in prompts(sub)[2]
    assert "/desk" in prompts(sub)[2] and "this is a new one" in prompts(sub)[2]
