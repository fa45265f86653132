"""`ScreenEnv`: any `Computer` as the environment of an agent."""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from ck_pro.computer.protocol import Computer
from ck_pro.computer.view import MAX_SIDE, ScreenView, Shown, bytes_of, data_url
from ck_pro.environment import Environment
from ck_pro.events import (
    Action,
    ComputerAction,
    ComputerObservation,
    ErrorObservation,
    Observation,
    Picture,
    Region,
)
from ck_pro.exceptions import EnvironmentFailure
from ck_pro.executor import current_call

_LOOKS = 12  # screenshots that are compared until two agree
_BETWEEN_LOOKS_SECONDS = 0.08
_HOLDS = ("ms", "keys")  # arguments that not every computer accepts


class ScreenEnv(Environment):
    """A computer as the environment of an agent: it observes screens and does `ComputerAction`s.

    Args:
        computer: the computer.
        max_side: limit for the longer side of a picture; larger screens are scaled down, and x and
            y are mapped back.
        suspended: from `suspend` of an earlier environment of this computer.
        picture_after_each_act: `observe` returns the screen after each action since the last call,
            not only the current one.

    Raises:
        EnvironmentFailure: the computer cannot be started.
    """

    def __init__(
        self,
        computer: Computer,
        *,
        max_side: int = MAX_SIDE,
        suspended: Mapping[str, Any] | None = None,
        picture_after_each_act: bool = False,
    ):
        self.computer = computer
        self._lock = threading.RLock()
        self._owned = not is_open(computer)
        self._pictures: list[Picture] = []
        self._each_act = picture_after_each_act
        self._shown: Shown | None = None
        reconnect = getattr(computer, "reconnect", None)
        again = bool(self._owned and suspended and reconnect and reconnect(suspended))
        if self._owned and not again:
            computer.__enter__()
        self.view = ScreenView(*computer.dimensions, max_side=max_side)
        self.taken_up = again or (not self._owned and self._is_unchanged(suspended))

    # --- the environment -------------------------------------------------------------------

    def observe(self) -> ComputerObservation:
        """Return the current screen, with the pictures that actions left since the last call."""
        with self._lock:
            shown = self._look(first=self._shown is None)
            pictures, self._pictures = self._pictures, []
            lines = [*self._status()]
            if url := self.computer.get_current_url():
                lines.insert(0, f"URL: {url}")
            return ComputerObservation(
                text="\n".join(lines),
                image=shown.image,
                content=shown.content,
                pictures=tuple(pictures),
                current_url=url,
            )

    def execute(self, action: Action) -> Observation:
        """Do one action; return its result in one line, and the screen after it.

        If code called the action, the line also stands in the output of its step.

        Returns:
            `ComputerObservation`, or `ErrorObservation` if the action failed.
        """
        seen = self._execute(action)
        call = current_call()
        if call is not None:
            call.report(seen.text)
        return seen

    def _execute(self, action: Action) -> Observation:
        if not isinstance(action, ComputerAction):
            return ErrorObservation(text=f"a computer cannot do a '{action.kind}' action")
        with self._lock:
            if self._shown is None:
                self._look(first=True)
            if problem := self._out_of_screen(action):
                return ErrorObservation(text=f"{said(action)}: {problem}")
            try:
                text = self._do(action)
            except EnvironmentFailure:
                raise
            except Exception as e:  # noqa: BLE001 - a computer is foreign code; the model sees it
                return ErrorObservation(text=f"{said(action)} failed: {e}")
            shown = self._look()
            if action.action not in ("screenshot", "zoom", "wait"):
                text += changed_text(shown.changed)
            if self._each_act and action.action not in ("screenshot", "zoom"):
                self._pictures.append(Picture(caption=f"After {said(action)}", image=shown.image))
            return ComputerObservation(
                text=text,
                image=shown.image,
                content=shown.content,
                current_url=self.computer.get_current_url(),
            )

    def named(self, action: Action) -> Action:
        """Return the action with what is at its point, if the computer can describe that."""
        describe = getattr(self.computer, "describe", None)
        if not isinstance(action, ComputerAction) or describe is None:
            return action
        with self._lock:
            point = self.view.to_screen(action)
            start = point.path[0] if point.path else point
            target = str(describe(start.x, start.y))
            return action.model_copy(update={"target": target, "url": self._url()})

    def state(self) -> dict[str, Any]:
        """Return facts about the screen for the log."""
        with self._lock:
            content = self._shown.content if self._shown else ""
            return {"environment": self.computer.environment, "screen": content, "url": self._url()}

    def suspend(self) -> dict[str, Any] | None:
        """Keep the computer for the run that resumes, if it supports that; else close it.

        A computer that the caller opened stays open.
        """
        if not self._owned:
            return lease_of(self.computer, self._shown.content if self._shown else "")
        suspend = getattr(self.computer, "suspend", None)
        if suspend is not None:
            lease: dict[str, Any] | None = suspend()
            return lease
        self.close()
        return None

    def lease(self) -> dict[str, Any] | None:
        """Return how to reconnect after a kill; see `Environment.lease`."""
        lease = getattr(self.computer, "lease", None)
        return lease() if self._owned and lease is not None else None

    def hold(self, held: bool) -> bool:
        """Keep the computer if this process is killed; see `Environment.hold`."""
        hold = getattr(self.computer, "hold", None)
        return bool(hold(held)) if self._owned and hold is not None else False

    def close(self) -> None:
        """Close the computer, unless the caller opened it."""
        owned, self._owned = self._owned, False
        if owned:
            self.computer.__exit__(None, None, None)

    # --- parts -----------------------------------------------------------------------------

    def _is_unchanged(self, suspended: Mapping[str, Any] | None) -> bool:
        """Whether the caller's computer shows what it showed when an earlier run was suspended."""
        if not suspended or "process" not in suspended:
            return False
        return suspended == lease_of(self.computer, self._look(first=True).content)

    def _do(self, action: ComputerAction) -> str:
        """Do an action on the computer; return what was done."""
        if action.action == "screenshot":
            return "screenshot: taken"
        on_screen = self.view.to_screen(action)
        if action.action == "zoom":
            assert on_screen.region is not None and action.region is not None
            return self._zoom(on_screen.region, action.region)
        if action.action == "triple_click" and not hasattr(self.computer, "triple_click"):
            # the third click soon after two others counts as a triple click
            self.computer.double_click(*_whole(on_screen.x, on_screen.y))
            self.computer.click(*_whole(on_screen.x, on_screen.y))
            return f"{said(action)}: done"
        method = getattr(self.computer, action.action)
        method(**_arguments(on_screen, method, self.view))
        return f"{said(action)}: done"

    def _zoom(self, region: Region, asked: Region) -> str:
        clipped = self.view.clipped(region)
        if clipped is None:
            raise ValueError(f"the region is outside the screen, {_size(self.view.size)}")
        data = self.view.enlarge(bytes_of(self.computer.screenshot()), clipped)
        width, height = self.view.zoomed_size(clipped)
        caption = f"Zoom of {asked}, {width}x{height}"
        self._pictures.append(Picture(caption=caption, image=data_url(data)))
        return f"zoom {asked}: the next step shows it in {width}x{height}"

    def _look(self, first: bool = False) -> Shown:
        """Return the screen, once two screenshots in a row agree.

        Args:
            first: it is the first screenshot, of a computer that may still start.
        """
        wait = getattr(self.computer, "wait_until_still", None)
        if wait is not None:
            wait(first)
            image = self.computer.screenshot()
        else:
            image = self._agreed_screenshot()
        position = getattr(self.computer, "pointer", None)
        shown = self.view.show(bytes_of(image), position() if position else None)
        self._shown = shown
        return shown

    def _agreed_screenshot(self) -> str:
        """Return the first screenshot that equals its predecessor, or the last of a few."""
        before = self.computer.screenshot()
        for _ in range(_LOOKS):
            image = self.computer.screenshot()
            if image == before:
                break
            before = image
            time.sleep(_BETWEEN_LOOKS_SECONDS)
        return before

    def _out_of_screen(self, action: ComputerAction) -> str:
        """Return why a point of an action cannot be used; empty if it can."""
        width, height = self.view.size
        points = [(p.x, p.y) for p in action.path]
        if action.x is not None and action.y is not None:
            points.append((action.x, action.y))
        for x, y in points:
            if not (0 <= x < width and 0 <= y < height):
                return f"({x:g}, {y:g}) is outside the screen, {width} x {height}"
        return ""

    def _status(self) -> list[str]:
        status = getattr(self.computer, "status", None)
        return [str(line) for line in status()] if status is not None else []

    def _url(self) -> str:
        return str(self.computer.get_current_url() or "")


