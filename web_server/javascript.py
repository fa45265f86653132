"""The JavaScript files of a room, in its folder `js`.

A *function file* holds one function expression. The others are *parts*: `bundle_script` joins parts
into one function, so that they share their names and the page sees none of them. The header of a
file says where it runs and what it does; its `global` comment lists the names that it uses from
other parts, and `exported` the names that it provides. ESLint checks both (`make lint`).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent


@cache
def load_script(room: str, name: str) -> str:
    """Return the text of the file `name`.js in `web_server/<room>/js` or a folder below it."""
    (path,) = (_PACKAGE / room / "js").rglob(f"{name}.js")
    return path.read_text(encoding="utf-8")


def bundle_script(room: str, names: tuple[str, ...], **constants: str) -> str:
    """Return a statement that runs parts of a room in one function.

    Args:
        room: the room that has the files.
        names: their names without `.js`, in the order in which they run.
        constants: names and values that the parts share.
    """
    defined = [f"const {name} = {json.dumps(value)};" for name, value in constants.items()]
    parts = [load_script(room, name) for name in names]
    return "\n".join(["(() => {", "'use strict';", *defined, *parts, "})();"])


def call_script(room: str, name: str, argument: Any) -> str:
    """Return a statement that calls a function file with an argument, which JSON can hold."""
    return f"({load_script(room, name)})({json.dumps(argument)});"
