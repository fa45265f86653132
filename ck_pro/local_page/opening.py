"""Open a local page in the user's browser."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser


def can_open() -> bool:
    """Whether a user sits at this machine: a terminal, and a display."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION"):
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_in_browser(url: str) -> None:
    """Open an address in the user's browser, in the background; no effect if there is none."""
    threading.Thread(target=webbrowser.open, args=(url,), name="ck-open", daemon=True).start()
