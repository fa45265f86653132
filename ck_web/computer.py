"""`ComputerAgent`: an agent that uses a browser as a person does, by what it sees and by x, y.

The same loop, log and browser server as the web agent; another environment, another language.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from typing import Any

import ck_web.computer_prompts  # noqa: F401  (registers the templates)
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
from ck_web.agent import WebAgent, WebStopTool
from ck_web.browser.client import LEAN
from ck_web.browser.config import WebEnvConfig
from ck_web.env import NOTHING_CHANGED, WebEnv
from ck_web.page.state import data_url
from ck_web.tools import ComputerWebTool
from web_server.contract import ObserveOptions

WAIT_SECONDS = 1.0
"""How long `wait` waits when it does not say."""

_SCREEN = LEAN.model_copy(update={"elements": True, "screenshot": "plain", "imageFormat": "jpeg"})
_FRESH_SECONDS = 0.5  # a look right after an act is that act's: carets blink, prompts need not
_AROUND = 3  # so many elements around a point are told
_NEVER = (float("-inf"), "")
_ID = re.compile(r"^\[\d+\] ")
_BUTTONS = {"wheel": "middle"}


class ComputerEnv(WebEnv):
    """A browser that is looked at by screenshots and acted on by coordinates.

    It does `ComputerAction`s, and the `BrowserAction`s of a `WebEnv` that name no element (`goto`,
    `goback`, `save`). Arguments: see `WebEnv`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        self._elements: Mapping[str, Mapping[str, Any]] = {}
        self._focused = ""
        self._screen = ""
        self._taken = _NEVER  # when the last act was over, and its screen
        super().__init__(*args, **kwargs)

    def observe(self) -> ComputerObservation:
        """The screen as it is, with what happened since the last look."""
        with self._lock, self._browser.explained():
            taken, image = self._taken
            if time.monotonic() - taken > _FRESH_SECONDS:
                image = self._see(_SCREEN)
            pending, self._browser.pending = self._browser.pending, []
            s = self._state
            tabs = [t for t in s.current_accessibility_tree.split("\n") if t.startswith("Tab ")]
            lines = [f"URL: {s.step_url}", *(tabs or [f"Title: {s.title}"]), *self._footer(pending)]
            return ComputerObservation(text="\n".join(lines), image=image, current_url=s.step_url)

    def execute(self, action: Action) -> Observation:
        """Do one action and show the screen that it leads to.

        Returns:
            `ComputerObservation` (`BrowserObservation` for a `BrowserAction`), or
            `ErrorObservation` when the action could not be done.

        Raises:
            BrowserServerError: the server or the browser is gone.
        """
        self._taken = _NEVER
        if not isinstance(action, ComputerAction):
            return super().execute(action)
        with self._lock, self._browser.explained():
            before, text, reached = self._screen, "", action.target or self._lies_there(action)
            if action.action != "screenshot":
                done = super().execute(self._browser_action(action))
                if isinstance(done, ErrorObservation):
                    return done
                text = done.text
            image = self._see(_SCREEN)
            self._taken = (time.monotonic(), image)
            if text and self._screen != before:  # what is drawn is not in the page's text
                if self._unchanged and not text.endswith(" changed"):
                    text += NOTHING_CHANGED  # the server does not say it where it cannot know
                self._unchanged = 0
                text = self._done[-1] = text.replace(NOTHING_CHANGED, "; the picture changed")
            if reached:
                text += f" ({reached})"
            url = self._state.step_url
            return ComputerObservation(text=text, image=image, current_url=url)

    def state(self) -> dict[str, Any]:
        """What is known of the browser, for the log, with a hash of the screen."""
        with self._lock:
            return {**super().state(), "screen": self._screen}

    def named(self, action: Action) -> Action:
        """The action with the element that lies there, or has the focus, as its `target`."""
        if not isinstance(action, ComputerAction):
            return super().named(action)
        if action.action == "screenshot":
            return action
        there = super().named(browser_action(action))
        assert isinstance(there, BrowserAction)
        facts = {"target": there.element, "url": there.url, "secret": there.secret}
        return action.model_copy(update=facts)

    def _browser_action(self, action: ComputerAction) -> BrowserAction:
        """What the browser is to do, held to what was approved."""
        facts = {"element": action.target, "url": action.url, "secret": action.secret}
        return browser_action(action).model_copy(update=facts)

    def _lies_there(self, action: ComputerAction) -> str:
        """What the last screen showed at the action's point, or with the focus."""
        if action.action in ("type", "keypress"):
            return _ID.sub("", self._focused)
        point = action.path[0] if action.path else action
        return elements_at(self._elements, point.x, point.y)

    def _see(self, options: ObserveOptions) -> str:
        """Look at the screen; returns it as a data URL, if the options want a picture."""
        seen = self._browser.look(options)
        self._browser.take(seen)
        self._elements, self._focused = seen.elements, seen.focused
        image = data_url(seen.nonboxed_screenshot or seen.boxed_screenshot)
        if image:
            self._screen = hashlib.sha256(image.encode()).hexdigest()[:16]
        return image


