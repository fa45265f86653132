"""The line protocol between `web.py` and a peer in a Python of its own: a JSON object per line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def serve(peer: Any) -> None:
    """Do what each line of standard input asks of `peer` until there is no more.

    A line is `{"do": method, ...arguments}`; the reply is the method's dict, or `{"error": text}`.
    The first line that is sent is `{"ready": true}`. What the peer prints goes to standard error.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    replies.write(json.dumps({"ready": True}) + "\n")
    replies.flush()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            reply = getattr(peer, asked.pop("do"))(**asked)
        except Exception as e:  # noqa: BLE001  (the boundary of the process: told, not swallowed)
            reply = {"error": f"{type(e).__name__}: {e}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
