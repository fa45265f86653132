"""Sessions of journals whose steps wait on the disk.

A whole row of a long run does not fit in memory: prompts, screenshots, pages, observations. While
its journal is read, each step goes into a temporary file when the next one begins or its session
ends; what stays in memory is where it stands there. A step is read again whenever it is asked for.
"""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, cast

from ck_pro.exceptions import OutputError
from ck_pro.journal import LazyList
from ck_pro.session import AgentSession


class Parking:
    """The steps of one journal; in a temporary file once there is one."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0
        self._entry: Callable[[Any], Any] | None = None
        """Reads a message from the journal, where messages stay; the same for all prompts."""

    def new_session(self, id: str) -> ParkedSession:
        """An empty session whose steps will be here."""
        return ParkedSession(self, id)

    def put(self, step: Mapping[str, Any]) -> _Place:
        """Put a step on the disk.

        Raises:
            OutputError: there is no room for it, most likely.
        """
        body = io.BytesIO()
        pickler = pickle.Pickler(body, protocol=5)
        pickler.persistent_id = self._keys_of  # type: ignore[method-assign]
        pickler.dump(step)
        place = _Place(self._end, body.tell())
        try:
            if self._file is None:
                # it lives as long as the row; without a buffer, so that closing it writes nothing
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            _write(self._file.fileno(), body.getbuffer(), place.at)
        except OSError as e:
            raise OutputError(
                f"cannot write a temporary file in {tempfile.gettempdir()}: {e.strerror}; "
                "set TMPDIR to a folder with more room"
            ) from None
        self._end += place.length
        return place

    def get(self, place: _Place) -> dict[str, Any]:
        """A step as it was."""
        assert self._file is not None
        body = os.pread(self._file.fileno(), place.length, place.at)
        unpickler = pickle.Unpickler(io.BytesIO(body))
        unpickler.persistent_load = self._prompt_of  # type: ignore[method-assign]
        return cast(dict[str, Any], unpickler.load())

    def _keys_of(self, value: Any) -> Sequence[Any] | None:
        if not isinstance(value, LazyList):
            return None
        self._entry = value.entry
        return value.keys

    def _prompt_of(self, keys: Sequence[Any]) -> LazyList:
        assert self._entry is not None
        return LazyList(keys, self._entry)


class _Place:
    """Where a step stands, in bytes."""

    __slots__ = ("at", "length")

    def __init__(self, at: int, length: int):
        self.at, self.length = at, length


def _write(fd: int, data: memoryview, at: int) -> None:
    """Write all of it; what does not fit the disk is an `OSError`."""
    while data:
        done = os.pwrite(fd, data, at)
        data, at = data[done:], at + done


class ParkedSession(AgentSession):
    """A session of which only the step under way is in memory.

    Args:
        parking: where the others are.
        id: of the session.
    """

    def __init__(self, parking: Parking, id: str):
        super().__init__(id=id)
        self._parking = parking

    def apply(self, event: Mapping[str, Any]) -> None:
        """See `AgentSession.apply`."""
        if event["kind"] == "step":
            self._park()
        elif self.steps:
            self.steps[-1] = self._whole(-1)  # one that ended, and goes on
        super().apply(event)
        if event["kind"] == "status":
            self._park()

    def full_steps(self) -> Sequence[dict[str, Any]]:
        """The steps of an output row, each read when it is asked for."""
        numbers = range(len(self.steps))
        return LazyList(numbers, lambda n: self.full_step(n, self._whole(n)))

    def _park(self) -> None:
        if self.steps and not isinstance(self.steps[-1], _Place):
            # nobody but this class sees the entries of the list
            self.steps[-1] = cast(dict[str, Any], self._parking.put(self.steps[-1]))

    def _whole(self, n: int) -> dict[str, Any]:
        step: Any = self.steps[n]
        return self._parking.get(step) if isinstance(step, _Place) else step
