"""Data of journal events with the required keys, for tests of what is beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.events.journal_events import ModelCallData, ResumedData, StatusData

RESUMED = ResumedData(redo=False, learned="")


def model_call(messages: Sequence[Mapping[str, Any]] | None = None, **more: Any) -> ModelCallData:
    """Return the data of an event `model_call`."""
    data = {"model": "m", "usage": {}, **more}
    return data if messages is None else {**data, "messages": messages}  # type: ignore


def status(status: str = "done", **more: Any) -> StatusData:
    """Return the data of an event `status`."""
    return {"status": status, "stop_reason": "finished", "message": "", **more}  # type: ignore