def lease_of(computer: object, content: str) -> dict[str, Any]:
    """Return what identifies a computer of the caller, and its screen, in this process."""
    return {"process": os.getpid(), "computer": id(computer), "screen": content}


def is_open(computer: Computer) -> bool:
    """Whether a computer says that it is open; True for one that does not say."""
    return bool(getattr(computer, "is_open", True))


def said(action: ComputerAction) -> str:
    """Return an action in a few words: `click 412,230`, `type 'desk lamp'`."""
    words: list[str] = [action.action]
    if action.x is not None and action.y is not None:
        words.append(f"{action.x:g},{action.y:g}")
    if action.path:
        first, last = action.path[0], action.path[-1]
        words.append(f"{first.x:g},{first.y:g} ... {last.x:g},{last.y:g}")
    if action.action == "scroll":
        words.append(f"by {action.scroll_x:g},{action.scroll_y:g}")
    if action.button != "left":
        words.append(action.button)
    if action.text is not None:
        words.append(repr("***" if action.secret else action.text))
    if action.keys:
        words.append("+".join(action.keys))
    if action.region is not None:
        words.append(str(action.region))
    if action.ms is not None:
        words.append(f"{action.ms:g} ms")
    return " ".join(words)


def changed_text(changed: tuple[Region, ...]) -> str:
    """Return which regions of the picture changed, for the end of a result line."""
    if not changed:
        return "; the picture did not change"
    return f"; the picture changed in {', '.join(map(str, changed))}"


