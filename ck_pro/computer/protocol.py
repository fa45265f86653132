"""`Computer`: the protocol of OpenAI's sample agent for computer use."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Computer(Protocol):
    """A computer with a screen, a mouse and a keyboard.

    x and y are pixels of `screenshot`, from its top left corner. A method that fails raises an
    exception whose message the model sees. Further methods are functions that a model may call if
    the agent's `tools` describe them.

    Optional methods: `triple_click(x, y)`; `wait_until_still(first)`, which returns when the
    screen stops changing; `pointer()`, the position of the mouse if screenshots do not show it;
    `describe(x, y)`, what is at a point, for approvers; `status()`, lines about the screen for the
    model; `suspend()` and `reconnect(lease)`, to keep the computer while its run is paused;
    `lease()` and `hold(held)`, the same if the process is killed while a person is asked.
    """

    @property
    def environment(self) -> str:
        """`"browser"`, `"linux"`, `"mac"` or `"windows"`."""
        ...

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of the screen in pixels."""
        ...

    def screenshot(self) -> str:
        """Return the screen as a PNG or JPEG image in base64."""
        ...

    def click(self, x: int, y: int, button: str = "left") -> None:
        """Click; the buttons are "left", "right", "wheel", "back" and "forward"."""
        ...

    def double_click(self, x: int, y: int) -> None:
        """Double-click the left button."""
        ...

    def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None:
        """Scroll by pixels, right and down, at a point."""
        ...

    def type(self, text: str) -> None:
        """Type a text at the focus."""
        ...

    def wait(self, ms: int = 1000) -> None:
        """Wait for milliseconds."""
        ...

    def move(self, x: int, y: int) -> None:
        """Move the mouse."""
        ...

    def keypress(self, keys: list[str]) -> None:
        """Press keys together, such as `["CTRL", "A"]`."""
        ...

    def drag(self, path: list[dict[str, int]]) -> None:
        """Drag with the left button along points `{"x", "y"}`."""
        ...

    def get_current_url(self) -> str:
        """Return the page's address; "" if the computer is not a browser."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *exc_info: Any) -> Any: ...
