"""`ComputerAgent`: an agent that uses a browser by screenshots, mouse and keyboard.

It shares the loop, the log and the browser server with the web agent. Environment and language
differ.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from typing import Any

from ck_pro.events import (
    Action,
    BrowserAction,
    ComputerAction,
    ComputerObservation,
    ErrorObservation,
    Observation,
)
from ck_pro.language import ComputerUseLanguage
from ck_pro.tools.computer import ComputerTool
from ck_pro.tools.human import AskHumanTool
from ck_web.actions import ACTIONS
from ck_web.agent import WebAgent
from ck_web.browser.browser import NOTHING_CHANGED
from ck_web.browser.client import LEAN
from ck_web.browser.config import WebEnvConfig
from ck_web.env import WebEnv
from ck_web.page.state import data_url
from ck_web.tools import ComputerWebTool, WebStopTool
from web_server.contract import ObserveOptions

WAIT_SECONDS = 1.0
"""Default time of `wait`."""

_SCREEN = LEAN.model_copy(update={"elements": True, "screenshot": "plain", "imageFormat": "jpeg"})
_REUSE_SECONDS = 0.5  # a blinking caret would make a second screenshot differ
_MAX_ELEMENTS = 3  # elements around a point, in reports
_NO_SCREEN = (float("-inf"), "")
_ID = re.compile(r"^\[\d+\] ")
_BUTTONS = {"wheel": "middle"}


class ComputerEnv(WebEnv):
    """A browser that is observed by screenshots and used by coordinates.

    It does `ComputerAction`s, and the `BrowserAction`s of a `WebEnv` that name no element (`goto`,
    `goback`, `save`). Arguments: see `WebEnv`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        self._elements: Mapping[str, Mapping[str, Any]] = {}
        self._focused = ""
        self._screen = ""  # hash of the last screenshot
        self._last_screenshot = _NO_SCREEN  # time and data URL of the one after the last action
        super().__init__(*args, **kwargs)

    def observe(self) -> ComputerObservation:
        """Return the current screen, with what happened since the last call."""
        browser = self._browser
        with self._lock, browser.explain_errors():
            taken_at, image = self._last_screenshot
            if time.monotonic() - taken_at > _REUSE_SECONDS:
                image = self._take_screenshot(_SCREEN)
            state = browser.state
            tabs = [t for t in state.current_accessibility_tree.split("\n") if t.startswith("Tab ")]
            head = [f"URL: {state.step_url}", *(tabs or [f"Title: {state.title}"])]
            text = "\n".join([*head, *self._footer()])
            return ComputerObservation(text=text, image=image, current_url=state.step_url)

    def _execute(self, action: Action) -> tuple[Observation, str]:
        """Do one action; return its result with the screen after it, and the line of its report.

        The result is a `ComputerObservation`; of a `BrowserAction`, a `BrowserObservation`.
        """
        self._last_screenshot = _NO_SCREEN
        if not isinstance(action, ComputerAction):
            return super()._execute(action)
        browser = self._browser
        with self._lock, browser.explain_errors():
            before, target = self._screen, action.target or self._element_there(action)
            acts = action.action != "screenshot"
            report = "screenshot: taken"
            if acts:
                result, report = super()._execute(self._approved_action(action))
                if isinstance(result, ErrorObservation):
                    return result, report
            image = self._take_screenshot(_SCREEN)
            self._last_screenshot = (time.monotonic(), image)
            if acts and self._screen != before:
                # a drawing is not in the page's text
                if browser.unchanged and not report.endswith(" changed"):
                    report += NOTHING_CHANGED
                browser.unchanged = 0
                report = report.replace(NOTHING_CHANGED, "; the picture changed")
            text = f"{report} ({target})" if target else report
            url = browser.state.step_url
            return ComputerObservation(text=text, image=image, current_url=url), report

    def state(self) -> dict[str, Any]:
        """Return the last known state with a hash of the screen, for the log."""
        with self._lock:
            return {**super().state(), "screen": self._screen}

    def named(self, action: Action) -> Action:
        """Return the action with the element at its point, or with the focus, as its `target`."""
        if not isinstance(action, ComputerAction):
            return super().named(action)
        if action.action == "screenshot":
            return action
        described = super().named(browser_action(action))
        assert isinstance(described, BrowserAction)
        facts = {"target": described.element, "url": described.url, "secret": described.secret}
        return action.model_copy(update=facts)

    def _approved_action(self, action: ComputerAction) -> BrowserAction:
        """Return the browser's action; it fails if its target is not the approved one."""
        facts = {"element": action.target, "url": action.url, "secret": action.secret}
        return browser_action(action).model_copy(update=facts)

    def _element_there(self, action: ComputerAction) -> str:
        """Return what the last screen showed at the action's point, or with the focus."""
        if action.action in ("type", "keypress"):
            return _ID.sub("", self._focused)
        point = action.path[0] if action.path else action
        return elements_at(self._elements, point.x, point.y)

    def _take_screenshot(self, options: ObserveOptions) -> str:
        """Observe the screen; return its data URL, or "" if the options have no picture."""
        seen = self._browser.observe(options)
        self._browser.apply(seen)
        self._elements, self._focused = seen.elements, seen.focused
        image = data_url(seen.nonboxed_screenshot or seen.boxed_screenshot)
        if image:
            self._screen = hashlib.sha256(image.encode()).hexdigest()[:16]
        return image


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


