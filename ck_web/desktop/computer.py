"""`DesktopComputer`: programs on a private X display, as a `Computer`."""

from __future__ import annotations

import base64
import itertools
import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ck_pro.computer.view import encoded
from ck_pro.exceptions import ConfigError, EnvironmentFailure, ToolError
from ck_web.desktop.config import DesktopConfig, missing_programs
from ck_web.desktop.display import PrivateDisplay
from ck_web.desktop.keys import keysyms

_BUTTONS = {"left": 1, "wheel": 2, "right": 3, "back": 8, "forward": 9}
_WHEEL = {(0, -1): 4, (0, 1): 5, (-1, 0): 6, (1, 0): 7}
_NOTCH_PIXELS = 100
_MAX_NOTCHES = 50
_MAX_TEXT = 10_000
_CHUNK = 200  # characters per command, which is limited in time
_KEY_DELAY_MS = 3
_LOOKUP_DELAY_MS = 150
_PARTS = re.compile(rf"[\x00-\x7f]{{1,{_CHUNK}}}|[^\x00-\x7f]")
_COMMAND_SECONDS = 20.0
_LOOK_SECONDS = 0.04
_STEP_SECONDS = 0.02
_MAX_WINDOWS = 10


class DesktopComputer:
    """A desktop on a private X display; a context manager.

    >>> with DesktopComputer("xterm") as computer:                          # doctest: +SKIP
    ...     computer.type("date\\n")
    ...     picture = computer.screenshot()

    The display accepts no network connections and no other users. The programs get a short list of
    environment variables, without API keys, but otherwise run with the rights of this process.

    Args:
        config: the settings; a `DesktopConfig`, a dict of them, or one command line.
        workdir: working directory of the programs, and their home directory.
    """

    environment = "linux"

    def __init__(
        self,
        config: DesktopConfig | Mapping[str, Any] | str | None = None,
        *,
        workdir: str | Path = ".",
    ):
        if isinstance(config, str):
            config = {"programs": [config]}
        made = config if isinstance(config, DesktopConfig) else DesktopConfig(**(config or {}))
        self.config, self.workdir = made, Path(workdir).resolve()
        self._display: PrivateDisplay | None = None

    # --- the lease -------------------------------------------------------------------------

    def __enter__(self) -> DesktopComputer:
        """Start the display and the programs; wait until they show something.

        Raises:
            ConfigError: Xvfb or xdotool is not installed.
            EnvironmentFailure: the display or a program did not start.
        """
        if problem := missing_programs():
            raise ConfigError(problem)
        config = self.config
        self._display = PrivateDisplay(config.width, config.height)
        try:
            for command in config.command_lines():
                self._display.start_program(command, self._environment(), self.workdir)
            if config.programs:
                self._until_windows(config.start_seconds)
            self.wait_until_still(True)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """End the programs and the display. Later calls have no effect."""
        display, self._display = self._display, None
        if display is not None:
            display.close()

    @property
    def is_open(self) -> bool:
        """Whether the display runs."""
        return self._display is not None

    def suspend(self) -> dict[str, Any] | None:
        """Leave the desktop open for `suspended_seconds`; return what `reconnect` needs."""
        display, self._display = self._display, None
        return None if display is None else display.suspend(self.config.suspended_seconds)

    def reconnect(self, lease: Mapping[str, Any]) -> bool:
        """Use a suspended desktop again; return whether it is still open."""
        self._display = PrivateDisplay.reconnect(lease)
        return self._display is not None

    def lease(self) -> dict[str, Any]:
        """Return what `reconnect` needs if this process is killed while the desktop is held."""
        return self.display.lease

    def hold(self, held: bool) -> bool:
        """Keep the desktop for `suspended_seconds` if this process is killed, or stop that."""
        self.display.hold(self.config.suspended_seconds if held else 0.0)
        return held

    @property
    def display(self) -> PrivateDisplay:
        """The private display.

        Raises:
            EnvironmentFailure: it is not open.
        """
        if self._display is None:
            raise EnvironmentFailure("the desktop is not open: use it in a `with` block")
        return self._display

    # --- the protocol ----------------------------------------------------------------------

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of the screen in pixels."""
        if self._display is None:
            return self.config.width, self.config.height
        return self._display.framebuffer.width, self._display.framebuffer.height

    def screenshot(self) -> str:
        """Return the screen, without the pointer, as a PNG image in base64."""
        return base64.b64encode(encoded(self.display.framebuffer.image(), "PNG")).decode()

    def get_current_url(self) -> str:
        """Return "": a desktop has no address."""
        return ""

    def click(
        self, x: int, y: int, button: str = "left", keys: Iterable[str] = (), ms: int = 0
    ) -> None:
        """Click.

        Args:
            x, y: the point.
            button: "left", "right", "wheel", "back" or "forward".
            keys: keys held down meanwhile.
            ms: how long to hold the button, in milliseconds.
        """
        self._click(x, y, 1, button, keys, ms)

    def double_click(self, x: int, y: int, keys: Iterable[str] = ()) -> None:
        """Double-click the left button."""
        self._click(x, y, 2, "left", keys)

    def triple_click(self, x: int, y: int, keys: Iterable[str] = ()) -> None:
        """Click the left button three times, which selects a line in most programs."""
        self._click(x, y, 3, "left", keys)

    def move(self, x: int, y: int) -> None:
        """Move the mouse."""
        self._run("mousemove", x, y)

    def drag(self, path: list[dict[str, int]], keys: Iterable[str] = ()) -> None:
        """Drag with the left button along points `{"x", "y"}`."""
        words: list[Any] = ["mousemove", path[0]["x"], path[0]["y"], "mousedown", 1]
        for before, after in itertools.pairwise(path):
            middle = {axis: (before[axis] + after[axis]) // 2 for axis in "xy"}
            for point in (middle, after):
                words += ["sleep", _STEP_SECONDS, "mousemove", point["x"], point["y"]]
        self._run(*_holding(keys, [*words, "sleep", _STEP_SECONDS, "mouseup", 1]))

    def scroll(
        self, x: int, y: int, scroll_x: int, scroll_y: int, keys: Iterable[str] = ()
    ) -> None:
        """Turn the wheel, one notch per 100 pixels."""
        words: list[Any] = ["mousemove", x, y]
        for dx, dy in ((scroll_x, 0), (0, scroll_y)):
            if dx or dy:
                notches = min(_MAX_NOTCHES, max(1, round(abs(dx + dy) / _NOTCH_PIXELS)))
                button = _WHEEL[(dx > 0) - (dx < 0), (dy > 0) - (dy < 0)]
                words += ["click", "--repeat", notches, "--delay", 10, button]
        self._run(*_holding(keys, words))

    def type(self, text: str) -> None:
        """Type a text at the focus; a newline is the key Enter.

        A character beyond ASCII takes 0.15 s, and a busy program may miss it.

        Raises:
            ToolError: the text is too long.
        """
        if len(text) > _MAX_TEXT:
            raise ToolError(f"the text has {len(text):,} characters; type at most {_MAX_TEXT:,}")
        for part in _PARTS.findall(text):
            # a character without a key gets one for a moment: the program must look it up in time
            delay = _KEY_DELAY_MS if part.isascii() else _LOOKUP_DELAY_MS
            self._run("type", "--delay", delay, "--", part)

    def keypress(self, keys: list[str], ms: int = 0) -> None:
        """Press keys together, and hold them for milliseconds."""
        names = keysyms(list(keys))
        if not ms:
            self._run("key", "--", "+".join(names))
            return
        down = [word for name in names for word in ("keydown", name)]
        up = [word for name in reversed(names) for word in ("keyup", name)]
        self._run(*down, "sleep", ms / 1000, *up)

    def wait(self, ms: int = 1000) -> None:
        """Wait until the screen changes, for at most so many milliseconds."""
        framebuffer = self.display.framebuffer
        before, end = framebuffer.checksum(), time.monotonic() + ms / 1000
        while framebuffer.checksum() == before and (left := end - time.monotonic()) > 0:
            time.sleep(min(_LOOK_SECONDS, left))

    # --- further methods of `Computer` -----------------------------------------------------

    def wait_until_still(self, first: bool = False) -> None:
        """Wait until two looks at the screen agree, for a limited time."""
        config, framebuffer = self.config, self.display.framebuffer
        limit = config.start_seconds if first else config.settle_seconds
        end, before = time.monotonic() + limit, framebuffer.checksum()
        while time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
            now = framebuffer.checksum()
            if now == before:
                return
            before = now

    def pointer(self) -> tuple[int, int]:
        """Return where the mouse is."""
        lines = self._run("getmouselocation", "--shell").splitlines()
        facts = dict(line.split("=", 1) for line in lines)
        return int(facts["X"]), int(facts["Y"])

    def describe(self, x: float | None, y: float | None) -> str:
        """Return the window at a point, or at the pointer: `window 'xterm'`."""
        if x is None or y is None:
            x, y = self.pointer()
        for name, (left, top, width, height) in self.windows():
            if left <= x < left + width and top <= y < top + height:
                return f"window {name!r}"
        return "the desktop"

    def status(self) -> list[str]:
        """Return lines for the model: the windows, and the programs that ended."""
        shown = [f"{name!r} {w}x{h} at {x},{y}" for name, (x, y, w, h) in self.windows()]
        lines = [f"Windows: {', '.join(shown) or 'none'}"]
        for name, code in self.display.programs():
            if code is not None:
                lines.append(f"Note: the program {name!r} ended with exit code {code}")
        return lines

    def windows(self) -> list[tuple[str, tuple[int, int, int, int]]]:
        """Return name and box (x, y, width, height) of the visible windows, the topmost first."""
        found = self._run("search", "--onlyvisible", "--maxdepth", 1, "--name", ".", check=False)
        ids = found.split()[::-1][:_MAX_WINDOWS]
        if not ids:
            return []
        words = [w for i in ids for w in ("getwindowname", i, "getwindowgeometry", "--shell", i)]
        lines = iter(self._run(*words, check=False).splitlines())
        windows = []
        for name in lines:
            facts = dict(line.split("=", 1) for line in (next(lines, "") for _ in range(6)) if line)
            box = (int(facts.get(key, 0)) for key in ("X", "Y", "WIDTH", "HEIGHT"))
            windows.append((name, tuple(box)))
        return windows  # type: ignore[return-value]

    # --- parts -----------------------------------------------------------------------------

    def _click(
        self, x: int, y: int, count: int, button: str, keys: Iterable[str] = (), ms: int = 0
    ) -> None:
        if button not in _BUTTONS:
            raise ToolError(f"unknown button {button!r}; known are: {', '.join(_BUTTONS)}")
        number = _BUTTONS[button]
        words: list[Any] = ["mousemove", x, y]
        if ms:
            words += ["mousedown", number, "sleep", ms / 1000, "mouseup", number]
        else:
            words += ["click", "--repeat", count, "--delay", 40, number]
        self._run(*_holding(keys, words))

    def _until_windows(self, seconds: float) -> None:
        """Wait for the first window.

        Raises:
            EnvironmentFailure: a program ended before.
        """
        end = time.monotonic() + seconds
        while not self.windows() and time.monotonic() < end:
            for name, code in self.display.programs():
                if code:
                    raise EnvironmentFailure(f"the program {name!r} ended with exit code {code}")
            time.sleep(_LOOK_SECONDS)

    def _environment(self) -> dict[str, str]:
        """Return the environment variables of the programs, without secrets of this process."""
        kept = {k: os.environ[k] for k in ("PATH", "LANG", "LC_ALL", "TZ") if k in os.environ}
        return {**kept, "HOME": str(self.workdir), **self.config.environment_variables}

    def _run(self, *words: Any, check: bool = True) -> str:
        """Run xdotool; return its output.

        Raises:
            ToolError: it failed.
            EnvironmentFailure: the display has ended.
        """
        environment = {"PATH": os.environ.get("PATH", os.defpath), **self.display.environment}
        if lang := os.environ.get("LC_ALL") or os.environ.get("LANG"):
            environment["LC_ALL"] = lang
        else:
            environment["LC_ALL"] = "C.UTF-8"  # else it types ASCII only
        try:
            done = subprocess.run(
                ["xdotool", *map(str, words)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=_COMMAND_SECONDS + _sleeps(words),
            )
        except subprocess.TimeoutExpired:
            raise EnvironmentFailure(f"xdotool {words[0]} did not end in time") from None
        if check and done.returncode:
            self.display.programs()  # raises if the display has ended
            reason = done.stderr.strip().splitlines()
            raise ToolError(reason[-1] if reason else f"xdotool failed ({done.returncode})")
        return done.stdout


def _holding(keys: Iterable[str], words: list[Any]) -> list[Any]:
    """Return commands of xdotool between presses and releases of keys."""
    names = keysyms(list(keys)) if keys else []
    down = [word for name in names for word in ("keydown", name)]
    up = [word for name in reversed(names) for word in ("keyup", name)]
    return [*down, *words, *up]


def _sleeps(words: Iterable[Any]) -> float:
    """Return the seconds that commands of xdotool sleep."""
    return sum(float(after) for word, after in itertools.pairwise(words) if word == "sleep")