def elements_at(elements: Mapping[str, Mapping[str, Any]], x: float | None, y: float | None) -> str:
    """What lies around a point: `image 'cart' in button 'Buy'`; empty where nothing does.

    The smallest element, and the next larger ones with names: what is clicked may be a picture in
    a button, or lie below something else.

    Args:
        elements: `Observation.elements` of the wire, with boxes [x, y, width, height].
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
    return " in ".join(named[:_AROUND])


def browser_action(action: ComputerAction) -> BrowserAction:
    """What the browser is to do for an act of mouse or keyboard; pure.

    Args:
        action: any but `screenshot`.
    """
    held = "+".join(action.keys)
    at = {"x": action.x, "y": action.y}
    match action.action:
        case "click" if action.button in ("back", "forward"):
            return BrowserAction(name=f"go{action.button}")
        case "click" | "double_click":
            button = _BUTTONS.get(action.button, action.button)
            given = {"button": button, "double": action.action == "double_click", "keys": held}
            return BrowserAction(name="click_at", arguments={**at, **given})
        case "scroll":
            turn = {"dx": action.scroll_x, "dy": action.scroll_y, "keys": list(action.keys)}
            said = f"{action.scroll_x:g},{action.scroll_y:g}"
            return BrowserAction(name="wheel", value=said, arguments={**at, **turn})
        case "type":
            text = action.text or ""
            enter = text.endswith("\n")  # in a field, that is what sends it
            return BrowserAction(
                name="type_text", value=text.removesuffix("\n"), arguments={"enter": enter}
            )
        case "keypress":
            return BrowserAction(name="press", value=chord(action.keys))
        case "move":
            return BrowserAction(name="move", arguments=at)
        case "drag":
            path = [(p.x, p.y) for p in action.path]
            return BrowserAction(name="drag_path", arguments={"path": path, "keys": held})
    seconds = WAIT_SECONDS if action.ms is None else action.ms / 1000
    return BrowserAction(name="wait", value=f"{seconds:g}")


def chord(keys: tuple[str, ...]) -> str:
    """Return keys pressed together as the server reads them: `["CTRL", "A"]` is "CTRL+A"."""
    return "+".join("Space" if key == " " else key for key in keys)


class ComputerAgent(WebAgent):
    """An agent that uses a browser by screenshots, mouse and keyboard.

    Its model must see images. `language="computer_use_preview"` or `"computer"` offers the computer
    as the built-in tool of OpenAI's Responses API, `"computer_use"` (the default) as a function to
    any model; with `"code"` the model writes Python that calls `computer(...)`.

    Safety checks that the service attaches to an action end the run with `sensitive-action`, unless
    `approver` acknowledges them.
    """

    name = "computer_agent"
    description = """\
Do a task on the web in a real browser by what is seen: for pages that are pictures, maps, canvases.

The task text must say all that it needs: what to do, where, and in what form to answer.
target_url is the page to begin with. Several calls may run at once."""
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
        """The browser of a run."""
        return ComputerEnv(config, **settings)
