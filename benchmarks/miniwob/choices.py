"""Policies for tasks with clicks: buttons, tabs, menus, trees, boards."""

from __future__ import annotations

import re
from functools import cache
from statistics import fmean

from benchmarks.miniwob.world import (
    Element,
    PolicyFailed,
    Screen,
    World,
    matched,
    ordinal,
    policy,
    quoted,
)


@policy("click-test")
def click_the_button(world: World) -> None:
    """Click the only button."""
    world.click(world.observe().of("button")[0])


@policy("click-test-2", "click-test-transfer", "click-button-sequence", "button-delay")
def click_buttons_in_order(world: World) -> None:
    """Click the buttons in the order of the task, with its wait."""
    screen = world.observe()
    wait = re.search(r"wait (\d+) seconds", world.task)
    for name in re.findall(r"\b(ONE|TWO)\b", world.task):
        if wait and name == "TWO":
            world.act("wait_for", seconds=int(wait[1]) - 0.1)  # the click takes a moment, too
        world.click(screen.named(name, "button"))


@policy("click-button", "unicode-test", "click-link", "click-dialog-2")
def click_the_quoted(world: World) -> None:
    """Click the element whose name the task quotes."""
    name = quoted(world.task)[0]
    screen = world.observe()
    # the accessible name of the dialog's x is Close
    target = screen.maybe(name, "button", "link", "generic")
    world.click(target or screen.named("Close" if name == "x" else name))


@policy("click-dialog")
def close_dialog(world: World) -> None:
    """Close the dialog."""
    world.click_named("Close", "button")


@policy("click-tab")
def click_tab(world: World) -> None:
    """Click the tab with this name."""
    world.click_named(matched(r"Click on (Tab #\d+)", world.task)[1], "tab")


@policy("click-tab-2", "click-tab-2-easy", "click-tab-2-medium", "click-tab-2-hard")
def find_in_tabs(world: World) -> None:
    """Open the tabs one by one until the link appears."""
    name = quoted(world.task)[0]
    seen: set[str] = set()
    while True:
        screen = world.observe()
        link = screen.maybe(name, "generic", "link")
        if link:
            world.click(link)
        tabs = [tab for tab in screen.of("tab") if tab.name not in seen]
        if not tabs:
            raise PolicyFailed(f"{name!r} is in none of the tabs")
        seen.add(tabs[0].name)
        world.click(tabs[0])


@policy("click-collapsible", "click-collapsible-nodelay")
def expand_and_submit(world: World) -> None:
    """Expand the first section and click its Submit."""
    world.click(world.observe().of("tab")[0])
    world.submit()


@policy("click-collapsible-2", "click-collapsible-2-nodelay")
def find_in_sections(world: World) -> None:
    """Expand the sections one by one until the link appears."""
    name = quoted(world.task)[0]
    names = [tab.name for tab in world.observe().of("tab")]
    for section in names:
        world.click_named(section, "tab")
        link = world.observe().maybe(name, "generic", "link")
        if link:
            world.click(link)
    raise PolicyFailed(f"{name!r} is in none of the sections")


@policy("click-pie", "click-pie-nodelay")
def pie_menu(world: World) -> None:
    """Open the pie menu and click the item."""
    world.click_named("+")
    world.click_named(quoted(world.task)[0])


@policy("click-menu")
def nested_menu(world: World) -> None:
    """Hover over the submenus and click the last item."""
    *parents, last = matched(r"Select (.+)", world.task)[1].split(">")
    for name in parents:
        world.act("hover", world.observe().named(name, "menuitem").id)
        for _ in range(10):  # submenus open after a moment
            if world.observe().named(name, "menuitem").has("expanded"):
                break
            world.act("wait_for", seconds=0.3)
    world.click_named(last, "menuitem")


@policy("click-menu-2")
def menu_with_icons(world: World) -> None:
    """Open the menu and click the item with the label or icon of the task."""
    icon = next((e["hint"] for e in world.observe().elements if "ui-icon" in e["hint"]), "")
    world.click_named("Menu", "button")
    screen = world.observe()
    if "labeled" in world.task:
        path = quoted(world.task)[-1].split(">")
    else:
        path = [_item_with(screen, icon)]
    for name in path:
        item = world.observe().maybe(name, "menuitem")
        if item is None:  # in a closed submenu
            for parent in [e.name for e in world.observe().of("menuitem") if e["hasPopup"]]:
                world.click_named(parent, "menuitem")
                item = world.observe().maybe(name, "menuitem")
                if item:
                    break
        if item is None:
            raise PolicyFailed(f"{name!r} is not in the menu")
        world.click(item)


