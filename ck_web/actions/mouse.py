"""Actions of the mouse at pixels of the page: click_at, move, drag_path, wheel."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import WebAction, web_action
from ck_web.actions.tokens import (
    NUMBER,
    hold_field,
    hold_word,
    optional_target_of,
    point_of,
    quote,
    seconds_of,
    write_number,
    write_optional_target,
    write_point,
)

_PUNCTUATION = re.compile(r"[\[\](),;]")
_BUTTONS = ("left", "right", "middle")


@web_action(
    "click_at",
    "click_at 10 20 right double Control",
    "click_at 10 20 triple",
    "click_at 10 20 hold 1.5",
    "click_at [3] 10 20",
)
class ClickAt(WebAction):
    """Click pixels, or in [id]. hold: seconds."""

    def write(
        self,
        x: float,
        y: float,
        button: str = "left",
        double: bool = False,
        keys: str = "",
        id: int | str | None = None,
        triple: bool = False,
        hold: float = 0,
    ) -> str:
        words = [
            f"click_at {write_optional_target(id)}{write_number(x)} {write_number(y)}",
            button if button != "left" else "",
            "triple" if triple else "double" if double else "",
            f"hold {write_number(hold)}" if hold else "",
        ]
        return " ".join(word for word in (*words, keys) if word)

    def parse(self, rest: str) -> BrowserAction:
        target, rest = optional_target_of(rest)
        x, y, rest = point_of(self.name, rest)
        given: dict[str, Any] = {"button": "left", "double": False, "keys": ""}
        words = iter(rest.split())
        for word in words:
            if word.lower() in _BUTTONS:
                given["button"] = word.lower()
            elif word.lower() in ("double", "triple"):
                given[word.lower()] = True
            elif word.lower() == "hold":
                given["hold"] = seconds_of(self.name, next(words, ""))
            else:
                given["keys"] = f"{given['keys']}+{word}".strip("+")
        return self.action(target, x=x, y=y, **given)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        given = action.arguments
        times = "triple_" if given.get("triple") else "double_" if given["double"] else ""
        return {
            "actionName": f"{times}click_at",
            **{"x": given["x"], "y": given["y"], "button": given["button"]},
            "keys": _keys(given["keys"]),
            **hold_field(given),
        }

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        given = action.arguments
        button = given["button"] if given["button"] != "left" else ""
        times = "triple" if given.get("triple") else "double" if given["double"] else ""
        words = [_point(given), button, times, given["keys"], hold_word(given)]
        return [word for word in words if word]


@web_action("move", "move 10 20", "move [3] 10 20")
class Move(WebAction):
    """Move the mouse to a point in pixels."""

    expects_change = False

    def write(self, x: float, y: float, id: int | str | None = None) -> str:
        return f"move {write_optional_target(id)}{write_number(x)} {write_number(y)}"

    def parse(self, rest: str) -> BrowserAction:
        target, rest = optional_target_of(rest)
        x, y, _ = point_of(self.name, rest)
        return self.action(target, x=x, y=y)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"x": action.arguments["x"], "y": action.arguments["y"]}

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        return [_point(action.arguments)]


@web_action("drag_path", "drag_path 10,20 30,40", "drag_path [3] 10,20 30,40")
class DragPath(WebAction):
    """Drag along points in pixels, [[x, y], ...]."""

    def write(self, points: list[list[float]], keys: str = "", id: int | str | None = None) -> str:
        path = " ".join(write_point(point) for point in points)
        return f"drag_path {write_optional_target(id)}{path} {keys}".rstrip()

    def parse(self, rest: str) -> BrowserAction:
        target, rest = optional_target_of(rest)
        words = _PUNCTUATION.sub(" ", rest).split()
        numbers = list(itertools.takewhile(re.compile(NUMBER).fullmatch, words))
        if len(numbers) < 4 or len(numbers) % 2:
            raise ParseError("drag_path needs two points or more: drag_path 10,20 30,40")
        path = [[float(x), float(y)] for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        return self.action(target, path=path, keys="+".join(words[len(numbers) :]))

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        path = [{"x": x, "y": y} for x, y in action.arguments["path"]]
        return {"path": path, "keys": _keys(action.arguments["keys"])}

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        first, last = action.arguments["path"][0], action.arguments["path"][-1]
        return [f"{first[0]:g},{first[1]:g} ... {last[0]:g},{last[1]:g}"]


@web_action("wheel", "wheel 300", "wheel 300 0 at 10,20")
class Wheel(WebAction):
    """Turn the mouse wheel by pixels, over a point (map, canvas)."""

    def write(
        self, down: float, right: float = 0, x: float | None = None, y: float | None = None
    ) -> str:
        where = "" if x is None and y is None else f" at {write_point((x, y))}"
        return f"wheel {write_number(down)} {write_number(right)}{where}"

    def parse(self, rest: str) -> BrowserAction:
        turned, _, where = _PUNCTUATION.sub(" ", rest.lower()).partition("at")
        numbers, point = turned.split(), where.split()
        usable = all(re.fullmatch(NUMBER, number) for number in (*numbers, *point))
        if not usable or len(numbers) not in (1, 2) or len(point) not in (0, 2):
            example = "wheel 300, wheel 300 0 at 10,20"
            raise ParseError(f"wheel needs pixels: {example}; got {quote(rest)}")
        dy, dx = (*(float(number) for number in numbers), 0.0)[:2]
        at: dict[str, Any] = dict(zip("xy", map(float, point), strict=False))
        return self.action(dx=dx, dy=dy, **at)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        given = action.arguments
        turn = {"deltaX": given["dx"], "deltaY": given["dy"], "keys": given.get("keys", [])}
        return {**turn, **{axis: given[axis] for axis in "xy" if axis in given}}

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        given = action.arguments
        at = f" at {_point(given)}" if given.get("x") is not None else ""
        return [f"{given['dy']:g} {given['dx']:g}{at}"]


def _point(given: dict[str, Any]) -> str:
    return f"{given['x']:g},{given['y']:g}"


def _keys(chord: str) -> list[str]:
    return [key for key in chord.split("+") if key]
