"""Rendering of records as lines, without a browser."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from web_server.observe import render
from web_server.observe.marks import Box, draw_marks
from web_server.observe.render import IN_VIEW, INTERACTIVE, Node

LINE = re.compile(r"\t*\[(\d+)\] ([A-Za-z]+) '(.*)'([^']*)")


def record(
    depth: int,
    number: int,
    role: str,
    name: str = "",
    flags: int = IN_VIEW,
    states: tuple[str, ...] = (),
    box: str = "",
) -> str:
    return "\x1f".join([str(depth), str(number), role, str(flags), box, name, "\x1d".join(states)])


def body(*records: str, viewport_only: bool = True) -> list[str]:
    nodes = render.parse_records("\x1e".join(records))
    render.nest_popups(nodes)
    return list(render.to_lines(render.cut(nodes, viewport_only=viewport_only)))


def test_nesting_follows_depth() -> None:
    assert body(
        record(1, 3, "list", flags=0),
        record(2, 4, "link", "a"),
        record(2, 5, "link", "b"),
        record(1, 6, "button", "c"),
    ) == ["\t[3] list ''", "\t\t[4] link 'a'", "\t\t[5] link 'b'", "\t[6] button 'c'"]


def test_a_container_of_a_single_element_gets_no_line() -> None:
    assert body(record(1, 3, "list", flags=0), record(2, 4, "link", "a")) == ["\t[4] link 'a'"]


def test_a_named_container_keeps_its_line() -> None:
    lines = body(record(1, 3, "navigation", "Main", flags=0), record(2, 4, "link", "a"))
    assert lines == ["\t[3] navigation 'Main'", "\t\t[4] link 'a'"]


def test_elements_out_of_view_are_only_in_the_full_tree() -> None:
    records = (record(1, 3, "button", "seen"), record(1, 4, "button", "far", flags=INTERACTIVE))
    assert body(*records) == ["\t[3] button 'seen'"]
    assert body(*records, viewport_only=False) == ["\t[3] button 'seen'", "\t[4] button 'far'"]


def test_a_line_is_the_same_in_both_trees() -> None:
    records = (
        record(1, 3, "navigation", flags=0),
        record(2, 4, "link", "in", states=("focused: true",)),
        record(2, 5, "link", "out", flags=0),
    )
    cut, full = body(*records), body(*records, viewport_only=False)
    assert [line.strip() for line in cut] == ["[4] link 'in' focused: true"]
    assert "[4] link 'in' focused: true" in [line.strip() for line in full]


def test_items_of_an_open_menu_are_nested_below_its_opener() -> None:
    states = ("hasPopup: menu", "expanded: true", "@items 9")
    lines = body(
        record(1, 3, "button", "Menu", states=states),
        record(1, 4, "button", "other"),
        record(1, 9, "menu", "", flags=0),
        record(2, 10, "menuitem", "Cut"),
    )
    assert lines == [
        "\t[3] button 'Menu' hasPopup: menu expanded: true",
        "\t\t[9] menu ''",
        "\t\t\t[10] menuitem 'Cut'",
        "\t[4] button 'other'",
    ]


def test_expanded_becomes_open_without_items() -> None:
    states = ("hasPopup: menu", "expanded: true")
    assert body(record(1, 3, "button", "Menu", states=states)) == [
        "\t[3] button 'Menu' hasPopup: menu open: true"
    ]
    assert body(record(1, 3, "button", "More", states=("expanded: true",))) == [
        "\t[3] button 'More' expanded: true"
    ]


def test_ids_and_boxes_of_foreign_frames_are_converted() -> None:
    text = record(1, 3, "button", "b", box="10,20,30,40")
    (node,) = render.parse_records(text, ids={3: 77}, offset=(100.0, 200.4))
    assert (node.id, node.box) == (77, (110, 220, 30, 40))


def test_a_node_has_facts_for_programs() -> None:
    states = ["checked: true", "value: a: b", "@items 4"]
    node = Node(3, "checkbox", "x", IN_VIEW, (1, 2, 3, 4), states)
    assert node.to_dict() == {
        "role": "checkbox",
        "name": "x",
        "box": [1, 2, 3, 4],
        "checked": True,
        "value": "a: b",
    }


@pytest.mark.parametrize(
    ("above", "below", "said"),
    [(0, 0, "the whole page is in view"), (5, 7, "5 px above, 7 px below")],
)
def test_the_scroll_line_shows_all_directions(above: int, below: int, said: str) -> None:
    assert render.scroll_line(above, below) == f"[2] scrollbar '{said}'"


def test_a_name_cannot_imitate_a_line() -> None:
    name = "x' [9] button 'Pay"
    line = Node(3, "link", name, IN_VIEW, (), []).line()
    assert not re.search(r"\[9\] ([a-z]+) '", line)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 6),
            st.sampled_from(["list", "listitem", "button", "StaticText", "table", "row"]),
            st.text(st.characters(exclude_characters="\x1d\x1e\x1f"), max_size=20),
            st.sampled_from([0, IN_VIEW, INTERACTIVE, IN_VIEW | INTERACTIVE]),
        ),
        max_size=25,
    )
)
def test_every_line_keeps_the_form(
    rows: list[tuple[int, str, str, int]],
) -> None:
    records = "\x1e".join(
        record(depth, number, role, name, flags)
        for number, (depth, role, name, flags) in enumerate(rows, 3)
    )
    nodes = render.parse_records(records)
    assert len(list(render.flatten(nodes))) == len(rows)
    for viewport_only in (True, False):
        shown = render.cut(nodes, viewport_only=viewport_only)
        text = render.render_body("T\ntitle", {"above": 0, "below": 9}, shown)
        lines = text.split("\n")
        assert lines[0] == "[1] RootWebArea 'T title'" and lines[1].startswith("\t[2] ")
        assert len(lines) == 2 + len(list(render.flatten(shown)))
        for line in lines:
            assert LINE.fullmatch(line), line
    kept = {node.id for node in render.flatten(render.cut(nodes, viewport_only=True))}
    seen = {n.id for n in render.flatten(nodes) if n.flags & IN_VIEW and n.flags & INTERACTIVE}
    assert seen <= kept


def picture(image_format: str) -> bytes:
    encoded = io.BytesIO()
    Image.new("RGB", (200, 100), "white").save(encoded, image_format)
    return encoded.getvalue()


@pytest.mark.parametrize("image_format", ["png", "jpeg"])
def test_marks_are_drawn_around_the_boxes(image_format: str) -> None:
    boxes = [Box(7, 50, 30, 60, 40), Box(8, 190, -5, 50, 30), Box(9, 500, 500, 5, 5)]
    marked = draw_marks(picture(image_format), boxes, image_format)
    with Image.open(io.BytesIO(marked)) as image:
        assert image.format == image_format.upper() and image.size == (200, 100)
        pixels = image.convert("RGB")
        assert min(pixels.getpixel((80, 30))) < 128, "the edge of the first box"
        assert min(pixels.getpixel((80, 50))) > 200, "its inside is left alone"


def test_marks_are_encoded_as_png_or_jpeg() -> None:
    with pytest.raises(ValueError, match="'png' or 'jpeg'"):
        draw_marks(picture("png"), [], "gif")
