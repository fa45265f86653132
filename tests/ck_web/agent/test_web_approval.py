"""Approval of browser actions in a real Chromium: rules stop every way to press "Buy"."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_site import browser_settings, serve
from web_scripts import code

from ck_main.agent import CKAgent
from ck_pro import Status
from ck_pro.approval import Decision, Guard, RuleApprover, describe
from ck_pro.events import Action, ErrorObservation
from ck_pro.events.computer_schema import computer_action
from ck_pro.exceptions import GuardStopped
from ck_pro.language import CodeLanguage
from ck_pro.model import CallContext, Reply
from ck_pro.session import AgentSession, StopReason
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent, WebEnv
from ck_web.actions import parse_action
from ck_web.browser import shared_servers
from ck_web.computer import ComputerAgent, ComputerEnv

pytestmark = pytest.mark.browser

SHOP = """<!doctype html><title>Shop</title>
<style>body { margin: 0 } button, input, a, div, label { position: absolute; left: 20px }</style>
<form action="/paid">
  <input aria-label="Amount" name="amount" style="top: 20px">
  <input aria-label="Note" name="note" type="checkbox" style="top: 60px">
  <button id="buy" style="top: 100px; width: 200px; height: 40px">Buy now</button>
</form>
<a href="/" style="top: 160px">Home</a>
<form action="/paid"><button aria-label="Continue" style="top: 200px">B&#8203;uy &#65281;</button>
</form>
<form action="/paid"><button style="top: 240px">Buy o'clock</button></form>
<form action="/paid"><input type="submit" id="more" value="Buy more" style="top: 280px"></form>
<label for="more" style="top: 320px">Proceed</label>
<div style="top: 360px; width: 100px; height: 40px" onclick="location = '/paid'"><b>B</b>uy</div>
<form action="/paid"><button accesskey="b" style="top: 410px">Buy by key</button></form>
<div id="card" draggable="true" role="button" style="top: 460px; width: 100px; height: 40px"
  ondragstart="event.dataTransfer.setData('text', 'x')">Card</div>
<div role="button" aria-label="Buy bin" style="top: 520px; width: 100px; height: 60px"
  ondragover="event.preventDefault()" ondrop="location = '/paid'"></div>
<iframe style="position: absolute; left: 400px; top: 20px" srcdoc="<form action='/paid'
  target='_top'><input aria-label='Sum'><button>Buy inside</button></form>"></iframe>
<div style="left: 540px; top: 310px; width: 200px; height: 100px; background: #eee"
  onclick="location = '/paid'">Buy in the middle</div>
