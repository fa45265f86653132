"""The protocol between `web.py` and a peer in its own Python environment: JSON lines."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def serve(peer: Any) -> None:
    """Call the methods of `peer` that the lines of standard input request.

    A request is `{"do": method, ...arguments}`. The reply is the result, or `{"error": text}`. The
    first line of output is `{"ready": true}`. What the peer prints goes to standard error.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    replies.write(json.dumps({"ready": True}) + "\n")
    replies.flush()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(peer, request.pop("do"))(**request)
        except Exception as e:  # noqa: BLE001  (the boundary of the process: it is reported)
            reply = {"error": f"{type(e).__name__}: {e}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
