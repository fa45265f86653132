"""The base of this project's local web pages: the viewer of runs and the seat of a model.

A page is served on loopback, to the browser that opened the printed address, and to no other.
May import: exceptions, interrupts, threads. Other rooms use `require_flask`, then
`app.LocalApp`, `app.json_response` and `opening.open_in_browser`.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from ck_pro.exceptions import ConfigError

__all__ = ["STATIC", "require_flask"]
STATIC = Path(__file__).parent / "static"
"""Files that all local pages share, at `/static/`."""


def require_flask(what: str) -> None:
    """Check that Flask is installed; call it before `app` is imported.

    Args:
        what: subject of the message: "the viewer".

    Raises:
        ConfigError: it is missing.
    """
    if importlib.util.find_spec("flask") is None:
        raise ConfigError(f'{what} needs Flask: pip install "ck-pro[view]"')