"""


class Site:
    """The shop, with a count of payments."""

    def __init__(self) -> None:
        self.url = ""
        self.paid = 0
        self.page = SHOP

    def pay(self, path: str) -> str:
        self.paid += 1
        return "<title>Paid</title>paid"


@pytest.fixture(scope="module")
def served() -> Iterator[Site]:
    site = Site()
    with serve({"/": lambda path: site.page, "/paid": site.pay}) as site.url:
        yield site
        shared_servers.stop_servers()


@pytest.fixture
def site(served: Site) -> Site:
    served.paid, served.page = 0, SHOP
    return served


@pytest.fixture
def settings(site: Site) -> dict[str, Any]:
    return browser_settings(target_url=f"{site.url}/")


class Asked:
    """An approver that records the actions it reviews, and follows rules."""

    def __init__(self, decide: Callable[[Action], Decision] | None = None) -> None:
        self.actions: list[Action] = []
        self._decide = decide or RuleApprover(stop=["Buy"]).review

    def review(self, action: Action) -> Decision:
        self.actions.append(action)
        return self._decide(action)

    @property
    def texts(self) -> list[str]:
        return [describe(action) for action in self.actions]


def filled(env: WebEnv, action: str) -> str:
    """Return an action string, with ids in place of elements in braces."""

    def number(found: re.Match[str]) -> str:
        tree = env.observe().text
        line = next((one for one in tree.splitlines() if found[1] in one), None)
        assert line, tree
        return line.strip().partition("]")[0] + "]"

    return re.sub(r"\{(.*?)\}", number, action)


WAYS = {
    "click": "click {button 'Buy now'}",
    "enter in a field": "type {textbox 'Amount'} 3",
    "enter key in a field": "press {textbox 'Amount'} Enter",
    "enter in a check box": "press {checkbox 'Note'} Enter",
    "several keys": "press {textbox 'Amount'} a Enter",
    "space on the button": "press {button 'Buy now'} Space",
    "click at a point": "click_at 100 120",
    "click in the form of a box": "click_at {button 'Buy now'} 5 5",
    "double click": "click_at 100 120 left double",
    "a name that hides the words": "click {button 'Continue'}",
    "a quote in the name": "click {button 'Buy o}",
    "a label of the button": "click_at 30 328",
    "a label that renames the button": "click {button 'Proceed'}",
    "a listener on a box": "click_at 22 370",
    "an access key": "press Alt+b",
    "a drop": "drag {button 'Card'} to {button 'Buy bin'}",
    "a drop by distance": "drag {button 'Card'} by 0,70",
    "a drag along points": "drag_path 60,480 60,550",
    "enter in a field of a frame": "type {textbox 'Sum'} 3",
    "the middle of the page": "click [1]",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_action_bypasses_a_rule(
    way: str, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    approver = Asked()
    env = WebEnv(settings, workdir=tmp_path, approver=approver)
    try:
        with pytest.raises(GuardStopped, match="Buy"):
            env.step_state(filled(env, WAYS[way]))
        assert len(approver.actions) == 1 and site.paid == 0
        assert f" at {site.url}/" in approver.texts[0]
        assert env.step_state(filled(env, "click {link 'Home'}")).startswith("click [")
    finally:
        env.close()


def test_keys_that_move_the_focus_reach_only_what_was_approved(
    site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    env = WebEnv(settings, workdir=tmp_path, approver=Asked())
    try:
        said = env.step_state(filled(env, "press {checkbox 'Note'} Tab Space"))
        assert "would now reach button 'Buy now'" in said and site.paid == 0
    finally:
        env.close()


@pytest.mark.parametrize("text", ["ab  c", "a [ENTER]", "a[ENTER]"])
def test_typed_keys_do_not_press_a_button_that_took_the_focus(
    text: str, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    site.page = """<title>Jump</title><input aria-label="One" oninput="b.focus()">
      <form action="/paid"><button id="b">Buy</button></form>"""
    env = WebEnv(settings, workdir=tmp_path, approver=Asked())
    try:
        env.step_state(filled(env, "click {textbox 'One'}"))
        said = env.step_state(f"type_text {text}")
        assert "would now reach button 'Buy'" in said and site.paid == 0
    finally:
        env.close()


SWAPS = {
    "while it is decided": "",
    "when the mouse comes": "onmouseover = () => { it.textContent = 'Buy' };",
    "when it gets the focus": "it.onfocus = () => { it.textContent = 'Buy' };",
}


@pytest.mark.parametrize("when", SWAPS)
def test_a_page_cannot_swap_a_name_after_it_was_approved(
    when: str, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    site.page = f"""<title>Swap</title><form action="/paid"><button id="it">Continue</button></form>
      <script>{SWAPS[when]}</script>"""
    approver = Asked()
    env = WebEnv(settings, workdir=tmp_path)
    try:
        verb = "press {} Enter" if "focus" in when else "click {}"
        action = parse_action(filled(env, verb.replace("{}", "{button 'Continue'}")))
        named = env.named(action)
        assert "button 'Continue'" in describe(named)
        if not SWAPS[when]:
            env._browser.lease.client.perform(  # the page changes before the answer of the approver
                env._browser.request(parse_action(f"goto {site.url}/?swapped"))
            )
        done = env.execute(named)
        assert isinstance(done, ErrorObservation) and site.paid == 0, done
    finally:
        env.close()
    assert approver.actions == []


def called(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply("", tool_calls=[{"id": "c", "type": "function", "function": function}])


def acting(*replies: str) -> ScriptedLLM:
    """Return a model with one reply per step and no plans."""
    plan = code("{'completed_list': [], 'todo_list': [], 'experience': [], 'information': []}")

    def answer(messages: list[dict[str, Any]], context: CallContext) -> str:
        acts = context.phase == "action"
        return replies[min(context.step, len(replies) - 1)] if acts else plan

    return ScriptedLLM(answer)


CLICKS = acting(code("click(id=5)"), code("stop('')"))
POINT = {"action": "click", "x": 100, "y": 120}


def buying(settings: dict[str, Any], kind: str, approver: Any) -> Any:
    """Return an agent whose model buys immediately, in one language, or by a sub-agent."""
    given: dict[str, Any] = {"web_env": settings, "approver": approver}
    match kind:
        case "code":
            return WebAgent(model=CLICKS, **given)
        case "function calls":
            model = acting(called("click", id=5), called("stop", answer=""))
            return WebAgent(model=model, language="function_calls", **given)
        case "computer function":
            model = acting(called("computer", **POINT), called("stop", answer=""))
            return ComputerAgent(model=model, **given)
        case "computer code":
            by_point = ", ".join(f"{k}={v!r}" for k, v in POINT.items())
            model = acting(code(f"computer({by_point})"), code("stop('')"))
            return ComputerAgent(model=model, language=CodeLanguage(), **given)
    sub = {"model": CLICKS, "web_env": settings}
    model = acting(code("print(web_agent('shop'))"), code("stop('')"))
    return CKAgent(model=model, web_agent=sub, approver=approver)


def sessions(session: AgentSession) -> list[AgentSession]:
    return [session, *(s for child in session.children.values() for s in sessions(child))]


@pytest.mark.parametrize(
    "kind", ["code", "function calls", "computer function", "computer code", "sub-agent"]
)
def test_a_rule_stops_a_purchase_in_every_language(
    kind: str, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    session = buying(settings, kind, {"stop": ["Buy"]}).run("Buy it", workdir=tmp_path)
    ended = [(s.status, s.stop_reason) for s in sessions(session)]
    assert (Status.SENSITIVE_ACTION, StopReason.GUARD) in ended
    assert site.paid == 0
    message = next(s.message for s in sessions(session) if s.stop_reason is StopReason.GUARD)
    assert "button 'Buy now'" in message


def test_an_approved_action_is_reviewed_once(
    site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    approver = Asked(lambda action: Decision())
    session = buying(settings, "code", approver).run("Buy it", workdir=tmp_path)
    assert session.status is Status.DONE and site.paid == 1
    assert [t.partition(" at ")[0] for t in approver.texts] == [
        "click(id=5) on button 'Buy now'",
        "stop(answer='')",
    ]


FORM = """<!doctype html><title>Form</title><p>Nothing to see</p><form action="/sent">
<label>Name <input name="name"></label><label>Notes <textarea></textarea></label>
<label>Colour <select><option>Red</option><option>Green</option></select></label>
<label><input type="checkbox"> Agree</label><input type="file" aria-label="Document">
<div contenteditable role="textbox" aria-label="Rich">text</div><input type="date" aria-label="Day">
<button type="button" onclick="this.textContent = 'Pressed'">Press</button>
<div role="combobox" aria-label="Fruit" tabindex="0" onclick="list.hidden = false">pick</div>
<ul id="list" role="listbox" hidden><li role="option">Apple</li></ul>
<button>Send</button></form>"""


def test_approved_actions_act_as_without_an_approver(
    site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    site.page = FORM
    (tmp_path / "a.txt").write_text("a")
    approver = Asked(lambda action: Decision())
    env = WebEnv(settings, workdir=tmp_path, approver=approver)
    actions = [
        "type {textbox 'Name'} Ada[NOENTER]",
        "type {textbox 'Notes'} two words[NOENTER]",
        "type {textbox 'Rich'} bold[NOENTER]",
        "type {'Day'} 2024-12-31[NOENTER]",
        "select {combobox 'Colour'} Green",
        "select {combobox 'Fruit'} Apple",
        "check {checkbox 'Agree'}",
        "uncheck {checkbox 'Agree'}",
        "upload {button 'Document'} a.txt",
        "click {button 'Press'}",
        "press {textbox 'Name'} Control+a Delete",
        "type_text Bob",
        "clear {textbox 'Name'}",
        "hover {button 'Send'}",
        "wheel 100",
        "click_at 5 300 right",
        "type {textbox 'Name'} Eve",
    ]
    try:
        for n, action in enumerate(actions, 1):
            said = env.step_state(filled(env, action))
            assert " failed: " not in said and "not done" not in said, said
            assert len(approver.actions) == n
        assert "/sent?name=Eve" in env.get_state().step_url
    finally:
        env.close()


def test_clicks_of_two_threads_are_reviewed_separately(
    site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    both = threading.Barrier(2)

    def wait(action: Action) -> Decision:
        both.wait(30)
        return Decision()

    approver = Asked(wait)
    env = WebEnv(settings, workdir=tmp_path)
    guard = Guard(env, approver)
    clicks = [filled(env, "click {link 'Home'}"), filled(env, "click {button 'Buy now'}")]
    seen: list[Any] = []
    try:
        threads = [
            threading.Thread(
                target=lambda text=text: seen.append(guard.execute(parse_action(text)))
            )
            for text in clicks
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        env.close()
    # the second thread found another page, or the same page loaded again: it must not act
    assert len(seen) == len(approver.actions) == 2
    assert sum(isinstance(one, ErrorObservation) for one in seen) == 1


def test_approvers_do_not_see_a_password(
    site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    site.page = (
        """<title>Login</title><input type="password" aria-label="Word"><button>In</button>"""
    )
    approver = Asked(lambda action: Decision())
    env = WebEnv(settings, workdir=tmp_path, approver=approver)
    screen = ComputerEnv(settings, workdir=tmp_path)
    try:
        env.step_state(filled(env, "type {textbox 'Word'} hunter2[NOENTER]"))
        assert "hunter2" not in approver.texts[0] and "textbox 'Word'" in approver.texts[0]
        screen.execute(computer_action({"action": "click", "x": 30, "y": 20}))
        act = computer_action({"action": "type", "text": "hunter2"})
        Guard(screen, approver).execute(act)
        assert "hunter2" not in approver.texts[1] and "textbox 'Word'" in approver.texts[1]
    finally:
        env.close()
        screen.close()
