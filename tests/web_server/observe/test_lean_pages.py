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
