"""Sessions of journals that keep their steps in a temporary file.

A long run's row does not fit in memory: prompts, screenshots, pages, observations. While the
journal is read, each step moves to a temporary file when the next step starts or the session ends.
Memory then holds only its position. Each access to a step reads it again.
"""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, cast

from ck_pro.events import EventKind, JournalEvent
from ck_pro.exceptions import OutputError
from ck_pro.journal import LazyList
from ck_pro.session import AgentSession
from ck_pro.session.row_form import row_step
from ck_pro.session.rows import Step


class StepStore:
    """The steps of one journal, in a temporary file that is created on first use."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0
        self._entry: Callable[[Any], Any] | None = None
        """Reads a message from the journal; the same function for all prompts."""

    def new_session(self, id: str) -> SpilledSession:
        """Create an empty session that stores its steps here."""
        return SpilledSession(self, id)

    def put(self, step: Mapping[str, Any]) -> _Place:
        """Write a step to the file.

        Raises:
            OutputError: it cannot be written; most likely the disk is full.
        """
        body = io.BytesIO()
        pickler = pickle.Pickler(body, protocol=5)
        pickler.persistent_id = self._keys_of  # type: ignore[method-assign]
        pickler.dump(step)
        place = _Place(self._end, body.tell())
        try:
            if self._file is None:
                # unbuffered, so that closing it writes nothing; closed with this object
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

    def get(self, place: _Place) -> Step:
        """Read a step."""
        assert self._file is not None
        body = os.pread(self._file.fileno(), place.length, place.at)
        unpickler = pickle.Unpickler(io.BytesIO(body))
        unpickler.persistent_load = self._prompt_of  # type: ignore[method-assign]
        return cast(Step, unpickler.load())

    def _keys_of(self, value: Any) -> Sequence[Any] | None:
        if not isinstance(value, LazyList):
            return None
        self._entry = value.entry
        return value.keys

    def _prompt_of(self, keys: Sequence[Any]) -> LazyList:
        assert self._entry is not None
        return LazyList(keys, self._entry)


class _Place:
    """Position of a step in bytes."""

    __slots__ = ("at", "length")

    def __init__(self, at: int, length: int):
        self.at, self.length = at, length


def _write(fd: int, data: memoryview, at: int) -> None:
    """Write all of the data; raise OSError if the disk is full."""
    while data:
        done = os.pwrite(fd, data, at)
        data, at = data[done:], at + done


class SpilledSession(AgentSession):
    """A session that keeps only the step in progress in memory.

    Args:
        store: where the other steps are.
        id: of the session.
    """

    def __init__(self, store: StepStore, id: str):
        super().__init__(id=id)
        self._store = store

    def apply(self, event: JournalEvent) -> None:
        """See `AgentSession.apply`."""
        if event["kind"] == EventKind.STEP:
            self._spill()
        elif self.steps:
            self.steps[-1] = self._whole(-1)  # in case an ended session resumes
        super().apply(event)
        if event["kind"] == EventKind.STATUS:
            self._spill()

    def full_steps(self) -> Sequence[Step]:
        """Return the steps of an output row; each is read on access."""
        numbers = range(len(self.steps))
        return LazyList(numbers, lambda n: row_step(self, n, self._whole(n)))

    def _spill(self) -> None:
        if self.steps and not isinstance(self.steps[-1], _Place):
            # only this class reads the entries of the list
            self.steps[-1] = cast(Step, self._store.put(self.steps[-1]))

    def _whole(self, n: int) -> Step:
        step: Any = self.steps[n]
        return self._store.get(step) if isinstance(step, _Place) else step
