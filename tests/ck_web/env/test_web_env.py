"""`WebEnv` on a fake server: observations, actions and errors."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest
from fake_wire import PNG, SHOP, FakeWire
from web_scripts import web_env

from ck_pro.approval import describe
from ck_pro.events import BrowserAction, CodeAction, ErrorObservation
from ck_pro.exceptions import BrowserServerError
from ck_web.actions import parse_action
from ck_web.page.state import WebState

pytestmark = pytest.mark.integration


def test_actions_report_their_results(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    seen = env.observe()
    assert seen.text.startswith("URL: http://shop.test/\nTab 0 (current): Shop\n[1] RootWebArea")
    assert env.step_state("click [3] Lamps") == (
        "click [3] link 'Lamps': now at http://shop.test/lamps ('Lamps')"
    )
    state = env.get_state()
    assert (state.curr_step, state.title, state.action_string) == (
        1,
        "Lamps",
        "click [3] link 'Lamps'",
    )
    assert env.step_state("goback").startswith("goback: now at http://shop.test/ ")
    line = env.step_state("type [4] lamp")
    assert line == ("type [4] textbox \"Search it's\" 'lamp': now value: lamp")
    assert wire.requests[-1][1]["needEnter"] is True
    assert wire.requests[-1][1]["targetElementName"] == "Search it's"
    assert env.step_state("scroll down") == "scroll down: done"
    env.step_state("wait 2")
    assert wire.requests[-1][1]["timeout"] == 2000
    env.step_state("goto localhost:81/x")
    assert wire.requests[-1][1]["actionValue"] == "http://localhost:81/x"
    env.close()
    env.close()
    assert not wire.browsers
    with pytest.raises(BrowserServerError, match="closed"):
        env.observe()


def test_events_are_reported_once(wire: FakeWire, tmp_path: Path) -> None:
    alert = "alert 'Hi' was accepted"
    wire.pages[SHOP] = ("Shop", [*wire.pages[SHOP][1], f"\t[0] alert '{alert}'"])
    replies = [f"clicked; {alert}", "clicked; nothing changed", "not opened"]
    wire.replies["click"] = deque(replies)
    env = web_env(wire, tmp_path)
    for event, expected in zip(
        [alert, alert, "blocked: not opened"],
        [f"clicked; {alert}", f"clicked; {alert}", "blocked: not opened"],
        strict=True,
    ):
        wire.browsers["b1"]["events"].append(event)
        assert env.step_state("click [4]").partition('": ')[2] == expected
    wire.browsers["b1"]["events"].append(alert)
    assert env.observe().text.count(alert) == 1
    wire.pages[SHOP] = ("Shop", [*wire.pages[SHOP][1][:2], f"\t[4] StaticText '{alert}'"])
    wire.browsers["b1"]["events"].append(alert)
    assert f"Note: {alert}" in env.observe().text, "a page cannot suppress a note"
    assert ": now there ('Lamps')" in env.step_state("goto http://shop.test/lamps")
    env.close()


def test_an_address_without_a_page_is_not_reported_as_opened(
    wire: FakeWire, tmp_path: Path
) -> None:
    url = "http://shop.test:6000/"
    failure = f"{url} could not be opened: net::ERR_UNSAFE_PORT"
    wire.pages[url] = ("shop.test", ["[1] RootWebArea 'shop.test'", f"\t[0] alert '{failure}'"])
    wire.failures[url] = failure
    env = web_env(wire, tmp_path)
    wire.browsers["b1"]["events"].append(failure)
    assert env.step_state(f"goto {url}") == f"goto {url}: {failure}"
    env.close()


def test_a_redrawn_document_is_the_same_page(wire: FakeWire, tmp_path: Path) -> None:
    drawn = ("Shop", [*wire.pages[SHOP][1][:2], "\t[44] button 'Anew'"])
    for words, said in (
        ("pressed; the page changed", "new on the page: [44] button 'Anew'"),
        (f"pressed; the page is now {SHOP}", f"now at {SHOP} ('Shop')"),
    ):
        env = web_env(wire, tmp_path)
        old, wire.replies["press"] = wire.pages[SHOP], deque([words])
        wire.pages[SHOP] = drawn
        assert said in env.step_state("press Enter")
        wire.pages[SHOP] = old
        env.close()


def test_a_server_without_nested_observations_is_supported(wire: FakeWire, tmp_path: Path) -> None:
    wire.without_observation = True
    env = web_env(wire, tmp_path)
    assert env.step_state("click 3").startswith("click [3] link 'Lamps': now at")
    env.close()


def test_errors_of_the_model_are_observations(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    assert env.step_state("click [99]") == "click [99] failed: no element 99 on this page"
    assert env.step_state("goback") == "goback failed: there is no page to go back to"
    assert env.get_state().error_message == "there is no page to go back to"
    assert env.step_state("fly [3]").startswith("not done: unknown action 'fly'")
    assert isinstance(env.execute(CodeAction(code="1")), ErrorObservation)
    assert isinstance(
        env.execute(BrowserAction(name="click", target="99", arguments={})), ErrorObservation
    )
    env.close()


def test_an_unknown_action_is_an_observation(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    unknown = BrowserAction(name="fly", target="3")
    assert env.named(unknown) == unknown
    assert str(env.execute(unknown)) == "a browser cannot do a 'fly' action"
    assert not wire.acted


def test_a_lost_browser_raises(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    wire.browsers.clear()
    with pytest.raises(BrowserServerError, match="the lease of the browser b1 ended"):
        env.step_state("click [3]")
    with pytest.raises(BrowserServerError):
        env.observe()
    env.close()


def test_a_browser_is_closed_if_opening_its_page_fails(wire: FakeWire, tmp_path: Path) -> None:
    wire.fail("openPage", 500)
    with pytest.raises(BrowserServerError, match="injected fault"):
        web_env(wire, tmp_path)
    assert wire.count("closeBrowser") == 1 and not wire.browsers


def test_the_model_can_request_screenshots(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    assert env.observe().image == ""
    assert "saved as 'shot.png'" in env.step_state("screenshot 1 shot.png")
    assert (tmp_path / "shot.png").read_bytes() == PNG
    assert env.observe().image.startswith("data:image/png;base64,iVBOR")
    assert "boxed_screenshot" not in env.state()
    env.step_state("screenshot 0")
    assert env.observe().image == ""
    env.close()


def test_a_long_page_is_truncated_with_a_remark(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path, max_page_chars=60)
    text = env.observe().text
    assert "(the page text is truncated here" in text and "[5]" not in text
    env.close()


def test_each_action_of_a_loop_reports_its_changes(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    said = [env.step_state(f"type [4] {word}") for word in ("a", "b", "b")]
    assert [s.rpartition(": ")[2] for s in said] == ["a", "b", "done"]
    env.close()


def test_a_page_is_read_in_full_or_in_parts(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    wire.replies["read"] = deque(["Parts 1 to 2 of 2\n\na\nb", "Part 2 of 2\n\nb"])
    wire.replies["find"] = deque(["found 'lamp' in 1 lines:\n[3] link 'Lamps'"])
    assert env.step_state("read") == "Parts 1 to 2 of 2\n\na\nb"
    assert env.step_state("read 2 nolinks") == "Part 2 of 2\n\nb"
    sent = [(body["actionValue"], body["links"]) for body in wire.acted]
    assert sent == [("all", True), ("2", False)]
    assert env.step_state("find lamp").endswith("\n[3] link 'Lamps'")
    assert wire.requests[-1][1]["text"] == "lamp" and not wire.requests[-1][1]["observe"]
    env.close()


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("hover [3]", {"actionName": "hover", "targetId": "3"}),
        ("press Control+a Enter", {"actionName": "press", "keys": ["Control+a", "Enter"]}),
        ("press [4] Escape", {"targetId": "4", "keys": ["Escape"]}),
        ("drag [3] to [5]", {"targetId": "3", "toId": "5"}),
        ("drag [3] to 7,8", {"x": 7, "y": 8}),
        ('select [4] ["a", "b"]', {"actionName": "select_option", "values": ["a", "b"]}),
        ("drag [3] by 40,-5", {"targetId": "3", "deltaX": 40, "deltaY": -5}),
        ("select_text [3] lamps", {"actionName": "select_text", "targetId": "3", "text": "lamps"}),
        ("click_at [3] 1 2 double", {"actionName": "double_click_at", "targetId": "3", "x": 1}),
        ("move [3] 1 2", {"actionName": "move", "targetId": "3", "y": 2}),
        ("drag_path [3] 1,2 3,4", {"targetId": "3", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}),
        ("type_text hi[ENTER]", {"actionName": "type_text", "text": "hi", "needEnter": True}),
        ("scroll_in [3] up", {"actionName": "scroll_in", "actionValue": "up"}),
        ("scroll_to lamps", {"actionName": "scroll_to", "text": "lamps"}),
        ("click_at 1 2 right Control", {"x": 1, "y": 2, "button": "right", "keys": ["Control"]}),
        ("click_at 1 2 double", {"actionName": "double_click_at"}),
        ("drag_path 1,2 3,4", {"path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}),
        ("wheel 300 0 at 5,6", {"deltaX": 0, "deltaY": 300, "x": 5, "y": 6}),
        ("new_tab shop.test", {"actionName": "new_tab", "actionValue": "https://shop.test"}),
        ("switch_tab 1", {"actionName": "switch_tab", "actionValue": "1"}),
        ("wait_for 2s", {"actionName": "wait_for", "timeout": 2000, "text": ""}),
        ("wait_for Done", {"timeout": 10_000, "text": "Done"}),
        ("answer_dialog dismiss", {"actionValue": "dismiss"}),
        ("answer_dialog accept Ann", {"actionValue": "accept", "text": "Ann"}),
    ],
)
def test_further_actions_are_sent(
    wire: FakeWire, tmp_path: Path, action: str, fields: dict[str, object]
) -> None:
    env = web_env(wire, tmp_path)
    assert " failed" not in env.step_state(action)
    sent = wire.requests[-1][1]
    assert {name: sent[name] for name in fields} == fields
    env.close()


def test_invalid_values_are_reported(wire: FakeWire, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1_500_000))
    env = web_env(wire, tmp_path)
    asked = len(wire.requests)
    said = env.step_state(f"type [4] {'x' * 1_000_001}")
    assert " failed: invalid actionValue: " in said and len(said) < 300
    assert " failed: invalid x: " in env.step_state(f"move {'9' * 400} 1")
    assert len(wire.requests) == asked
    env.step_state("upload [4] large")
    assert len(wire.requests[-1][1]["files"][0]["buffer"]) == 2_000_000
    env.close()


# --- other names ---------------------------------------------------------------------------------


def test_a_browser_returns_to_an_earlier_state(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    first = env.get_state()
    assert not env.reset_to_state(first)
    env.step_state("click [3]")
    assert env.get_state().step_url == "http://shop.test/lamps"
    assert env.reset_to_state(first.to_dict()) and env.get_state().step_url == first.step_url
    state = env.get_state()
    assert (state.num_revert_state, state.total_actual_step, state.action) == (
        1,
        2,
        state.action_string,
    )
    assert WebState.create_from_dict(state.to_dict()).to_dict() == state.to_dict()
    assert "num_revert_state" not in state.to_dict() and state.copy() == state
    assert state.html_md == state.current_accessibility_tree and state.expanded_part is None
    assert not state.current_has_cookie_popup
    assert env.sync_files() == []
    env.close()
    with pytest.raises(BrowserServerError, match="closed"):
        env.sync_files()


def test_a_failed_reset_is_an_error(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    wire.fail("performAction", 403)
    with pytest.raises(BrowserServerError, match=r"cannot return to http://no\.test/"):
        env.reset_to_state({"step_url": "http://no.test/", "unknown": 1, "title": None})


def test_an_element_is_acted_on_by_name_in_one_request(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    wire.requests.clear()
    done = env.execute(parse_action("click [link 'Lamps']")).text
    assert done.startswith("click [3] link 'Lamps': now at http://shop.test/lamps")
    assert [route for route, _ in wire.requests] == ["performAction"]
    assert wire.acted[0]["targetId"] == "link 'Lamps'"
    env.close()


def test_an_approver_sees_the_element_behind_a_name(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    named = env.named(parse_action("click ['Export']"))
    assert describe(named).startswith("click(id=5) on button 'Export' at ")
    env.execute(named)
    assert wire.acted[-1]["targetId"] == "5"
    assert wire.acted[-1]["expectedTarget"] == "button 'Export'"
    env.close()
