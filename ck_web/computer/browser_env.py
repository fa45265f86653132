"""`ComputerEnv`: a browser that is observed by screenshots and used by coordinates."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from ck_pro.computer import ScreenView, Shown
from ck_pro.computer.environment import changed_text, said
from ck_pro.computer.view import bytes_of, data_url
from ck_pro.events import (
    Action,
    BrowserAction,
    ComputerAction,
    ComputerObservation,
    ErrorObservation,
    Observation,
    Picture,
    Region,
)
from ck_pro.events.journal_events import PictureData
from ck_web.browser.browser import NOTHING_CHANGED
from ck_web.browser.client import LEAN
from ck_web.computer.browser_actions import browser_action
from ck_web.env import WebEnv
from web_server import contract

_SCREEN = LEAN.model_copy(update={"elements": True, "screenshot": "plain", "imageFormat": "jpeg"})
_REUSE_SECONDS = 0.5  # a blinking caret would make a second screenshot differ
_MAX_ELEMENTS = 3  # elements around a point, in reports
_NEVER = float("-inf")
_ID = re.compile(r"\[\d+\] (?=[A-Za-z]+ ')")  # the model cannot act by ids
_SEES_ONLY = ("screenshot", "zoom", "wait")


class ComputerEnv(WebEnv):
    """A browser that is observed by screenshots and used by coordinates.

    It does `ComputerAction`s, and the `BrowserAction`s of a `WebEnv` that name no element (`goto`,
    `goback`, `reload`, `save`). x and y are pixels of the pictures, which are scaled to
    `web_env.picture_side`.

    Args:
        picture_after_each_act: `observe` returns the screen after each action since the last call,
            not only the current one.
        args, kwargs: see `WebEnv`.
    """

    def __init__(self, *args: Any, picture_after_each_act: bool = False, **kwargs: Any):
        self._elements: Mapping[str, Mapping[str, Any]] = {}
        self._focused = ""
        self._content = ""  # of the last screen
        self._shown = Shown("", "", ())
        self._seen_at = _NEVER  # when the last action's screen was taken
        self._seen_url: str | None = None  # None: there is no screenshot yet
        self._pictures: list[Picture] = []
        self._each_act = picture_after_each_act
        super().__init__(*args, **kwargs)
        config = self.config
        size = (config.viewport_width, config.viewport_height)
        self.view = ScreenView(*size, max_side=config.picture_side)
        self._browser.screenshots.scale = self.view.scale

    def observe(self) -> ComputerObservation:
        """Return the current screen, with what happened since the last call."""
        browser = self._browser
        with self._lock:
            browser.check_lease()
            shown = self._shown
            if time.monotonic() - self._seen_at > _REUSE_SECONDS:
                shown = self._look()
            state = browser.state
            tabs = [t for t in state.current_accessibility_tree.split("\n") if t.startswith("Tab ")]
            head = [f"URL: {state.step_url}", *(tabs or [f"Title: {state.title}"])]
            head += [f"Focus: {focus}"] if (focus := self._focus()) else []
            text = "\n".join([*head, *(_ID.sub("", line) for line in self._footer())])
            pictures, self._pictures = tuple(self._pictures), []
            return ComputerObservation(
                text=text,
                image=shown.image,
                content=shown.content,
                pictures=pictures,
                current_url=state.step_url,
            )

    def _execute(self, action: Action) -> tuple[Observation, str]:
        """Do one action; return its result with the screen after it, and the line of its report.

        The result is a `ComputerObservation`; of a `BrowserAction`, a `BrowserObservation`.
        """
        self._seen_at = _NEVER
        if not isinstance(action, ComputerAction):
            return super()._execute(action)
        with self._lock:
            if self._seen_url is None:
                self._look()
            target = action.target or self._element_there(action)
            match action.action:
                case "screenshot":
                    result, report = Observation(), "screenshot: taken"
                case "zoom":
                    assert action.region is not None
                    result, report = self._zoom(action.region)
                case _:
                    result, report = super()._execute(self._approved_action(action))
            if isinstance(result, ErrorObservation):
                return result, report
            shown = self._look()
            self._seen_at = time.monotonic()
            report = self._with_change(report, action, shown)
            if self._each_act and action.action not in _SEES_ONLY:
                self._pictures.append(Picture(caption=f"After {said(action)}", image=shown.image))
            seen = ComputerObservation(
                text=f"{report} ({target})" if target else report,
                image=shown.image,
                content=shown.content,
                current_url=self._browser.state.step_url,
            )
            return seen, report

    def picture(self, action: Action | None = None) -> PictureData | None:
        """See `WebEnv.picture`."""
        if isinstance(action, ComputerAction):
            if action.action in ("screenshot", "zoom"):
                return None
            action = browser_action(action)
        return super().picture(action)

    def state(self) -> dict[str, Any]:
        """Return the last known state with a hash of the screen, for the log."""
        with self._lock:
            return {**super().state(), "screen": self._content}

    def named(self, action: Action) -> Action:
        """Return the action with the element at its point, or with the focus, as its `target`."""
        if not isinstance(action, ComputerAction):
            return super().named(action)
        if action.action in ("screenshot", "zoom"):
            return action
        described = super().named(browser_action(action))
        assert isinstance(described, BrowserAction)
        facts = {"target": described.element, "url": described.url, "secret": described.secret}
        return action.model_copy(update=facts)

    def screenshot(self) -> bytes:
        """Return the current screen as the model would see it, as PNG or JPEG bytes."""
        with self._lock:
            return bytes_of(self._look().image)

    # --- parts -----------------------------------------------------------------------------

    def _approved_action(self, action: ComputerAction) -> BrowserAction:
        """Return the browser's action; it fails if its target is not the approved one."""
        facts = {"element": action.target, "url": action.url, "secret": action.secret}
        return browser_action(action).model_copy(update=facts)

    def _with_change(self, text: str, action: ComputerAction, shown: Shown) -> str:
        """Return a report with the region that changed, and without ids."""
        text = _ID.sub("", text)
        if shown.changed and action.action not in _SEES_ONLY:
            text = text.removesuffix(NOTHING_CHANGED) + changed_text(shown.changed)
            self._browser.unchanged = 0  # a drawing is not in the page's text
        return text

    def _zoom(self, asked: Region) -> tuple[Observation, str]:
        """Add a picture of an enlarged region to the next observation."""
        region = self.view.clipped(self.view.region_on_screen(asked))
        if region is None:
            width, height = self.view.size
            failed = f"zoom {asked} failed: the region is outside the screen, {width} x {height}"
            return ErrorObservation(text=failed), failed
        sandbox = self.sandbox
        options = _SCREEN
        if sandbox is not None and "pictures" in sandbox.features:
            part = contract.Region(**region.model_dump())
            side = self.config.picture_side
            options = _SCREEN.model_copy(update={"region": part, "imageMax": side})
        data = bytes_of(self._browser.observe(options).nonboxed_screenshot)
        if options is _SCREEN:  # an older server
            data = self.view.enlarge(data, region)
        width, height = self.view.zoomed_size(region)
        caption = f"Zoom of {asked}, {width}x{height}"
        self._pictures.append(Picture(caption=caption, image=data_url(data)))
        return Observation(), f"zoom {asked}: the next step shows it in {width}x{height}"

    def _element_there(self, action: ComputerAction) -> str:
        """Return what the last screen showed at the action's point, or with the focus."""
        if action.action in ("type", "keypress"):
            return _ID.sub("", self._focused)
        on_page = self.view.to_screen(action)
        point = on_page.path[0] if on_page.path else on_page
        return elements_at(self._elements, point.x, point.y)

    def _focus(self) -> str:
        """Return the focused element with its place in the picture; empty without one."""
        if not self._focused:
            return ""
        number = self._focused.removeprefix("[").partition("]")[0]
        box = self._elements.get(number, {}).get("box")
        name = _ID.sub("", self._focused)
        if not isinstance(box, list | tuple) or len(box) != 4:
            return name
        x, y, width, height = (round(side * self.view.scale) for side in box)
        return f"{name}, {width}x{height} at {x},{y}"

    def _look(self) -> Shown:
        """Take a screenshot; the first one of a document once two looks agree."""
        browser = self._browser
        fresh = {"steady": self._seen_url != browser.state.step_url}
        seen = browser.observe(_SCREEN.model_copy(update=fresh))
        browser.apply(seen)
        self._elements, self._focused = seen.elements, seen.focused
        self._seen_url = seen.url
        image = seen.nonboxed_screenshot or seen.boxed_screenshot
        pointer = (seen.pointer[0], seen.pointer[1]) if len(seen.pointer) == 2 else None
        self._shown = self.view.show(bytes_of(image), pointer) if image else Shown("", "", ())
        self._content = self._shown.content
        return self._shown


def elements_at(elements: Mapping[str, Mapping[str, Any]], x: float | None, y: float | None) -> str:
    """Return the elements around a point: `image 'cart' in button 'Buy'`; empty if there are none.

    The first is the smallest element. Larger ones with names follow, because the smallest may be a
    picture inside a button.

    Args:
        elements: `Observation.elements` of the server, with boxes [x, y, width, height].
        x, y: CSS pixels of the viewport.
    """
    found: list[tuple[float, str, str]] = []
    for element in elements.values():
        box, role = element.get("box"), element.get("role", "")
        if x is None or y is None or role == "RootWebArea":
            continue
        if not isinstance(box, list | tuple) or len(box) != 4:
            continue
        left, top, width, height = box
        if left <= x < left + width and top <= y < top + height:
            found.append((width * height, role, element.get("name", "")))
    named = [f"{r} {n!r}" for i, (_, r, n) in enumerate(sorted(found)) if n or i == 0]
    return " in ".join(named[:_MAX_ELEMENTS])
