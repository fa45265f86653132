"""The grammar of action strings: what is written is read back, whatever the texts hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions import PREDEFINED_WEB_ACTIONS as WRITE
from ck_web.actions import parse_action

ids = st.integers(min_value=1, max_value=10**9)
texts = st.text(max_size=80)
paths = st.text(min_size=1, max_size=40)
marked = st.builds(str.__add__, texts, st.sampled_from(["", "[NOENTER]", "[enter]", "[NoEnter] "]))


@given(ids, st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=40))
def test_click_round_trips(id: int, name: str) -> None:
    action = parse_action(WRITE["click"](id, name))
    assert (action.name, action.target) == ("click", str(id))
    assert action.arguments["link_name"] == name.strip()


@given(ids, texts, st.booleans())
def test_type_keeps_every_character(id: int, content: str, enter: bool) -> None:
    action = parse_action(WRITE["type"](id, content, enter))
    assert action == BrowserAction(
        name="type", target=str(id), value=content, arguments={"enter": enter}
    )


@given(ids, marked, st.booleans())
def test_type_of_a_text_that_looks_like_a_mark(id: int, content: str, enter: bool) -> None:
    action = parse_action(WRITE["type"](id, content, enter))
    assert (action.value, action.arguments["enter"]) == (content, enter)


@given(paths, paths)
def test_save_round_trips(remote: str, local: str) -> None:
    arguments = parse_action(WRITE["save"](remote, local)).arguments
    assert arguments == {"remote": remote, "local": local}


@given(st.booleans(), paths)
def test_screenshot_round_trips(flag: bool, path: str) -> None:
    assert parse_action(WRITE["screenshot"](flag, path)).arguments == {"flag": flag, "path": path}
    assert parse_action(WRITE["screenshot"](flag)).arguments == {"flag": flag, "path": ""}


@given(texts, texts)
def test_stop_round_trips(answer: str, summary: str) -> None:
    arguments = parse_action(WRITE["stop"](answer, summary)).arguments
    assert arguments == {"answer": answer, "summary": summary}


@given(st.text(max_size=200))
def test_any_text_is_an_action_or_a_parse_error(text: str) -> None:
    try:
        action = parse_action(text)
    except ParseError as e:
        assert "\n" not in str(e)
    else:
        assert action.name in WRITE or action.name == "scroll"


@given(st.sampled_from(sorted(WRITE)), st.text(max_size=60))
def test_any_arguments_are_read_or_refused(name: str, rest: str) -> None:
    try:
        parse_action(f"{name} {rest}")
    except ParseError as e:
        assert "\n" not in str(e)


@pytest.mark.parametrize(
    ("text", "name", "target", "value"),
    [
        ("click [3] Search", "click", "3", None),
        ("CLICK 3", "click", "3", None),
        ("  Click [ 003 ]  ", "click", "3", None),
        ("click[3]", "click", "3", None),
        ("type [7] two\nlines", "type", "7", "two\nlines"),
        ("TYPE 7 hello[NoEnter]", "type", "7", "hello"),
        ("type 7 hello[ENTER]\n", "type", "7", "hello"),
        ("type [7] ", "type", "7", ""),
        ("type [7] 12 apples", "type", "7", "12 apples"),
        ("type 7 [tag]", "type", "7", "[tag]"),
        ("select [4] Sort by: Price", "select", "4", "Sort by: Price"),
        ("scroll down", "scroll", "", "down"),
        ("Scroll [UP]", "scroll", "", "up"),
        ("scroll_down", "scroll", "", "down"),
        ("wait", "wait", "", None),
        ("wait [2.5]", "wait", "", "2.5"),
        ("wait 3 seconds", "wait", "", "3"),
        ("wait 99999", "wait", "", "60"),
        ("GoBack", "goback", "", None),
        ("go_back", "goback", "", None),
        ("restart", "restart", "", None),
        ("goto [http://[::1]:80/x?a=[1]]", "goto", "", "http://[::1]:80/x?a=[1]"),
        ("goto http://a.example/x\n", "goto", "", "http://a.example/x"),
        ("nop", "nop", "", None),
        ("stop", "stop", "", None),
    ],
)
def test_tolerant_forms(text: str, name: str, target: str, value: str | None) -> None:
    action = parse_action(text)
    assert (action.name, action.target, action.value) == (name, target, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "[3]",
        "click",
        "click [x]",
        "click -3",
        "click 3abc",
        "type",
        "select [3]",
        "scroll",
        "scroll left",
        "goto",
        "save a",
        "save a b c",
        'save "a b',
        "screenshot",
        "screenshot maybe",
        "wait soon",
        "fly [3]",
    ],
)
def test_what_is_no_action_is_told_in_one_line(text: str) -> None:
    with pytest.raises(ParseError) as e:
        parse_action(text)
    assert str(e.value) and "\n" not in str(e.value)


def test_stop_answers_that_are_not_json_are_kept_as_they_are() -> None:
    assert parse_action("stop [42]").arguments == {"answer": "42", "summary": ""}
    assert parse_action("stop the answer").arguments["answer"] == "the answer"
