"""Policies for tasks that are done by clicking: buttons, tabs, menus, trees, boards."""

from __future__ import annotations

import re
from functools import cache
from statistics import fmean

from miniwob_world import Element, GaveUp, Screen, World, matched, ordinal, policy, quoted


@policy("click-test")
def click_the_button(world: World) -> None:
    """Click the only button."""
    world.click(world.look().of("button")[0])


@policy("click-test-2", "click-test-transfer", "click-button-sequence", "button-delay")
def click_buttons_in_order(world: World) -> None:
    """Click the buttons that are named in capitals, waiting where the task says so."""
    screen = world.look()
    wait = re.search(r"wait (\d+) seconds", world.task)
    for name in re.findall(r"\b(ONE|TWO)\b", world.task):
        if wait and name == "TWO":
            world.act("wait_for", seconds=int(wait[1]) - 0.1)  # acting takes a moment itself
        world.click(screen.named(name, "button"))


@policy("click-button", "unicode-test", "click-link", "click-dialog-2")
def click_the_quoted(world: World) -> None:
    """Click what the task has in quotes."""
    name = quoted(world.task)[0]
    screen = world.look()
    # the cross of a dialog is drawn; its name for those who cannot see is Close
    wanted = screen.maybe(name, "button", "link", "generic")
    world.click(wanted or screen.named("Close" if name == "x" else name))


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
    """Open one tab after the other until the link is there."""
    name = quoted(world.task)[0]
    seen: set[str] = set()
    while True:
        screen = world.look()
        link = screen.maybe(name, "generic", "link")
        if link:
            world.click(link)
        tabs = [tab for tab in screen.of("tab") if tab.name not in seen]
        if not tabs:
            raise GaveUp(f"{name!r} is in none of the tabs")
        seen.add(tabs[0].name)
        world.click(tabs[0])


@policy("click-collapsible", "click-collapsible-nodelay")
def expand_and_submit(world: World) -> None:
    """Expand the first section, then press its Submit."""
    world.click(world.look().of("tab")[0])
    world.submit()


@policy("click-collapsible-2", "click-collapsible-2-nodelay")
def find_in_sections(world: World) -> None:
    """Expand one section after the other until the link is there."""
    name = quoted(world.task)[0]
    names = [tab.name for tab in world.look().of("tab")]
    for section in names:
        world.click_named(section, "tab")
        link = world.look().maybe(name, "generic", "link")
        if link:
            world.click(link)
    raise GaveUp(f"{name!r} is in none of the sections")


@policy("click-pie", "click-pie-nodelay")
def pie_menu(world: World) -> None:
    """Open the pie menu, then click the item."""
    world.click_named("+")
    world.click_named(quoted(world.task)[0])


@policy("click-menu")
def nested_menu(world: World) -> None:
    """Open submenus with the mouse, click the last item of the path."""
    *parents, last = matched(r"Select (.+)", world.task)[1].split(">")
    for name in parents:
        world.act("hover", world.look().named(name, "menuitem").id)
        for _ in range(10):  # submenus open a moment after the mouse came
            if world.look().named(name, "menuitem").has("expanded"):
                break
            world.act("wait_for", seconds=0.3)
    world.click_named(last, "menuitem")


@policy("click-menu-2")
def menu_with_icons(world: World) -> None:
    """Open the menu and click the item of this label, or with the same icon as the task shows."""
    icon = next((e["hint"] for e in world.look().elements if "ui-icon" in e["hint"]), "")
    world.click_named("Menu", "button")
    screen = world.look()
    if "labeled" in world.task:
        path = quoted(world.task)[-1].split(">")
    else:
        path = [_item_with(screen, icon)]
    for name in path:
        item = world.look().maybe(name, "menuitem")
        if item is None:  # in a submenu that is not open
            for parent in [e.name for e in world.look().of("menuitem") if e["hasPopup"]]:
                world.click_named(parent, "menuitem")
                item = world.look().maybe(name, "menuitem")
                if item:
                    break
        if item is None:
            raise GaveUp(f"{name!r} is not in the menu")
        world.click(item)


def _item_with(screen: Screen, icon: str) -> str:
    for item in screen.of("menuitem"):
        if icon and any(icon in e["hint"] for e in item.walk()):
            return item.name
    raise GaveUp("the task shows its item by a picture only")


@policy("navigate-tree")
def navigate_tree(world: World) -> None:
    """Open folders until the name is there."""
    name = quoted(world.task)[0]
    opened: set[int] = set()
    while True:
        screen = world.look()
        found = screen.maybe(name, "listitem", "generic", "StaticText")
        if found:
            world.click(found)
        folders = [
            e for e in screen.elements if "expandable-hitarea" in e["hint"] and e.id not in opened
        ]
        if not folders:
            raise GaveUp(f"{name!r} is in no folder")
        opened.add(folders[0].id)
        world.click(folders[0])


@policy("ascending-numbers")
def ascending_numbers(world: World) -> None:
    """Click the numbers, the smallest first; they are covered after the first click."""
    shown = [int(e.name) for e in world.look().clickables() if e.name.isdigit()]
    for number in sorted(shown):
        tiles = [e for e in world.look().clickables() if e.role == "generic"]
        world.click(tiles[shown.index(number)])  # the others keep their order
        shown.remove(number)


@policy("focus-text", "focus-text-2")
def focus_field(world: World) -> None:
    """Click the field of this number."""
    fields = world.look().of("textbox")
    world.click(fields[ordinal(world.task) - 1 if len(fields) > 1 else 0])


@policy("click-widget")
def click_widget(world: World) -> None:
    """Click the first element of the kind that is named."""
    kind = quoted(world.task)[0]
    screen = world.look()
    if kind in ("text", "textarea"):
        wanted = [e for e in screen.of("textbox") if e.has("multiline") == (kind == "textarea")]
    else:
        wanted = screen.of(kind)
    if not wanted:
        raise GaveUp(f"no {kind} is seen")
    world.click(wanted[0])


@policy("grid-coordinate")
def grid_coordinate(world: World) -> None:
    """Click the point whose hint is the coordinate."""
    wanted = matched(r"\(-?\d+,-?\d+\)", world.task)[0]
    points = [e for e in world.look().elements if e["hint"] == wanted]
    if not points:
        raise GaveUp(f"no point is marked {wanted}")
    world.click(points[0])


_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@policy("tic-tac-toe")
def tic_tac_toe(world: World) -> None:
    """Play for the best chance to win: a draw is a failure."""
    while True:
        squares = [e for e in world.look().elements if e.has("clickable") or e.role == "image"]
        if len(squares) != 9:
            raise GaveUp(f"{len(squares)} squares are seen")
        _, move = _best_move("".join(_mark(e) or "-" for e in squares))
        world.click(squares[move])


@cache
def _best_move(board: str) -> tuple[float, int]:
    """The chance to win a game of nine squares where X is next, and the move that gives it."""
    moves = [(_chance_after(_put(board, i, "X")), i) for i in _free(board)]
    return max(moves, default=(0.0, -1))


def _chance_after(board: str) -> float:
    """The chance of X once X has moved, against one who plays well every other time."""
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
    """X, O or nothing, drawn by the images x.png and o.png."""
    found = re.search(r"\b([xo])\.png", f"{square.name} {square['hint']}")
    return found[1].upper() if found else ""
