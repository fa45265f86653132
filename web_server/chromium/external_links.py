"""Links for other programs, such as mailto: and tel:, are reported and never opened.

Chromium runs `xdg-settings` to find out whether it handles such a link itself. If it does not, it
opens an invisible dialog that takes all clicks, or starts another program by `xdg-open`. So both
tools are replaced.
"""

from __future__ import annotations

import os
from pathlib import Path

_OF_THE_BROWSER = frozenset(
    {"http", "https", "ws", "wss", "file", "data", "blob", "filesystem", "about", "javascript"}
    | {"chrome", "chrome-error", "devtools", "view-source"}
)
_ANSWER = """#!/bin/sh
# Answers `check default-url-scheme-handler SCHEME PROGRAM`: the browser handles all links.
echo yes
"""


def leads_outside(url: str) -> bool:
    """Whether a URL is for a program other than the browser."""
    scheme, colon, _ = url.partition(":")
    return bool(colon) and scheme.lower() not in _OF_THE_BROWSER


def path_without_desktop(folder: Path) -> str:
    """Return a search path on which Chromium finds replacements for the desktop's tools.

    Args:
        folder: for the replacements; created if it is missing.
    """
    folder.mkdir(exist_ok=True)
    for name in ("xdg-settings", "xdg-open"):
        tool = folder / name
        tool.write_text(_ANSWER, encoding="utf-8")
        tool.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