def _arguments(action: ComputerAction, method: Any, view: ScreenView) -> dict[str, Any]:
    """Return the arguments of a computer's method for an action.

    Raises:
        ValueError: the action has an argument that the method does not accept.
    """
    given: dict[str, Any] = {}
    match action.action:
        case "click" | "double_click" | "triple_click" | "move":
            given["x"], given["y"] = _whole(action.x, action.y)
        case "scroll":
            x = view.width / 2 if action.x is None else action.x
            y = view.height / 2 if action.y is None else action.y
            given["x"], given["y"] = _whole(x, y)
            given["scroll_x"], given["scroll_y"] = _whole(action.scroll_x, action.scroll_y)
        case "drag":
            points = [_whole(p.x, p.y) for p in action.path]
            given["path"] = [{"x": x, "y": y} for x, y in points]
        case "type":
            given["text"] = action.text
    if action.action == "click":
        given["button"] = action.button
    if action.keys:
        given["keys"] = list(action.keys)
    if action.ms is not None:
        given["ms"] = round(action.ms)
    parameters = inspect.signature(method).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return given
    if missing := [name for name in _HOLDS if name in given and name not in parameters]:
        raise ValueError(f"this computer's {action.action} takes no {missing[0]}")
    return given


def _whole(x: float | None, y: float | None) -> tuple[int, int]:
    return round(x or 0), round(y or 0)


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"
