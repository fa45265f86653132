"""Observations; for screens see `ck_pro.events.computer`."""

from __future__ import annotations

from typing import ClassVar

from ck_pro.events.base import Observation


class TextObservation(Observation):
    """The result of an action that has no other type of observation."""

    kind: ClassVar[str] = "text"


class BrowserObservation(Observation):
    """A page as text for the model. `image` is a data URL of the screenshot, if requested."""

    kind: ClassVar[str] = "browser_output"
    url: str = ""
    image: str = ""


class CmdOutputObservation(Observation):
    """The output of a command.

    Attributes:
        command: the command; "" for the end of a background command.
        exit_code: None while the command runs, or if it is unknown.
        command_id: number of a background command, for `CmdKillAction`.
    """

    kind: ClassVar[str] = "cmd_output"
    command: str = ""
    exit_code: int | None = None
    command_id: int | None = None


class CodeObservation(Observation):
    """The output of a code action; `error` is the type of its error, if it failed."""

    kind: ClassVar[str] = "code_output"
    error: str = ""


class FileReadObservation(Observation):
    """The content of a file: `text`. A note in brackets at its end reports omitted lines."""

    kind: ClassVar[str] = "file_read"
    path: str


class FileWriteObservation(Observation):
    """A file was written."""

    kind: ClassVar[str] = "file_write"
    path: str


class RecallObservation(Observation):
    """The memories that match a query, best match first."""

    kind: ClassVar[str] = "recall"
    query: str
    memories: list[str] = []


class SuccessObservation(Observation):
    """An action without output succeeded."""

    kind: ClassVar[str] = "success"


class ErrorObservation(Observation):
    """An error that the model caused, reported so that the model can correct it."""

    kind: ClassVar[str] = "error"
