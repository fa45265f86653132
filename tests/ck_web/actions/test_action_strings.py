"""Action strings: parsing returns what was written, for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions import ACTIONS, FURTHER_WEB_ACTIONS, parse_action
from ck_web.actions import PREDEFINED_WEB_ACTIONS as WRITE

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


plain = st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=60)
words = plain.filter(lambda text: bool(text.strip()))
pixels = st.floats(min_value=-5000, max_value=5000).map(lambda value: round(value, 3))
modifiers = st.sampled_from(["", "Control", "Shift", "Control+Shift"])


@given(ids, words)
def test_select_round_trips(id: int, option: str) -> None:
    action = parse_action(WRITE["select"](id, option))
    assert (action.target, action.value, action.arguments) == (str(id), option, {})


@given(ids, st.lists(words, min_size=2, max_size=4))
def test_select_of_several_round_trips(id: int, options: list[str]) -> None:
    action = parse_action(WRITE["select"](id, options))
    assert (action.target, action.arguments) == (str(id), {"values": options})


@given(marked, st.booleans())
def test_type_at_the_focus_keeps_every_character(content: str, enter: bool) -> None:
    if content or enter:
        action = parse_action(WRITE["type_text"](content, enter))
        assert (action.value, action.arguments) == (content, {"enter": enter})


@given(words)
def test_texts_to_find_round_trip(text: str) -> None:
    for name in ("find", "scroll_to", "select_text"):
        action = parse_action(WRITE[name](text))
        assert (action.name, action.value, action.target) == (name, text, "")


@given(ids, st.one_of(st.just(""), words))
def test_texts_to_select_in_an_element_round_trip(id: int, text: str) -> None:
    action = parse_action(WRITE["select_text"](text, id))
    assert (action.target, action.value, action.arguments) == (str(id), text, {})


@given(st.one_of(st.just(""), words), st.floats(min_value=0, max_value=60))
def test_wait_for_round_trips(text: str, seconds: float) -> None:
    action = parse_action(WRITE["wait_for"](text, seconds))
    assert action.value == text
    assert action.arguments["seconds"] == pytest.approx(seconds, abs=0.001)


@given(st.booleans(), st.one_of(st.just(""), words))
def test_dialog_answers_round_trip(accept: bool, text: str) -> None:
    action = parse_action(WRITE["answer_dialog"](accept, text))
    assert (action.value, action.arguments) == (text, {"accept": accept})


@given(ids, st.lists(paths, min_size=1, max_size=3))
def test_upload_round_trips(id: int, files: list[str]) -> None:
    action = parse_action(WRITE["upload"](id, files))
    assert (action.target, action.arguments) == (str(id), {"paths": files})
    assert parse_action(WRITE["upload"](id, files[0])).arguments == {"paths": files[:1]}


@given(pixels, pixels, st.sampled_from(["left", "right", "middle"]), st.booleans(), modifiers)
def test_points_round_trip(x: float, y: float, button: str, double: bool, keys: str) -> None:
    point = {"x": x, "y": y}
    action = parse_action(WRITE["click_at"](x, y, button, double, keys))
    assert action.arguments == {**point, "button": button, "double": double, "keys": keys}
    assert parse_action(WRITE["move"](x, y)).arguments == point
    action = parse_action(WRITE["drag"](3, x=x, y=y))
    assert (action.target, action.arguments) == ("3", point)
    action = parse_action(WRITE["drag"](3, by=(x, y)))
    assert (action.target, action.arguments) == ("3", {"by": [x, y]})


@given(ids, pixels, pixels, st.booleans(), modifiers)
def test_points_within_an_element_round_trip(
    id: int, x: float, y: float, double: bool, keys: str
) -> None:
    action = parse_action(WRITE["click_at"](x, y, "right", double, keys, id))
    given = {"x": x, "y": y, "button": "right", "double": double, "keys": keys}
    assert (action.target, action.arguments) == (str(id), given)
    action = parse_action(WRITE["move"](x, y, id))
    assert (action.target, action.arguments) == (str(id), {"x": x, "y": y})
    action = parse_action(WRITE["drag_path"]([[x, y], [y, x]], keys, id))
    assert (action.target, action.arguments) == (str(id), {"path": [[x, y], [y, x]], "keys": keys})


@given(st.lists(st.tuples(pixels, pixels), min_size=2, max_size=5), modifiers)
def test_paths_of_the_mouse_round_trip(points: list[tuple[float, float]], keys: str) -> None:
    action = parse_action(WRITE["drag_path"](points, keys))
    assert action.arguments == {"path": [list(point) for point in points], "keys": keys}


@given(pixels, pixels, st.one_of(st.none(), st.tuples(pixels, pixels)))
def test_turns_of_the_wheel_round_trip(
    down: float, right: float, point: tuple[float, float] | None
) -> None:
    where = {} if point is None else {"x": point[0], "y": point[1]}
    action = parse_action(WRITE["wheel"](down, right, **where))
    assert action.arguments == {"dx": right, "dy": down, **where}


@given(ids, ids)
def test_actions_on_elements_round_trip(id: int, other: int) -> None:
    for name in ("check", "uncheck", "clear", "hover"):
        assert parse_action(WRITE[name](id)) == BrowserAction(name=name, target=str(id))
    assert parse_action(WRITE["drag"](id, other)).arguments == {"to": str(other)}
    assert parse_action(WRITE["scroll_to"](id)).target == str(id)
    action = parse_action(WRITE["scroll_in"](id, "left"))
    assert (action.target, action.value) == (str(id), "left")
    assert parse_action(WRITE["press"]("Control+a", id)).target == str(id)


@given(st.integers(min_value=1, max_value=10**6))
def test_numbers_of_tabs_and_parts_round_trip(number: int) -> None:
    for name in ("switch_tab", "close_tab", "read"):
        assert parse_action(WRITE[name](number)).value == str(number)


@given(st.text(max_size=200))
def test_any_text_is_an_action_or_a_parse_error(text: str) -> None:
    try:
        action = parse_action(text)
    except ParseError as e:
        assert "\n" not in str(e)
    else:
        assert action.name in WRITE or action.name == "scroll"


@given(st.sampled_from(sorted(WRITE)), st.text(max_size=60))
def test_any_arguments_are_parsed_or_refused(name: str, rest: str) -> None:
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
        ("read", "read", "", None),
        ("READ ALL", "read", "", None),
        ("read [2]", "read", "", "2"),
        ("find two words", "find", "", "two words"),
        ('find "quoted"', "find", "", "quoted"),
        ("select [4] [Size] large", "select", "4", "[Size] large"),
        ('select [4] ["a"]', "select", "4", "a"),
        ('select [4] ["a", "b"]', "select", "4", "a, b"),
        ("check 7 the box", "check", "7", None),
        ("press Control+a", "press", "", "Control+a"),
        ("press 3", "press", "", "3"),
        ("press [3] Tab  Enter", "press", "3", "Tab Enter"),
        ("type_text some words", "type_text", "", "some words"),
        ("hover [ 3 ]", "hover", "3", None),
        ("drag 3 5", "drag", "3", None),
        ("drag [3] TO (10, 20)", "drag", "3", None),
        ("scroll_in [3]", "scroll_in", "3", "down"),
        ("scroll_to [3]", "scroll_to", "3", None),
        ("scroll_to 3 lamps", "scroll_to", "", "3 lamps"),
        ("drag 3 BY [40, 0]", "drag", "3", None),
        ("click_at [10, 20]", "click_at", "", None),
        ("click_at [3] (10, 20) double", "click_at", "3", None),
        ("Move [ 3 ] 10 20", "move", "3", None),
        ("drag_path [[1, 2], [3, 4]]", "drag_path", "", None),
        ("drag_path [3] [1, 2] [3, 4]", "drag_path", "3", None),
        ("select_text 3 lamps", "select_text", "", "3 lamps"),
        ("SelectText [3]", "select_text", "3", ""),
        ("select_text [3] some\nwords", "select_text", "3", "some\nwords"),
        ("wheel 300", "wheel", "", None),
        ("go_forward", "goforward", "", None),
        ("new_tab", "new_tab", "", None),
        ("switch_tab [1]", "switch_tab", "", "1"),
        ("switch_tab Tab 1", "switch_tab", "", "1"),
        ("close_tab", "close_tab", "", None),
        ("wait_for Done", "wait_for", "", "Done"),
        ("wait_for 3 results", "wait_for", "", "3 results"),
        ("wait_for 2 seconds", "wait_for", "", ""),
        ("answer_dialog Dismiss", "answer_dialog", "", ""),
        ("stop", "stop", "", None),
    ],
)
def test_parsing_is_tolerant(text: str, name: str, target: str, value: str | None) -> None:
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
        "read x",
        "read 0",
        "find",
        'find " "',
        "select [3] []",
        "check",
        "press",
        "press [3]",
        "type_text",
        "drag [3]",
        "drag [3] to nowhere",
        "drag [3] by far",
        "select_text",
        "click_at [3]",
        "drag_path [3] 1,2",
        "upload [3]",
        'upload [3] "a',
        "scroll_in [3] around",
        "scroll_to",
        "click_at here",
        "click_at 10",
        "move nan 3",
        "wheel",
        "wheel down",
        "wheel 3 at 5",
        "drag_path 1,2",
        "switch_tab",
        "switch_tab last",
        "close_tab x",
        "wait_for",
        "wait_for -1s",
        "answer_dialog maybe",
    ],
)
def test_a_parse_error_is_one_line(text: str) -> None:
    with pytest.raises(ParseError) as e:
        parse_action(text)
    assert str(e.value) and "\n" not in str(e.value)


def test_a_stop_answer_without_json_is_kept_unchanged() -> None:
    assert parse_action("stop [42]").arguments == {"answer": "42", "summary": ""}
    assert parse_action("stop the answer").arguments["answer"] == "the answer"


def test_invalid_arguments_are_parse_errors() -> None:
    with pytest.raises(ParseError, match="both x and y"):
        WRITE["drag"](3, x=1)
    with pytest.raises(ParseError, match="both numbers"):
        WRITE["wheel"](3, x=1)
    with pytest.raises(ParseError, match="both numbers"):
        WRITE["drag_path"]([[1], [2, 3]])
    for call in (lambda: WRITE["move"]("left", 1), lambda: WRITE["wait"]("soon")):
        with pytest.raises(ParseError, match=r"'(left|soon)' is not a number"):
            call()
    with pytest.raises(ParseError, match="True or False, not 'maybe'"):
        WRITE["screenshot"]("maybe")


def test_an_unknown_action_lists_every_known_one() -> None:
    with pytest.raises(ParseError) as e:
        parse_action("fly")
    seed = {"scroll_up", "scroll_down"}  # written as `scroll up`
    assert all(name in str(e.value) for name in set(WRITE) - seed)
    assert set(FURTHER_WEB_ACTIONS) < set(WRITE)


@pytest.mark.parametrize(
    ("call", "string", "target"),
    [
        (("click", ["Save"], {}), "click ['Save']", "'Save'"),
        (("click", ["Save"], {"role": "button"}), "click [button 'Save']", "button 'Save'"),
        (("click", ["2"], {"role": "link"}), "click [link '2']", "link '2'"),
        (("click", ["7"], {}), "click [7]", "7"),
        (("click", [7], {"role": "button"}), "click [7]", "7"),
        (("click", ["Don't say 'no'"], {}), "click ['Don't say 'no'']", "'Don't say 'no''"),
        (("click", ["a 'b'] c"], {}), "click [\"a 'b'] c\"]", "'a 'b'] c'"),
        (("type", ["Quantity", "3"], {}), "type ['Quantity'] 3", "'Quantity'"),
        (("select", ["Priority", "high"], {}), "select ['Priority'] high", "'Priority'"),
        (("check", ["I agree"], {}), "check ['I agree']", "'I agree'"),
        (("press", ["Enter", "Name"], {}), "press ['Name'] Enter", "'Name'"),
        (("upload", ["File", "a.csv"], {}), "upload ['File'] a.csv", "'File'"),
        (("select_text", ["", "Notes"], {}), "select_text ['Notes']", "'Notes'"),
        (("hover", ["[12]"], {}), "hover [12]", "12"),
    ],
)
def test_elements_have_names_in_functions_and_action_strings(
    call: tuple[str, list[object], dict[str, str]], string: str, target: str
) -> None:
    name, args, kwargs = call
    assert WRITE[name](*args, **kwargs) == string
    assert parse_action(string).target == target


def test_both_ends_of_a_drag_have_names() -> None:
    string = WRITE["drag"]("Card", "Done")
    assert string == "drag ['Card'] to ['Done']"
    action = parse_action(string)
    assert (action.target, action.arguments) == ("'Card'", {"to": "'Done'"})
    assert ACTIONS["drag"].request_fields(action) == {
        "actionName": "drag",
        "targetId": "'Card'",
        "toId": "'Done'",
    }


@pytest.mark.parametrize("id", [None, "", " ", 1.5, ["Save"]])
def test_what_is_neither_an_id_nor_a_name_is_an_error(id: object) -> None:
    with pytest.raises(ParseError, match="an element is its id or its name"):
        WRITE["click"](id)


def test_a_role_of_several_words_is_an_error() -> None:
    with pytest.raises(ParseError, match="a role is one word"):
        WRITE["click"]("Save", role="the button")


@pytest.mark.parametrize(
    ("string", "fields"),
    [
        ("read", {"actionValue": "all", "links": True}),
        ("read nolinks", {"actionValue": "all", "links": False}),
        ("read [2]", {"actionValue": "2", "links": True}),
        ("read 2 no links", {"actionValue": "2", "links": False}),
        ("find 50 cents", {"text": "50 cents", "actionValue": ""}),
        ("find ['50 cents']", {"text": "50 cents", "actionValue": "", "limit": 30}),
        (
            "find [link ''] 200",
            {"text": "", "actionValue": "", "role": "link", "limit": 200},
        ),
    ],
)
def test_read_and_find_have_options(string: str, fields: dict[str, object]) -> None:
    action = parse_action(string)
    assert ACTIONS[action.name].wire(action) == fields


def test_read_and_find_write_their_options() -> None:
    assert WRITE["read"](2, links=False) == "read 2 nolinks"
    assert WRITE["find"]("Next") == "find Next"
    assert WRITE["find"]("Next", role="link", limit=5) == "find [link 'Next'] 5"
