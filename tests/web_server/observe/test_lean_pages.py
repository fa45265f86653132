"""Observations repeat nothing: wrappers of one control, notes about what covers what."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from observe_lab import Lab

pytestmark = pytest.mark.browser

LISTENING = "<script>for (const e of document.querySelectorAll('.w')) e.onclick = () => 1</script>"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def test_a_button_in_listening_wrappers_is_one_line(lab: Lab) -> None:
    icon = "<span class=w><svg width=9 height=9></svg></span>"
    tools = "".join(
        f"<div class=w style='float: left'><div class=w title='{name}'>"
        f"<button aria-label='{name}'>{icon}</button></div></div>"
        for name in ("Cut", "Copy")
    )
    assert lab.lines(f"<div role=toolbar aria-label=Tools>{tools}</div>{LISTENING}") == [
        "toolbar 'Tools'",
        "button 'Cut'",
        "button 'Copy'",
    ]


def test_a_menu_bar_in_a_listening_wrapper_has_no_line_for_it(lab: Lab) -> None:
    items = "".join(f"<span role=menuitem tabindex=0>{name}</span>" for name in ("File", "Edit"))
    bar = f"<div class=w style='float: left'><div role=menubar>{items}</div></div>"
    lines = lab.lines(bar + LISTENING)
    assert lines == ["menubar ''", "menuitem 'File'", "menuitem 'Edit'"]


@pytest.mark.parametrize(
    "wrapper",
    [
        "<div class=w style='width: 400px; height: 300px'><button>Delete</button></div>",
        "<div class=w>Open the card <button>Delete</button></div>",
        "<div class=w draggable=true><button>Delete</button></div>",
    ],
    ids=["it fills more space", "it contains other text", "it can be dragged"],
)
def test_a_wrapper_with_a_use_of_its_own_keeps_its_line(lab: Lab, wrapper: str) -> None:
    lines = lab.lines(f"{wrapper}{LISTENING}")
    assert [line.split(" '")[0] for line in lines if "button" in line] == ["button"]
    assert any("clickable: true" in line for line in lines), lines


BACKGROUND = "".join(f"<p><button>Button {n}</button></p>" for n in range(6))
SHADE = "position: fixed; inset: 0; background: #0008"


def test_a_dialog_over_the_page_is_reported_in_one_line(lab: Lab) -> None:
    dialog = f"<div role=dialog aria-label=Ask style='{SHADE}'><button>Yes</button></div>"
    lab.show(BACKGROUND + dialog)
    body = lab.observe().yaml_body
    number = re.search(r"\[(\d+)\] dialog 'Ask'", body)
    assert number is not None
    state = f"covered: everything outside dialog Ask (id {number[1]})"
    assert body.split("\n")[0] == f"[1] RootWebArea '' {state}"
    assert body.count("covered") == 1
    assert all(f"button 'Button {n}'" in body for n in range(6))


def test_a_shade_below_a_dialog_is_reported_in_one_line(lab: Lab) -> None:
    shade = f"<div style='{SHADE}'></div>"
    dialog = (
        "<div role=dialog aria-label=Ask style='position: fixed; top: 9px'><a href=x>Yes</a></div>"
    )
    lab.show(BACKGROUND + shade + dialog)
    body = lab.observe().yaml_body
    assert "covered: everything outside dialog Ask" in body.split("\n")[0]
    assert body.count("covered") == 1


def test_a_bar_over_a_part_of_the_page_keeps_its_notes(lab: Lab) -> None:
    bar = "<div role=dialog aria-label=Note style='position: fixed; inset: 0 0 100px 0'>Hi</div>"
    free = "<button style='position: fixed; bottom: 0'>Free</button>"
    lab.show(BACKGROUND + free + bar)
    body = lab.observe().yaml_body
    assert body.count("covered by: dialog Note") == 6
    assert "covered: " not in body


def test_a_panel_that_covers_its_content_says_so_once(lab: Lab) -> None:
    lab.show(
        "<button>Free</button><div role=region aria-label=Panel style='position: relative'>"
        f"{BACKGROUND}<div style='position: absolute; inset: 0'></div></div>"
    )
    body = lab.observe().yaml_body
    assert "region 'Panel' covered: everything inside" in body
    assert body.count("covered") == 1


def test_elements_keep_the_fact_that_they_are_covered(lab: Lab) -> None:
    lab.show(f"{BACKGROUND}<div role=dialog aria-label=Ask style='{SHADE}'>Hi</div>")
    facts = lab.observe(elements=True).elements.values()
    covers = [fact["covered by"] for fact in facts if fact["role"] == "button"]
    assert len(covers) == 6 and all(cover.startswith("dialog Ask") for cover in covers)


def test_a_closed_list_is_one_line_with_its_first_options(lab: Lab) -> None:
    options = "".join(f"<option value={n}>Country number {n}</option>" for n in range(200))
    lines = lab.lines(
        "<select aria-label=Size><option>S<option selected>M<option>L</select>"
        f"<select aria-label=Country>{options}</select>"
    )
    assert lines == [
        "combobox 'Size' value: M options: 3 (S | M | L)",
        "combobox 'Country' value: Country number 0 options: 200 (Country number 0 | "
        "Country number 1 | Country number 2 | Country number 3 | Country number 4 | "
        "Country number 5 | \u2026)",
    ]


def test_a_row_has_the_whole_text_of_its_cells_and_no_names_of_fields(lab: Lab) -> None:
    lines = lab.lines(
        "<table border=1><tr><td><input type=checkbox aria-label='Select ticket 3 for a change'>"
        "<td><a href=/3>#3</a><td><a href=/x>Leaking seal at the inlet of the pump</a><td>new"
        "<td><select aria-label=Priority><option>major</select><td><input aria-label=Hours>"
        "<td><button aria-label='Delete ticket 3'>&#128465;</button></table>"
    )
    assert lines[1] == "row '| #3 | Leaking seal at the inlet of the pump | new | | | \U0001f5d1'"
    assert [line.split(" '")[0] for line in lines[2:]] == [
        *("checkbox", "link", "link", "combobox", "textbox", "button")
    ]


def test_a_link_repeated_in_a_row_has_one_line_and_keeps_its_text(lab: Lab) -> None:
    row = "<tr><td><a href=/3>#3</a><td><a href=/3>Leaking seal</a><td><a href=/3#c>2 comments</a>"
    lines = lab.lines(f"<table border=1>{row}<td>new</table>")
    assert lines[1:] == [
        "row '#3 | Leaking seal | 2 comments | new'",
        "link '#3'",
        "link '2 comments'",
    ]
    assert lab.id_of("link 'Leaking seal'")


def test_links_with_listeners_of_their_own_keep_their_lines(lab: Lab) -> None:
    row = "<tr><td><a class=w href=/3>#3</a><td><a class=w href=/3>Seal</a><td>new"
    lines = lab.lines(f"<table border=1>{row}</table>{LISTENING}")
    assert lines[2:4] == ["link '#3'", "link 'Seal'"]


def test_a_row_with_a_short_list_or_a_form_is_one_line(lab: Lab) -> None:
    lines = lab.lines(
        "<table border=1><tr><td>Anna<div>Baker</div><td><ul><li><a href=/e>Edit</a><li>"
        "<a href=/d>Delete</a></ul><td><form><button>Lock</button></form></table>"
    )
    assert lines[1:] == [
        *("row 'Anna Baker | Edit Delete | Lock'", "link 'Edit'", "link 'Delete'"),
        "button 'Lock'",
    ]


def test_an_icon_that_is_all_of_a_cell_is_named(lab: Lab) -> None:
    icons = [
        "<svg width=9 height=9><title>True</title></svg>",
        "<svg width=9 height=9><use href='#icon-cross'></use></svg>",
        "<i class='fa fa-check' style='display: inline-block; width: 9px; height: 9px'></i>",
        "<span title=Locked><i class=x style='display: inline-block; width: 9px'>&nbsp;</i></span>",
        "<img src=/img/no.gif alt='' width=9 height=9>",
    ]
    cells = "".join(f"<td>{icon}" for icon in icons)
    row = "row 'Ada | True | icon-cross | fa fa-check | Locked | no.gif'"
    assert lab.lines(f"<table border=1><tr><td>Ada{cells}</table>")[1] == row


def test_a_cell_that_only_wraps_its_check_box_has_no_line(lab: Lab) -> None:
    cell = "<td class=w style='width: 20px'><input type=checkbox aria-label=Pick></td>"
    lines = lab.lines(f"<table border=1><tr>{cell}<td>Ada</table>{LISTENING}")
    assert lines[1:] == ["row '| Ada'", "checkbox 'Pick' checked: false"]


def test_a_list_of_languages_is_one_line(lab: Lab) -> None:
    items = "".join(f"<li><a hreflang=x{n} href=/{n}>Language {n}</a>" for n in range(12))
    lines = lab.lines(f"<ul>{items}</ul><ul>{items.replace('hreflang', 'rel')}</ul>")
    assert lines[0] == "list '' languages: 12 (Language 0 | Language 1 | Language 2 | \u2026)"
    assert len([line for line in lines if line.startswith("link")]) == 12
    assert lab.id_of("link 'Language 11'")
