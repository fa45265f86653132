"""A `Computer` that draws its own screen, as a stranger's program would."""

from __future__ import annotations

import base64
import io
from typing import Any


class DrawnComputer:
    """A white screen on which each click leaves a black square; it knows nothing of ck-pro.

    Args:
        size: of the screen.
        loading: number of screenshots that differ before the screen is still.
    """

    environment = "linux"

    def __init__(self, size: tuple[int, int] = (200, 150), loading: int = 0):
        self.dimensions = size
        self.calls: list[tuple[Any, ...]] = []
        self.squares: list[tuple[int, int]] = []
        self.entered = 0
        self._loading = loading

    def __enter__(self) -> DrawnComputer:
        self.entered += 1
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.entered -= 1

    def get_current_url(self) -> str:
        return ""

    def screenshot(self) -> str:
        from PIL import Image, ImageDraw

        image = Image.new("RGB", self.dimensions, "white")
        draw = ImageDraw.Draw(image)
        for x, y in self.squares:
            draw.rectangle((x, y, x + 19, y + 19), fill="black")
        if self._loading:
            self._loading -= 1
            draw.rectangle((0, 0, 10 * self._loading, 50), fill="gray")
        out = io.BytesIO()
        image.save(out, "PNG")
        return base64.b64encode(out.getvalue()).decode()

    def click(self, x: int, y: int, button: str = "left") -> None:
        self.calls.append(("click", x, y, button))
        self.squares.append((x, y))

    def double_click(self, x: int, y: int) -> None:
        self.calls.append(("double_click", x, y))

    def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None:
        self.calls.append(("scroll", x, y, scroll_x, scroll_y))

    def type(self, text: str) -> None:
        self.calls.append(("type", text))

    def wait(self, ms: int = 1000) -> None:
        self.calls.append(("wait", ms))

    def move(self, x: int, y: int) -> None:
        self.calls.append(("move", x, y))

    def keypress(self, keys: list[str]) -> None:
        self.calls.append(("keypress", keys))

    def drag(self, path: list[dict[str, int]]) -> None:
        self.calls.append(("drag", path))

    def greet(self, name: str = "you") -> str:
        """A function of this computer that is not an action."""
        self.calls.append(("greet", name))
        return f"hello {name}"