def browser_action(action: ComputerAction) -> BrowserAction:
    """Translate an action of mouse or keyboard into a browser action; pure.

    Args:
        action: any except `screenshot`.
    """
    held = "+".join(action.keys)
    at: dict[str, Any] = {"x": action.x, "y": action.y}
    match action.action:
        case "click" if action.button in ("back", "forward"):
            return ACTIONS[f"go{action.button}"].action()
        case "click" | "double_click":
            button = _BUTTONS.get(action.button, action.button)
            double = action.action == "double_click"
            return ACTIONS["click_at"].action(**at, button=button, double=double, keys=held)
        case "scroll":
            dx, dy = action.scroll_x, action.scroll_y
            turn = {"dx": dx, "dy": dy, "keys": list(action.keys)}
            return ACTIONS["wheel"].action("", f"{dx:g},{dy:g}", **at, **turn)
        case "type":
            text = action.text or ""
            enter = text.endswith("\n")  # in a field, Enter submits
            return ACTIONS["type_text"].action("", text.removesuffix("\n"), enter=enter)
        case "keypress":
            return ACTIONS["press"].action("", chord(action.keys))
        case "move":
            return ACTIONS["move"].action(**at)
        case "drag":
            path = [(p.x, p.y) for p in action.path]
            return ACTIONS["drag_path"].action(path=path, keys=held)
    seconds = WAIT_SECONDS if action.ms is None else action.ms / 1000
    return ACTIONS["wait"].action("", f"{seconds:g}")


def chord(keys: tuple[str, ...]) -> str:
    """Return keys pressed together in the server's form: `["CTRL", "A"]` is "CTRL+A"."""
    return "+".join("Space" if key == " " else key for key in keys)


class ComputerAgent(WebAgent):
    """An agent that uses a browser by screenshots, mouse and keyboard.

    Its model must read images. `language="computer_use_preview"` or `"computer"` offers the
    computer as the built-in tool of OpenAI's Responses API. `"computer_use"` (the default) offers
    it as a function to any model. With `"code"` the model writes Python that calls `computer(...)`.

    The service may attach safety checks to an action. Unless `approver` acknowledges them, they end
    the run with `sensitive-action`.
    """

    name = "computer_agent"
    description = """\
Do a task in a real browser by screenshots: for pages that are pictures, maps or canvases.

The task text must be complete: what to do, where, and the form of the answer.
target_url is the start page. Several calls may run concurrently."""
    max_steps = 40
    templates = {"plan": None, "action": "computer_action", "end": "computer_end"}
    tools: list[Any] = [
        ComputerTool(),
        *(ComputerWebTool(name=n) for n in ("goto", "goback", "save", "upload")),
        AskHumanTool(),
        WebStopTool(),
    ]
    language: Any = ComputerUseLanguage()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(self.language, ComputerUseLanguage):
            size = (self.web_env.viewport_width, self.web_env.viewport_height)
            self.language = self.language.with_display(*size)

    def _new_env(self, config: WebEnvConfig, **settings: Any) -> ComputerEnv:
        return ComputerEnv(config, **settings)
