"""Policies for tasks with the mouse or single keys: drag, select, search by moving."""

from __future__ import annotations

import re

from benchmarks.miniwob.world import Element, PolicyFailed, World, matched, policy

_SIDES = {"left": (4, 100), "right": (156, 100), "up": (80, 54), "down": (80, 170)}
# edges of the area of all tasks: 160 x 160 pixels, below 50 pixels for the text


@policy("drag-box")
def drag_box(world: World) -> None:
    """Drag the small box onto the large one."""
    screen = world.observe()
    world.act("drag", screen.named("s").id, screen.named("L").id)
    world.submit()


@policy("drag-circle", "drag-single-shape")
def drag_aside(world: World) -> None:
    """Drag the shape to a side of the page."""
    side = matched(r"Drag the \w+ (\w+) then", world.task)[1]
    shape = next(e for e in world.observe().clickables() if e.role == "generic")
    x, y = _SIDES[side]
    world.act("drag", shape.id, x=x, y=y)
    world.submit()


@policy("drag-items")
def drag_items(world: World) -> None:
    """Drag an item of a list to another place."""
    name, where = matched(r"Drag ([\w-]+) (.*)\.", world.task).groups()
    names = _items(world)
    at = names.index(name)
    ordinal = re.search(r"(\d+)(?:st|nd|rd|th)", where)
    if ordinal:
        to = int(ordinal[1]) - 1
    else:
        to = {"top": 0, "bottom": len(names) - 1, "down": at + 1, "up": at - 1}[
            next(word for word in ("top", "bottom", "down", "up") if word in where)
        ]
    screen = world.observe()
    world.act("drag", screen.named(name).id, screen.named(names[to]).id)


@policy("drag-items-grid")
def drag_in_grid(world: World) -> None:
    """Drag an item of a grid of three columns to another place."""
    name, where = matched(r"Drag ([\w-]+) (.*)\.", world.task).groups()
    names = _items(world)
    at = names.index(name)
    steps = {"up by one": -3, "down by one": 3, "left by one": -1, "right by one": 1}
    if where in steps:
        to = at + steps[where]
    else:
        row = 0 if "top" in where else 2 if "bottom" in where else 1
        column = 0 if "left" in where else 2 if "right" in where else 1
        to = row * 3 + column
    screen = world.observe()
    world.act("drag", screen.named(name).id, screen.named(names[to]).id)


@policy("drag-sort-numbers")
def drag_sort(world: World) -> None:
    """Sort a list by dragging, from the top."""
    for place in range(4):
        for _ in range(3):
            numbers = [int(name) for name in _items(world)]
            if numbers[place] == sorted(numbers)[place]:
                break
            expected = str(sorted(numbers)[place])
            screen = world.observe()
            world.act("drag", screen.named(expected).id, screen.named(str(numbers[place])).id)
    world.submit()


def _items(world: World) -> list[str]:
    """Return the names of the list's items in order."""
    lists = world.observe().of("list")
    names = [e.name for e in lists[0].walk() if e.name] if lists else []
    if not names:
        raise PolicyFailed("the observation has no items")
    return names


@policy("daily-calendar")
def daily_calendar(world: World) -> None:
    """Drag over free half hours of the calendar, and name and create the event."""
    amount, unit, name, begin, end = matched(
        r'Create a ([\d.]+) (hour|min)s? event named "(\w+)", between (\w+) and (\w+)', world.task
    ).groups()
    halves = round(float(amount) / (0.5 if unit == "hour" else 30))
    first, last = (_half_hour(time) for time in (begin, end))
    for start in range(first, last - halves + 1):
        for _ in range(60):
            screen = world.observe()
            slots = {e["hint"]: e for e in screen.elements if e["hint"].startswith("hh-")}
            expected = [slots.get(f"hh-{start + i}") for i in range(halves)]
            if all(expected):
                break
            world.act("scroll_down")
        found = [slot for slot in expected if slot is not None]
        if len(found) < halves or any(slot["covered by"] for slot in found):
            continue
        world.act("drag", found[0].id, found[-1].id)
        screen = world.observe()
        field = screen.of("textbox")
        if field:
            world.type(field[0], name)
            world.click_named("Create", "button")
    raise PolicyFailed("the calendar has no free time")


def _half_hour(time: str) -> int:
    hour, half = matched(r"(\d+)([AP]M)", time).groups()
    return 2 * (int(hour) % 12 + (12 if half == "PM" else 0))


