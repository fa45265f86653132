"""`replay:PATH`: the back end that answers with what was recorded.

PATH is a recording (`record:FILE:TARGET` made it), or a whole run: its folder, one task's folder,
a journal, or a file of output rows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ReplayError
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.recordings.elements import fill_reply
from ck_pro.model.recordings.recording import Recording, each_text, raise_filtered
from ck_pro.model.recordings.run_recording import RunRecording
from ck_pro.model.types import RawReply, Usage

_State = tuple[tuple[str, int, int], ...]
"""Name, time of change, and size: it is read again when one differs."""


class ReplayBackend(Backend):
    """Answers with recorded replies; anything that does not fit is an error that says what.

    Args:
        path: the recording, or the run.
        check: compare the instructions with the recorded ones.
    """

    free = True

    def __init__(self, path: str | Path, check: bool = True):
        path = Path(path).expanduser()
        named = path.name in (EVENTS_FILE, COMPRESSED_FILE)
        self.path = path.parent if named else path
        self.compare = check

    def describe(self) -> str:
        return f"replaying the {'run' if self.path.is_dir() else 'recording'} {self.path}"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "replay"

    def check(self) -> None:
        self.recording()

    def recording(self) -> Recording | RunRecording:
        """The recording as it is on disk now; read once for all threads.

        Raises:
            ReplayError: it cannot be read.
        """
        try:
            with _LOADING:  # one object for all threads: it knows who was given what
                return _loaded(self.path.absolute(), _state(self.path))
        except OSError as e:
            raise ReplayError(
                f"replay: cannot read the recording {self.path}: {e.strerror}"
            ) from None

    def complete(self, request: ChatRequest) -> RawReply:
        recording, context = self.recording(), request.context
        row = recording.find(request)
        problem = recording.changed(row, request) if self.compare else ""
        if problem:
            raise ReplayError(
                f"replay: the recorded reply for {context.where()} does not fit: {problem}; record "
                f"it anew, or take it as it is with 'replay:{self.path}?check=off'"
            )
        raise_filtered(row)
        usage = row.get("usage")

        def fill(text: str) -> str:
            return fill_reply(text, request.messages, context)

        return RawReply(
            text=fill(row["reply"]),
            reasoning=str(row.get("reasoning", "")),
            tool_calls=each_text(row.get("tool_calls", []), fill),
            items=each_text(row.get("items", []), fill),
            usage=Usage(**usage) if isinstance(usage, dict) else None,
            finish_reason=str(row.get("finish_reason", "stop")),
            model="replay",
        )


def _state(path: Path) -> _State:
    if not path.is_dir():
        return (_file_state(path),)
    # of a whole run only the folder itself: to look at each journal in each call would take longer
    # than all else, and a run that is being replayed does not change
    own = (path / name for name in (EVENTS_FILE, COMPRESSED_FILE))
    return (_file_state(path), *(_file_state(f) for f in own if f.exists()))


def _file_state(path: Path) -> tuple[str, int, int]:
    stat = path.stat()
    return str(path), stat.st_mtime_ns, stat.st_size


_LOADING = threading.Lock()


@lru_cache(maxsize=16)
def _loaded(path: Path, state: _State) -> Recording | RunRecording:
    if path.is_dir() or _holds_rows(path):
        return RunRecording(path)
    return Recording.load(path)


def _holds_rows(path: Path) -> bool:
    """Whether a file's first line is an output row, by how one begins and what it holds."""
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    return b'"session"' in first and b'"steps"' in first
