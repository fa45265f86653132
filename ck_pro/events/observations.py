"""Observations; for screens see `ck_pro.events.computer`."""

from __future__ import annotations

from typing import ClassVar

from ck_pro.events.base import Observation


class CodeObservation(Observation):
    """Output, last value and error of a code action, as one text."""

    kind: ClassVar[str] = "code_output"
    error: str | None = None
    duration: float = 0.0


class ToolObservation(Observation):
    """The result of a tool or sub-agent."""

    kind: ClassVar[str] = "tool_output"
    name: str = ""
    call_id: str = ""


class BrowserObservation(Observation):
    """A page as text for the model. `image` is a data URL of the screenshot, if requested."""

    kind: ClassVar[str] = "browser_output"
    url: str = ""
    image: str = ""


class ErrorObservation(Observation):
    """An error that the model caused, reported so that the model can correct it."""

    kind: ClassVar[str] = "error"


class SuccessObservation(Observation):
    """A successful action without output."""

    kind: ClassVar[str] = "success"
