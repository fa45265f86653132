"""`Screenshots`: when an observation of a page has a screenshot for the model, and of what."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ck_pro.computer import picture_size
from ck_web.browser.client import LEAN
from ck_web.browser.config import Pictures, WebEnvConfig
from web_server.contract import ObserveOptions, Region


class Screenshots:
    """The screenshots of one browser.

    Args:
        config: the settings.
        mode: when observations have a screenshot.

    Attributes:
        scale: pixels of the model's screenshots per CSS pixel; points are mapped back.
        text: a line about the last screenshot.
    """

    def __init__(self, config: WebEnvConfig, mode: Pictures):
        self.mode = mode
        self.scale = 1.0
        self.text = ""
        self._config = config
        self._marks = config.screenshot_boxed
        self._region: Sequence[float] | None = None
        self._url: str | None = None  # of the page on the last one

    def set_scale(self, features: Collection[str]) -> None:
        """Set the scale for a server with these features."""
        if "pictures" in features:  # older servers do not scale screenshots
            self.scale = self._size()[0] / self._config.viewport_width

    def are_on(self, asked: bool) -> bool:
        """Whether the next observation has one in any case.

        Args:
            asked: whether the model asked for screenshots.
        """
        return self.mode == "on" or (asked and self.mode != "off")

    def choose(self, marks: bool | None, region: Sequence[float] | None) -> None:
        """Choose the contents of the next one; see `Browser.set_screenshots`."""
        self._marks = self._config.screenshot_boxed if marks is None else marks
        self._region = region

    def options(self, url: str) -> ObserveOptions:
        """Return the options for a screenshot; the first one of a document must be steady.

        Args:
            url: of the page.
        """
        options: dict[str, Any] = {"imageFormat": "jpeg", "steady": self._url != url}
        options["imageMax"] = self._config.picture_side
        options["screenshot"] = "boxed" if self._marks and not self._region else "plain"
        if self._region is not None:
            x, y, width, height = (side / self.scale for side in self._region)
            options["region"] = Region(x=x, y=y, width=width, height=height)
        return LEAN.model_copy(update=options)

    def map_to_page(self, fields: dict[str, Any]) -> None:
        """Replace the points of a request, which are the screenshot's, with those of the page."""
        for name in ("x", "y", "deltaX", "deltaY"):
            if fields.get(name) is not None:
                fields[name] = fields[name] / self.scale
        if path := fields.get("path"):
            fields["path"] = [{"x": p["x"] / self.scale, "y": p["y"] / self.scale} for p in path]

    def record(self, url: str) -> None:
        """Set the line about a screenshot that was taken; the next one shows the whole page."""
        if self._region is not None:
            x, y, width, height = self._region
            self.text = f"Screenshot: only the {width:g}x{height:g} pixels at {x:g},{y:g}, enlarged"
        else:
            self.text = "Screenshot: {} x {} pixels".format(*self._size())
        self._region, self._url = None, url

    def _size(self) -> tuple[int, int]:
        config = self._config
        return picture_size(config.viewport_width, config.viewport_height, config.picture_side)
