"""Reading the action strings of the mouse alone, which go by pixels: `click_at 10 20`."""

from __future__ import annotations

import itertools
import re

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.tokens import NUMBER, Reader, point_of, shown, within_of


def _read_click_at(rest: str) -> BrowserAction:
    target, rest = within_of(rest)
    x, y, rest = point_of("click_at", rest)
    button, double, keys = "left", False, ""
    for word in rest.split():
        if word.lower() in ("left", "right", "middle"):
            button = word.lower()
        elif word.lower() == "double":
            double = True
        else:
            keys = f"{keys}+{word}".strip("+")
    arguments = {"x": x, "y": y, "button": button, "double": double, "keys": keys}
    return BrowserAction(name="click_at", target=target, arguments=arguments)


def _read_move(rest: str) -> BrowserAction:
    target, rest = within_of(rest)
    x, y, _ = point_of("move", rest)
    return BrowserAction(name="move", target=target, arguments={"x": x, "y": y})


def _read_drag_path(rest: str) -> BrowserAction:
    target, rest = within_of(rest)
    words = re.sub(r"[\[\](),;]", " ", rest).split()
    numbers = list(itertools.takewhile(re.compile(NUMBER).fullmatch, words))
    if len(numbers) < 4 or len(numbers) % 2:
        raise ParseError("drag_path needs two points or more: drag_path 10,20 30,40")
    path = [[float(x), float(y)] for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
    keys = "+".join(words[len(numbers) :])
    arguments = {"path": path, "keys": keys}
    return BrowserAction(name="drag_path", target=target, arguments=arguments)


def _read_wheel(rest: str) -> BrowserAction:
    turned, _, where = re.sub(r"[\[\](),;]", " ", rest.lower()).partition("at")
    numbers, point = turned.split(), where.split()
    usable = all(re.fullmatch(NUMBER, number) for number in (*numbers, *point))
    if not usable or len(numbers) not in (1, 2) or len(point) not in (0, 2):
        raise ParseError(f"wheel needs pixels: wheel 300, wheel 300 0 at 10,20; got {shown(rest)}")
    dy, dx = (*(float(number) for number in numbers), 0.0)[:2]
    arguments = {"dx": dx, "dy": dy}
    arguments |= dict(zip("xy", map(float, point), strict=False))
    return BrowserAction(name="wheel", arguments=arguments)


POINT_READERS: dict[str, Reader] = {
    "clickat": _read_click_at,
    "move": _read_move,
    "dragpath": _read_drag_path,
    "wheel": _read_wheel,
}
"""Name without underscores -> what reads the rest of the string."""
