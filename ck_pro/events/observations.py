"""What the world can answer; for screens see `ck_pro.events.computer`."""

from __future__ import annotations

from typing import ClassVar

from ck_pro.events.base import Observation


class CodeObservation(Observation):
    """What a code action printed, its last value and its error, as one text."""

    kind: ClassVar[str] = "code_output"
    error: str | None = None
    duration: float = 0.0


class ToolObservation(Observation):
    """What a tool or sub-agent returned."""

    kind: ClassVar[str] = "tool_output"
    name: str = ""
    call_id: str = ""


class BrowserObservation(Observation):
    """A page as a model reads it. `image` is a data URL of the screenshot, where wanted."""

    kind: ClassVar[str] = "browser_output"
    url: str = ""
    image: str = ""


class ErrorObservation(Observation):
    """A fault of the model's own making, told so that it can learn from it."""

    kind: ClassVar[str] = "error"


class SuccessObservation(Observation):
    """An action that has nothing to tell but that it worked."""

    kind: ClassVar[str] = "success"