def _item_with(screen: Screen, icon: str) -> str:
    for item in screen.of("menuitem"):
        if icon and any(icon in e["hint"] for e in item.walk()):
            return item.name
    raise PolicyFailed("the task shows the item only by a picture")


@policy("navigate-tree")
def navigate_tree(world: World) -> None:
    """Open folders until the name appears."""
    name = quoted(world.task)[0]
    opened: set[int] = set()
    while True:
        screen = world.observe()
        found = screen.maybe(name, "listitem", "generic", "StaticText")
        if found:
            world.click(found)
        folders = [
            e for e in screen.elements if "expandable-hitarea" in e["hint"] and e.id not in opened
        ]
        if not folders:
            raise PolicyFailed(f"{name!r} is not in a folder")
        opened.add(folders[0].id)
        world.click(folders[0])


@policy("ascending-numbers")
def ascending_numbers(world: World) -> None:
    """Click the numbers in ascending order; they are hidden after the first click."""
    shown = [int(e.name) for e in world.observe().clickables() if e.name.isdigit()]
    for number in sorted(shown):
        tiles = [e for e in world.observe().clickables() if e.role == "generic"]
        world.click(tiles[shown.index(number)])  # the others keep their order
        shown.remove(number)


@policy("focus-text", "focus-text-2")
def focus_field(world: World) -> None:
    """Click the field with this number."""
    fields = world.observe().of("textbox")
    world.click(fields[ordinal(world.task) - 1 if len(fields) > 1 else 0])


@policy("click-widget")
def click_widget(world: World) -> None:
    """Click the first element of the given kind."""
    kind = quoted(world.task)[0]
    screen = world.observe()
    if kind in ("text", "textarea"):
        expected = [e for e in screen.of("textbox") if e.has("multiline") == (kind == "textarea")]
    else:
        expected = screen.of(kind)
    if not expected:
        raise PolicyFailed(f"the observation has no {kind}")
    world.click(expected[0])


@policy("grid-coordinate")
def grid_coordinate(world: World) -> None:
    """Click the point with this coordinate as its hint."""
    expected = matched(r"\(-?\d+,-?\d+\)", world.task)[0]
    points = [e for e in world.observe().elements if e["hint"] == expected]
    if not points:
        raise PolicyFailed(f"the observation has no point {expected}")
    world.click(points[0])


_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@policy("tic-tac-toe")
def tic_tac_toe(world: World) -> None:
    """Play for the best chance to win; a draw is a failure."""
    while True:
        squares = [e for e in world.observe().elements if e.has("clickable") or e.role == "image"]
        if len(squares) != 9:
            raise PolicyFailed(f"the observation has {len(squares)} squares")
        _, move = _best_move("".join(_mark(e) or "-" for e in squares))
        world.click(squares[move])


@cache
def _best_move(board: str) -> tuple[float, int]:
    """Return the chance of X to win with the next move, and that move."""
    moves = [(_chance_after(_put(board, i, "X")), i) for i in _free(board)]
    return max(moves, default=(0.0, -1))


def _chance_after(board: str) -> float:
    """Return the chance of X after its move, if the opponent plays well in half of its moves."""
    free = _free(board)
    if _wins(board, "X") or not free:
        return float(_wins(board, "X"))
    well = _wins_at(board, "O") or _wins_at(board, "X") or free
    chances = {i: _chance_before(_put(board, i, "O")) for i in free}
    return (fmean(chances.values()) + fmean(chances[i] for i in well)) / 2


def _chance_before(board: str) -> float:
    return 0.0 if _wins(board, "O") else _best_move(board)[0]


def _free(board: str) -> list[int]:
    return [i for i, mark in enumerate(board) if mark == "-"]


def _put(board: str, square: int, mark: str) -> str:
    return board[:square] + mark + board[square + 1 :]


def _wins(board: str, who: str) -> bool:
    return any(all(board[i] == who for i in line) for line in _LINES)


def _wins_at(board: str, who: str) -> list[int]:
    return [i for i in _free(board) if _wins(_put(board, i, who), who)]


def _mark(square: Element) -> str:
    """Return X, O or an empty string for the images x.png and o.png."""
    found = re.search(r"\b([xo])\.png", f"{square.name} {square['hint']}")
    return found[1].upper() if found else ""
