"""The parser of observations for the policies of the conformance suite."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.miniwob.world import PolicyFailed, Screen, matched, ordinal, quoted

pytestmark = pytest.mark.integration

PAGE = """URL: http://127.0.0.1:1/x
Tab 0 (current): Shop
[1] RootWebArea 'Shop'
\t[2] scrollbar 'the whole page is in view'
\t[3] StaticText 'Buy  the lamp.'
\t[4] table ''
\t\t[5] row 'Colour | it's red'
\t\t\t[6] textbox '' value: a, b: c hint: tt focused: true
\t[7] generic '' hint: ui-icon color: rgb(1,20,255) clickable: true covered by: div (id 9)
\t[8] Canvas '' hint: click-canvas color: rgb(255,255,255) box: 165,0,160,210
Note: something was said"""


def test_lines_become_elements_with_their_properties_and_places() -> None:
    screen = Screen(PAGE, "Buy the lamp.")
    assert [e.id for e in screen.all] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [e.id for e in screen.elements] == [4, 5, 6, 7]
    table, row, field, icon = screen.elements
    assert row.name == "Colour | it's red" and table.children == [row] and row.children == [field]
    assert field.properties == {"value": "a, b: c", "hint": "tt", "focused": "true"}
    assert icon.color == (1, 20, 255) and icon.has("clickable")
    assert icon["covered by"] == "div (id 9)" and icon["value"] == ""
    assert table.text == "Colour | it's red"


def test_elements_are_found_by_name_role_and_case() -> None:
    screen = Screen("[1] button 'Ok'\n[2] link 'ok'\n[3] button 'Cancel'")
    assert screen.named("ok").id == 2
    assert screen.named("OK", "button").id == 1
    assert screen.maybe("No") is None
    assert [e.id for e in screen.of("button")] == [1, 3]
    with pytest.raises(PolicyFailed, match="no element is named 'No'"):
        screen.named("No")


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.text(string.ascii_letters, min_size=1, max_size=12),
            st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])),
        )
    )
)
def test_any_name_is_parsed_back(lines: list[tuple[int, str, str]]) -> None:
    text = "\n".join(
        "\t" * depth + f"[{i}] {role} '{name}' hint: x"
        for i, (depth, role, name) in enumerate(lines)
    )
    read = Screen(text).all
    assert [(e.depth, e.role, e.name, e["hint"]) for e in read] == [
        (depth, role, name, "x") for depth, role, name in lines
    ]


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    Screen(text, text[:20])


def test_quotes_and_ordinals_of_task_texts_are_found() -> None:
    assert quoted('Enter "a b" and "c"') == ["a b", "c"]
    assert ordinal("the 3rd box") == 3
    assert matched(r"(\d+) mins", "for 30 mins")[1] == "30"
    for wrong in (lambda: ordinal("the box"), lambda: matched("x", "y")):
        with pytest.raises(PolicyFailed):
            wrong()
