"""`BrowserComputer`: a leased browser as a `Computer`."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ck_pro.approval import Approver
from ck_pro.computer import picture_size
from ck_pro.computer.environment import lease_of
from ck_pro.computer.view import bytes_of
from ck_pro.events import BrowserAction, ComputerAction, ErrorObservation
from ck_pro.events.computer_schema import computer_action
from ck_pro.exceptions import BrowserServerError, ToolError
from ck_web.browser.config import WebEnvConfig
from ck_web.computer.browser_env import ComputerEnv


class BrowserComputer:
    """A browser as a `Computer`; a context manager.

    >>> with BrowserComputer("https://example.org") as computer:            # doctest: +SKIP
    ...     computer.click(200, 100)
    ...     computer.type("desk lamp\\n")
    ...     picture = computer.screenshot()

    In a `with` block, it is one browser for all that use it: the caller, and all runs of an agent
    `ComputerAgent(computer=...)`. Outside of one, it is a description: each run opens its own
    browser, which survives a resumed run.

    Args:
        start_url: the start page.
        web_env: the settings of the browser; a `WebEnvConfig` or a dict of them.
        workdir: folder for downloads and uploads.
    """

    environment = "browser"

    def __init__(
        self,
        start_url: str = "",
        *,
        web_env: WebEnvConfig | Mapping[str, Any] | None = None,
        workdir: str | Path = ".",
    ):
        config = web_env if isinstance(web_env, WebEnvConfig) else WebEnvConfig(**(web_env or {}))
        self.config = config.updated({"target_url": start_url}) if start_url else config
        self.workdir = Path(workdir)
        self._env: ComputerEnv | None = None

    def __enter__(self) -> BrowserComputer:
        """Open the browser.

        Raises:
            BrowserServerError: no server, no free browser, or the server failed.
        """
        self._env = _SharedEnv(self.config, workdir=self.workdir)
        return self

    def __exit__(self, *exc_info: object) -> None:
        env, self._env = self._env, None
        if isinstance(env, _SharedEnv):
            env.stop()

    @property
    def is_open(self) -> bool:
        """Whether the browser is open."""
        return self._env is not None

    @property
    def env(self) -> ComputerEnv:
        """The open browser as an environment.

        Raises:
            BrowserServerError: it is not open.
        """
        if self._env is None:
            raise BrowserServerError("the browser is not open: use it in a `with` block")
        return self._env

    @classmethod
    def over(cls, env: ComputerEnv) -> BrowserComputer:
        """Return a computer for the browser of an environment, which it does not close."""
        self = cls(web_env=env.config)
        self._env = env
        return self

    def lend(
        self,
        approver: Approver,
        *,
        picture_after_each_act: bool = False,
        suspended: Mapping[str, Any] | None = None,
    ) -> ComputerEnv:
        """Return the open browser as the environment of a run, which does not close it.

        Args:
            approver: reviews what the environment does besides the run's actions.
            picture_after_each_act: see `ComputerEnv`.
            suspended: from `suspend` of that environment in an earlier run.
        """
        return cast(_SharedEnv, self.env).lent(approver, picture_after_each_act, suspended)

    # --- the protocol ----------------------------------------------------------------------

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of the screenshots in pixels."""
        config = self.config
        return picture_size(config.viewport_width, config.viewport_height, config.picture_side)

    def screenshot(self) -> str:
        """Return the visible part of the page as a PNG or JPEG image in base64."""
        return base64.b64encode(self.env.screenshot()).decode()

    def get_current_url(self) -> str:
        """Return the page's address."""
        return self.env.get_state().step_url

    def click(
        self, x: float, y: float, button: str = "left", keys: Sequence[str] = (), ms: int = 0
    ) -> None:
        """Click.

        Args:
            x, y: the point.
            button: "left", "right", "wheel", "back" or "forward".
            keys: keys held down meanwhile.
            ms: how long to hold the button, in milliseconds.
        """
        self._act("click", x=x, y=y, button=button, keys=list(keys), ms=ms or None)

    def double_click(self, x: float, y: float, keys: Sequence[str] = ()) -> None:
        """Double-click the left button."""
        self._act("double_click", x=x, y=y, keys=list(keys))

    def triple_click(self, x: float, y: float, keys: Sequence[str] = ()) -> None:
        """Click the left button three times."""
        self._act("triple_click", x=x, y=y, keys=list(keys))

    def scroll(
        self,
        x: float,
        y: float,
        scroll_x: float = 0,
        scroll_y: float = 0,
        keys: Sequence[str] = (),
    ) -> None:
        """Turn the wheel by pixels, right and down, at a point."""
        self._act("scroll", x=x, y=y, scroll_x=scroll_x, scroll_y=scroll_y, keys=list(keys))

    def type(self, text: str) -> None:
        """Type a text at the focus; a newline at its end presses Enter."""
        self._act("type", text=text)

    def wait(self, ms: int = 1000) -> None:
        """Wait until the page changes, for at most so many milliseconds."""
        self._act("wait", ms=ms)

    def move(self, x: float, y: float) -> None:
        """Move the mouse."""
        self._act("move", x=x, y=y)

    def keypress(self, keys: list[str], ms: int = 0) -> None:
        """Press keys together, and hold them for milliseconds."""
        self._act("keypress", keys=list(keys), ms=ms or None)

    def drag(self, path: list[Any], keys: Sequence[str] = ()) -> None:
        """Drag with the left button along points `{"x", "y"}` or `[x, y]`."""
        self._act("drag", path=list(path), keys=list(keys))

    # --- further methods -------------------------------------------------------------------

    def zoom(self, region: Sequence[float]) -> str:
        """Return a region [x, y, width, height] at full resolution, as an image in base64."""
        self._act("zoom", region=list(region))
        (picture,) = self.env.observe().pictures[-1:]
        return base64.b64encode(bytes_of(picture.image)).decode()

    def goto(self, url: str) -> None:
        """Open a page."""
        self._browse(BrowserAction(name="goto", value=url))

    def back(self) -> None:
        """Go back in history."""
        self._browse(BrowserAction(name="goback"))

    def forward(self) -> None:
        """Go forward in history."""
        self._browse(BrowserAction(name="goforward"))

    def reload(self) -> None:
        """Load the page again."""
        self._browse(BrowserAction(name="reload"))

    def _act(self, action: str, **given: Any) -> None:
        self._do(computer_action({"action": action, **given}))

    def _browse(self, action: BrowserAction) -> None:
        self._do(action)

    def _do(self, action: ComputerAction | BrowserAction) -> None:
        """Do an action without approval: the caller acts, not a model.

        Raises:
            ToolError: it failed.
        """
        seen = self.env.execute(action)
        if isinstance(seen, ErrorObservation):
            raise ToolError(seen.text)


class _SharedEnv(ComputerEnv):
    """The browser of a `BrowserComputer`, which only the computer closes."""

    def lent(
        self,
        approver: Approver,
        picture_after_each_act: bool,
        suspended: Mapping[str, Any] | None,
    ) -> ComputerEnv:
        """Prepare it for the next run; see `BrowserComputer.lend`."""
        with self._lock:
            self._approver, self._each_act = approver, picture_after_each_act
            self._pictures.clear()
            self.taken_up = bool(suspended) and suspended == self.suspend()
            return self

    def close(self) -> None:
        """Leave the browser open."""

    def suspend(self) -> dict[str, Any] | None:
        """Leave the browser open; return what identifies it and its screen."""
        with self._lock:
            return lease_of(self, self._look().content)
