"""`StepPrinter`: print the items of steps, and show their screens."""

from __future__ import annotations

import os
import pprint
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.computer.view import bytes_of, decoded
from ck_web.computer.items import call_line, text_of_item

_SHOWN_URL = 40


class StepPrinter:
    """Print the items of steps.

    Args:
        print_steps: print messages and calls, one per line.
        debug: print all items, with images shortened.
        show_images: show each screen in an image viewer; without a display, print where it was
            saved.
        to_stdout: print to standard output instead of standard error.
    """

    def __init__(
        self,
        print_steps: bool = False,
        debug: bool = False,
        show_images: bool = False,
        *,
        to_stdout: bool = False,
    ):
        self._prints, self._debug, self._shows = print_steps, debug, show_images
        self._to_stdout = to_stdout

    def show(self, items: Sequence[Mapping[str, Any]], images: Sequence[str] = ()) -> None:
        """Print items, and show images (data URLs)."""
        for item in items:
            if self._debug:
                self._print(pprint.pformat(sanitized(dict(item)), sort_dicts=False))
            elif self._prints and (line := text_of_item(item) or call_line(item)):
                self._print(line)
        if self._shows:
            for image in images:
                if path := show_image(image):
                    self._print(f"screen: {path}")

    def _print(self, text: str) -> None:
        stream = sys.stdout if self._to_stdout else sys.stderr
        stream.write(f"{text}\n")
        stream.flush()


def sanitized(value: Any) -> Any:
    """Return JSON data with the data URLs of images shortened."""
    if isinstance(value, str):
        return f"{value[:_SHOWN_URL]}..." if value.startswith("data:image/") else value
    if isinstance(value, Mapping):
        return {k: sanitized(v) for k, v in value.items()}
    return [sanitized(v) for v in value] if isinstance(value, list) else value


def show_image(image: str) -> str:
    """Show an image in a viewer; return the path of a saved copy if there is no display.

    Args:
        image: its data URL.
    """
    data = bytes_of(image)
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY"):
        decoded(data).show()
        return ""
    form = ".png" if data.startswith(b"\x89PNG") else ".jpg"
    with tempfile.NamedTemporaryFile(prefix="ck-screen-", suffix=form, delete=False) as file:
        file.write(data)
    return str(Path(file.name))
