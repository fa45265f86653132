"""Observations; for screens see `ck_pro.events.computer`."""

from __future__ import annotations

from typing import ClassVar

from ck_pro.events.base import Observation


class BrowserObservation(Observation):
    """A page as text for the model. `image` is a data URL of the screenshot, if requested."""

    kind: ClassVar[str] = "browser_output"
    url: str = ""
    image: str = ""


class ErrorObservation(Observation):
    """An error that the model caused, reported so that the model can correct it."""

    kind: ClassVar[str] = "error"
