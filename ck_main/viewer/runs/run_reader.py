"""What the viewer needs of a run, whether it is a journal or an output row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ck_main.viewer.runs.outline import ModelCall, Outline


class RunReader(Protocol):
    """A run that can be read in parts.

    Attributes:
        outline: its outline, as far as it was read.
    """

    outline: Outline

    def refresh(self) -> bool:
        """Read new events; return whether there were any."""
        ...

    def events(self, sid: str, i: int) -> Sequence[Mapping[str, Any]]:
        """Return the events of a step in order."""
        ...

    def session_data(self, sid: str) -> Mapping[str, Any]:
        """Return the data of a session's first event: `config`, `info` and other facts."""
        ...

    def call_event(self, call: ModelCall) -> Mapping[str, Any]:
        """Return the event of a model call."""
        ...

    def messages(self, call: ModelCall) -> Sequence[Any]:
        """Return the messages of a model call; images of a journal stay references."""
        ...

    def new_messages(self, call: ModelCall) -> Sequence[Any]:
        """Return the messages that the previous call of the session and phase did not have."""
        ...

    def shared_prefix(self, call: ModelCall) -> int | None:
        """Return how many leading messages a call shares with the previous one; None if unknown."""
        ...

    def blob(self, name: str) -> bytes | None:
        """Return the bytes of a stored image; None if it is missing."""
        ...

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        ...
