"""Objects that a worker knows by a handle, such as the results of sub-agents."""

from __future__ import annotations

import itertools
from typing import Any

from ck_pro.executor.worker.values import encode


class Handles:
    """Objects with a method `to_worker`, by the handles that a worker has."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self._numbers = itertools.count(1)

    def tag(self, value: Any) -> dict[str, Any] | None:
        """Register an object and return its `result` tag; None if it lacks `to_worker`."""
        if not callable(getattr(type(value), "to_worker", None)):
            return None
        content = encode(dict(value.to_worker()), self.tag)
        handle = f"r{next(self._numbers)}"  # `next` is atomic, since any thread may be here
        self.objects[handle] = value
        return {"$": "result", "h": handle, "d": content, "s": str(value)}

    def restore(self, tagged: dict[str, Any]) -> Any:
        """Return the object of a `result` tag from the worker.

        Raises:
            KeyError: the handle does not exist.
        """
        return self.objects[tagged["h"]]
