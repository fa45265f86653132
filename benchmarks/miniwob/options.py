"""Policies for tasks with options, colours and numbers to choose from."""

from __future__ import annotations

import colorsys
import re

from benchmarks.miniwob.colors import NAMED_COLORS
from benchmarks.miniwob.world import PolicyFailed, World, matched, policy


@policy("click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer", "click-option")
def click_choices(world: World) -> None:
    """Click the boxes with these names, then Submit."""
    names = matched(r"Select (.*) and click Submit", world.task)[1]
    if names != "nothing":
        for name in names.split(", "):
            world.click_named(name, "checkbox", "radio")
    world.submit()


@policy("choose-list")
def choose_from_list(world: World) -> None:
    """Select the option, then Submit."""
    name = matched(r"Select (.*) from the list", world.task)[1]
    world.act("select", world.observe().of("combobox", "listbox")[0].id, name)
    world.submit()


@policy("click-scroll-list")
def choose_several(world: World) -> None:
    """Select all the options, then Submit."""
    names = matched(r"Select (.*) from the scroll list", world.task)[1].split(", ")
    world.act("select", world.observe().of("listbox")[0].id, names)
    world.submit()


@policy("click-color")
def click_color(world: World) -> None:
    """Click the box with the colour of the task."""
    screen = world.observe()
    boxes = [e for e in screen.clickables() if e["hint"] == "color"]
    named = re.search(r"the (\w+) colored", world.task)
    shown = [e.color for e in screen.elements if e["hint"] == "query-color"]
    expected = NAMED_COLORS.get(named[1]) if named else shown[0] if shown else None
    for box in boxes:
        if expected and box.color == expected:
            world.click(box)
    raise PolicyFailed("the observation has no box in that colour")


@policy("click-shades")
def click_shades(world: World) -> None:
    """Click all squares whose hue is nearest to the colour of the task."""
    screen = world.observe()
    named = re.search(r"shades of (\w+)", world.task)
    primary = {"red": 0.0, "green": 1 / 3, "blue": 2 / 3}
    expected = named[1] if named and named[1] in primary else ""
    squares = [e for e in screen.clickables() if e.color and e.role == "generic"]
    if not expected:
        raise PolicyFailed("the task shows its colour")
    for square in squares:
        hue = colorsys.rgb_to_hsv(*(part / 255 for part in square.color or ()))[0]
        nearest = min(primary, key=lambda n: min(abs(hue - primary[n]), 1 - abs(hue - primary[n])))
        if nearest == expected:
            world.click(square)
    world.submit()


@policy("odd-or-even")
def odd_or_even(world: World) -> None:
    """Click Odd or Even beside each number."""
    rows = [e for e in world.observe().elements if e.role in ("button", "StaticText")]
    for i, row in enumerate(rows):
        if row.role == "StaticText" and re.fullmatch(r"-?\d+", row.name):
            odd = int(row.name) % 2
            world.click(rows[i - 1] if odd else rows[i + 1])
    world.submit()


@policy("find-greatest")
def find_greatest(world: World) -> None:
    """Pick the card with the greatest number."""
    cards = [e for e in world.observe().clickables() if e.name.isdigit()]
    world.click(max(cards, key=lambda e: int(e.name)))
    world.submit()


@policy("identify-shape")
def identify_shape(world: World) -> None:
    """Click the button with the kind of the figure."""
    screen = world.observe()
    figure = next(e for e in screen.clickables() if e.role == "generic")
    if figure.name:
        kind = "Number" if figure.name.strip().isdigit() else "Letter"
    else:
        kinds = {"rect": "Rectangle", "circle": "Circle", "polygon": "Triangle"}
        if figure["hint"] not in kinds:
            raise PolicyFailed("the observation does not show the shape")
        kind = kinds[figure["hint"]]
    world.click(screen.named(kind, "button"))
