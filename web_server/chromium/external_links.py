"""Links for other programs, such as mailto: and tel: ones: told of, and never opened.

Chromium asks the desktop, by `xdg-settings`, whether it handles such a link itself. If not, it
lays a question over the page that nobody sees and that takes all clicks from then on; or, if the
desktop has a program for it, starts that by `xdg-open`.
"""

from __future__ import annotations

import os
from pathlib import Path

_OF_THE_BROWSER = frozenset(
    {"http", "https", "ws", "wss", "file", "data", "blob", "filesystem", "about", "javascript"}
    | {"chrome", "chrome-error", "devtools", "view-source"}
)
_ANSWER = """#!/bin/sh
# To `check default-url-scheme-handler SCHEME PROGRAM`: the browser itself handles all links.
echo yes
"""


def leads_outside(url: str) -> bool:
    """Whether a URL is for another program than the browser."""
    scheme, colon, _ = url.partition(":")
    return bool(colon) and scheme.lower() not in _OF_THE_BROWSER


def path_without_desktop(folder: Path) -> str:
    """A search path for Chromium on which no program is found for links of other programs.

    Args:
        folder: where the stand-ins for the desktop's tools are put; made if it is missing.
    """
    folder.mkdir(exist_ok=True)
    for name in ("xdg-settings", "xdg-open"):
        tool = folder / name
        tool.write_text(_ANSWER, encoding="utf-8")
        tool.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
