"""The computer agent on a fake server: its actions and observations, in every language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_wire import FakeWire
from web_scripts import code, prompt_text

from ck_main.cli.command import run_command
from ck_pro import Status
from ck_pro.approval import AutoApprover, Guard, RuleApprover
from ck_pro.events import BrowserAction, ComputerAction, ComputerObservation, ErrorObservation
from ck_pro.events.computer_schema import computer_action
from ck_pro.exceptions import BrowserServerError
from ck_pro.language import CodeLanguage, ComputerUseLanguage
from ck_pro.model import Reply
from ck_pro.session import StopReason
from ck_pro.testing import FakeChatServer, ScriptedLLM
from ck_web.computer import ComputerAgent, ComputerEnv, browser_action, chord, elements_at
from ck_web.main import cli

LINK = {"role": "link", "name": "Lamps", "box": [10, 20, 100, 20]}
PATH = [[1, 2], [3, 4]]
PAGE = {"role": "main", "name": "", "box": [0, 0, 1280, 720]}


@pytest.mark.parametrize(
    ("given", "name", "value", "arguments"),
    [
        (
            {"action": "click", "x": 1, "y": 2, "button": "wheel", "keys": ["CTRL", "SHIFT"]},
            *("click_at", None, {"button": "middle", "double": False, "keys": "CTRL+SHIFT"}),
        ),
        ({"action": "double_click", "x": 1, "y": 2}, "click_at", None, {"double": True}),
        ({"action": "click", "x": 1, "y": 2, "button": "back"}, "goback", None, {}),
        ({"action": "click", "x": 1, "y": 2, "button": "forward"}, "goforward", None, {}),
        ({"action": "scroll", "x": 1, "y": 2, "scroll_y": 300}, "wheel", "0,300", {"dy": 300}),
        ({"action": "scroll", "scroll_x": -9}, "wheel", "-9,0", {"x": None, "dx": -9}),
        ({"action": "type", "text": "a b"}, "type_text", "a b", {"enter": False}),
        ({"action": "type", "text": "a\n"}, "type_text", "a", {"enter": True}),
        ({"action": "keypress", "keys": ["CTRL", "A"]}, "press", "CTRL+A", {}),
        ({"action": "move", "x": 1, "y": 2.5}, "move", None, {"x": 1, "y": 2.5}),
        (
            {"action": "drag", "path": [[1, 2], [3, 4]]},
            "drag_path",
            None,
            {"path": [(1, 2), (3, 4)]},
        ),
        ({"action": "wait"}, "wait", "1", {}),
        ({"action": "wait", "ms": 250}, "wait", "0.25", {}),
    ],
)
def test_computer_actions_become_browser_actions(
    given: Any, name: str, value: Any, arguments: Any
) -> None:
    done = browser_action(computer_action(given))
    assert (done.name, done.value) == (name, value)
    assert done.arguments.items() >= arguments.items()


def test_keys_become_a_chord() -> None:
    assert [chord(k) for k in (("A",), ("ALT", "F4"), (" ",))] == ["A", "ALT+F4", "Space"]
    assert (chord(("CMD", "SHIFT", "P")), chord(("SHIFT", "A"))) == ("CMD+SHIFT+P", "SHIFT+A")


def test_the_element_at_a_point_is_the_smallest_around_it() -> None:
    elements = {"3": PAGE, "4": LINK, "5": {"role": "StaticText", "name": "x", "box": []}}
    assert elements_at(elements, 50, 30) == "link 'Lamps'"
    assert elements_at(elements, 50, 60) == "main ''"
    assert elements_at(elements, None, None) == elements_at({}, 1, 1) == ""
    cart = {"role": "image", "name": "cart", "box": [20, 25, 9, 9]}
    assert elements_at({**elements, "6": cart}, 22, 30) == "image 'cart' in link 'Lamps'"
    odd = {"7": {"role": "Canvas", "box": "0,0,9,9"}, "8": {"role": "x", "box": [0, 0]}}
    assert elements_at(odd, 1, 1) == ""


# --- the environment ---------------------------------------------------------------------------


@pytest.fixture
def env(wire: FakeWire, tmp_path: Path) -> Any:
    """A computer on a fake server."""
    made = ComputerEnv({"server_url": wire.url}, workdir=tmp_path, target_url="http://shop.test/")
    yield made
    made.close()


def test_the_first_observation_has_screen_and_url(env: ComputerEnv) -> None:
    seen = env.observe()
    assert isinstance(seen, ComputerObservation)
    assert seen.text.splitlines() == ["URL: http://shop.test/", "Tab 0 (current): Shop"]
    assert seen.current_url == "http://shop.test/"
    assert seen.image.startswith("data:image/png;base64,")


def test_computer_and_browser_actions_are_sent(env: ComputerEnv, wire: FakeWire) -> None:
    seen = env.execute(computer_action({"action": "click", "x": 5, "y": 6}))
    assert isinstance(seen, ComputerObservation) and seen.image
    sent = wire.acted
    assert (sent[0]["actionName"], sent[0]["x"], sent[0]["y"]) == ("click_at", 5, 6)
    before = wire.count("performAction")
    assert env.execute(computer_action({"action": "screenshot"})).text == ("screenshot: taken")
    assert wire.count("performAction") == before
    gone = env.execute(BrowserAction(name="goto", value="http://shop.test/lamps"))
    assert "now there ('Lamps')" in gone.text
    assert env.observe().current_url == "http://shop.test/lamps"
    assert isinstance(env.execute(BrowserAction(name="click", target="99")), ErrorObservation)
    wire.browsers.clear()
    with pytest.raises(BrowserServerError):
        env.execute(computer_action({"action": "click", "x": 5, "y": 6}))


def test_an_observation_right_after_an_action_reuses_its_screenshot(
    env: ComputerEnv, wire: FakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks() -> int:
        before = wire.count("getAccessibilityTree")
        env.observe()
        return wire.count("getAccessibilityTree") - before

    monkeypatch.setattr("ck_web.computer.browser_env._REUSE_SECONDS", 3600.0)
    assert looks() == 1
    env.execute(computer_action({"action": "move", "x": 5, "y": 6}))
    assert looks() == 0
    env.execute(BrowserAction(name="goback"))
    assert looks() == 1
    monkeypatch.setattr("ck_web.computer.browser_env._REUSE_SECONDS", 0.0)
    env.execute(computer_action({"action": "move", "x": 5, "y": 6}))
    assert looks() == 1


def test_named_actions_have_their_current_target(env: ComputerEnv, wire: FakeWire) -> None:
    wire.target_facts = {"target": "link 'Lamps'"}
    for given in (
        {"action": "click", "x": 50, "y": 30},
        {"action": "type", "text": "x"},
        {"action": "drag", "path": [[15, 25], [500, 500]]},
    ):
        claimed = computer_action(given, target="link 'harmless'")
        named = env.named(claimed)
        assert isinstance(named, ComputerAction)
        assert (named.target, named.url) == ("link 'Lamps'", "http://shop.test/")
    assert wire.count("describeAction") == 3
    goto = env.named(BrowserAction(name="goto", value="x"))
    assert goto == BrowserAction(name="goto", value="x", value_name="url", url="http://shop.test/")
    assert wire.count("describeAction") == 3


def test_without_an_approver_an_action_is_one_request(env: ComputerEnv, wire: FakeWire) -> None:
    wire.elements = {"4": LINK}
    env.observe()
    before = len(wire.requests)
    act = computer_action({"action": "click", "x": 50, "y": 30})
    assert Guard(env, AutoApprover()).execute(act).text.endswith("(link 'Lamps')")
    assert [route for route, _ in wire.requests[before:]] == [
        "performAction",
        "getAccessibilityTree",
    ]


# --- the agent ---------------------------------------------------------------------------------


def agent(wire: FakeWire, *replies: Any, **settings: Any) -> ComputerAgent:
    web_env = {"server_url": wire.url, "target_url": "http://shop.test/"}
    return ComputerAgent(model=ScriptedLLM(list(replies)), web_env=web_env, **settings)


def call(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply("", tool_calls=[{"id": "c1", "type": "function", "function": function}])


def item(**action: Any) -> Reply:
    given = {"type": "computer_call", "call_id": "c1", "action": action}
    return Reply("", items=[{**given, "pending_safety_checks": []}])


CLICK = {"x": 50, "y": 30, "button": "left"}
TOUCH = call("computer", action="click", **CLICK)
SPEECHES = [
    pytest.param("computer_use", TOUCH, call("stop", answer="42")),
    pytest.param("function_calls", TOUCH, call("stop", answer="42")),
    pytest.param("computer_use_preview", item(type="click", **CLICK), Reply("42")),
    pytest.param(
        *("code", code("computer('click', x=50, y=30)"), code("stop('42')")),
        marks=pytest.mark.worker,
    ),
]


@pytest.mark.parametrize(("language", "click", "answer"), SPEECHES)
def test_a_run_works_in_every_language(
    wire: FakeWire, tmp_path: Path, language: str, click: Any, answer: Any
) -> None:
    a = agent(wire, click, answer, language=language)
    session = a.run("How many lamps?", workdir=tmp_path)
    assert (session.status, session.final_results["output"]) == (Status.DONE, "42")
    first = session.steps[0]["action"]
    assert first["observation"].startswith("click_at 50,30: ") and "\n" not in first["observation"]
    assert first["web_state_before"]["title"] == "Shop"
    (screen,) = first["screens"]
    assert screen["image"].startswith("data:image/png;base64,")
    assert not wire.browsers and not a.web_envs
    model = a.model
    assert isinstance(model, ScriptedLLM)
    assert "data:image/png;base64," in json.dumps(model.calls[0].messages)
    assert "URL: http://shop.test/" in prompt_text(model, 0)
    assert "click" in prompt_text(model, 1) + json.dumps(model.calls[1].messages)
    assert ("```python" in prompt_text(model, 0)) == (language == "code")


def test_a_rule_about_the_target_stops_an_action(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_point = {"target": "button 'Buy'"}
    monkeypatch.setattr(ComputerEnv, "named", lambda self, a: a.model_copy(update=at_point))
    approver = RuleApprover(stop=["button 'Buy"])
    session = agent(wire, TOUCH, approver=approver).run("t", workdir=tmp_path)
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)
    assert wire.count("performAction") == 0


def test_settings_are_merged_and_checked() -> None:
    a = ComputerAgent(language="computer_use_preview", web_env={"viewport_width": 1024})
    assert isinstance(a.language, ComputerUseLanguage) and a.language.display_width == 1024
    assert isinstance(ComputerAgent(language="code").language, CodeLanguage)
    names = ["computer", "goto", "goback", "reload", "save", "upload", "ask_human", "stop"]
    assert [f.name for f in a.functions()] == names
    head = a.get_function_definition(short=True)
    assert head.startswith("- computer_agent(task: str, target_url: str | None = None, ")


@pytest.mark.integration
def test_the_command_has_a_computer_option(
    wire: FakeWire, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with FakeChatServer([TOUCH, call("stop", answer="42")]) as server:
        settings = [f"web_env.server_url={wire.url}", "web_env.target_url=http://shop.test/"]
        updates = [x for s in settings for x in ("-u", s)]
        output = tmp_path / "a.jsonl"
        args = ["--computer", "-t", "How many?", "-m", server.url, "-o", str(output), "--plain"]
        code_ = run_command(cli, [*args, *updates])
    assert code_ == 0 and capfd.readouterr().out == "42\n"
    session = json.loads(output.read_text())["session"]
    assert session["info"]["agent"] == "computer_agent"
    assert session["steps"][0]["action"]["code"].startswith("computer(action='click', x=50, y=30")
