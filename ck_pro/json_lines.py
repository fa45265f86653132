"""Lines of JSON files that any reader can decode."""

from __future__ import annotations

import json
from typing import Any


def json_line(value: Any) -> bytes:
    """Encode a value as one line, with its end.

    Text stays readable; only a line with half of a surrogate pair, as in a truncated reply, has
    all characters beyond ASCII escaped.
    """
    try:
        return f"{json.dumps(value, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(value)}\n".encode()