@policy("text-editor")
def text_editor(world: World) -> None:
    """Select a word, or everything, by keys, and click the button of the style."""
    screen = world.observe()
    editor = next(e for e in screen.elements if e.has("editable"))
    text = editor["value"] or editor.text
    word = re.search(r"give the text (.+?) the (?:style|color)", world.task)
    if word:
        at = re.search(rf"(?<!\S){re.escape(word[1])}(?!\S)", text)
        if at is None:
            raise PolicyFailed(f"{word[1]!r} is not in the text")
        world.act("press", " ".join(["Control+Home", *["ArrowRight"] * at.start()]), editor.id)
        world.act("press", " ".join(["Shift+ArrowRight"] * len(word[1])))
    else:
        world.act("press", "Control+a", editor.id)
    style = matched(r"the (?:style|color) (\w+)", world.task)[1]
    if "color" in world.task:
        _choose_color(world, style)
    else:
        hint = {"bold": "ql-bold", "italics": "ql-italic", "underlined": "ql-underline"}[style]
        world.click(next(b for b in world.observe().of("button") if b["hint"] == hint))
    world.submit()


def _choose_color(world: World, name: str) -> None:
    """Open the palette above the text and choose a colour."""
    world.click(next(e for e in world.observe().clickables() if e.role == "generic"))
    expected = {"red": (230, 0, 0), "orange": (255, 153, 0), "yellow": (255, 255, 0)}
    expected |= {"green": (0, 138, 0), "blue": (0, 102, 204), "purple": (153, 51, 255)}
    for swatch in world.observe().elements:
        if swatch.color == expected[name]:
            world.click(swatch)
            return
    raise PolicyFailed(f"the palette has no {name}")


@policy("hot-cold")
def hot_cold(world: World) -> None:
    """Move the mouse in smaller and smaller steps until the page shows HOT."""
    area = range(6, 156), range(56, 176)
    for step, signals in ((25, "COLD WARM HOT"), (12, "WARM HOT"), (5, "HOT")):
        x, y = _search_signal(world, area, step, signals)
        reach = {25: 40, 12: 12, 5: 0}[step]
        area = range(x - reach, x + reach + 1), range(y - reach, y + reach + 1)
    world.act("click_at", x, y)


def _search_signal(
    world: World, area: tuple[range, range], step: int, signals: str
) -> tuple[int, int]:
    """Return the first point of an area where the page shows one of these signals."""
    for y in area[1][::step]:
        for x in area[0][::step]:
            if not (0 < x < 160 and 50 < y < 176):
                continue
            world.act("move", x, y)
            shown = {e.name for e in world.observe().elements}
            if shown & {*signals.split()}:
                return x, y
    raise PolicyFailed(f"no point shows one of {signals}")


@policy("resize-textarea")
def resize_textarea(world: World) -> None:
    """Drag the handle for the size."""
    side, way = matched(r"the (height|width) is (\w+)", world.task).groups()
    handles = [e for e in world.observe().elements if "resizable" in e["hint"]]
    if not handles:
        raise PolicyFailed("the observation has no handle")
    handle = _handle(handles, side)
    x, y = (158, 120) if side == "width" else (80, 200)
    if way == "smaller":
        x, y = (20, 80) if side == "width" else (80, 66)
    world.act("drag", handle.id, x=x, y=y)
    world.submit()


def _handle(handles: list[Element], side: str) -> Element:
    ending = "-e" if side == "width" else "-s"
    return next((h for h in handles if h["hint"].endswith(ending)), handles[-1])


@policy("highlight-text", "highlight-text-2")
def highlight(world: World) -> None:
    """Select a paragraph."""
    paragraphs = [e for e in world.observe().of("StaticText") if e.name != "Submit"]
    place = re.search(r"(\d)(?:st|nd|rd) paragraph", world.task)
    world.act("select_text", id=paragraphs[int(place[1]) - 1 if place else 0].id)
    world.submit()


@policy("click-shape")
def click_shape(world: World) -> None:
    """Click a shape with the kind, colour and size of the task."""
    *wishes, last = world.task.removeprefix("Click on a ").split()
    colors = {"red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "black": (0, 0, 0)}
    colors |= {"aqua": (0, 255, 255), "yellow": (255, 255, 0), "magenta": (255, 0, 255)}
    expected = [colors[wish] for wish in wishes if wish in colors]
    kinds = {"rectangle": "rect", "circle": "circle", "triangle": "polygon"}
    for shape in (e for e in world.observe().clickables() if e.role == "generic"):
        name = shape.name.strip()
        if last in kinds:
            fits = shape["hint"] == kinds[last]
        elif last == "shape":
            fits = shape["hint"] in kinds.values()
        elif last == "item":
            fits = True
        else:
            fits = {"digit": name.isdigit(), "letter": name.isalpha()}.get(last, name == last)
        if fits and (not expected or shape.color == expected[0]) and _sized(shape, wishes):
            world.click(shape)
    raise PolicyFailed("the observation has no such shape")


def _sized(shape: Element, wishes: list[str]) -> bool:
    """Whether a shape has the size of the task; true if its size is unknown."""
    found = re.search(r"x(\d+)", shape["size"])  # the height: large letters may be narrow
    if found is None or not {"small", "large"} & {*wishes}:
        return True
    return ("small" if int(found[1]) < 15 else "large") in wishes
