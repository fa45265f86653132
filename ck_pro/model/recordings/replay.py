"""`replay:PATH`: return recorded replies.

PATH is a recording (written by `record:FILE:TARGET`) or a run: its folder, a task's folder, a
journal or a file of output rows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ck_pro.exceptions import ReplayError
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.recordings.elements import fill_reply
from ck_pro.model.recordings.recording import Recording, each_text, raise_filtered
from ck_pro.model.types import RawReply, Usage

if TYPE_CHECKING:
    from ck_pro.model.recordings.run_recording import RunRecording

_State = tuple[tuple[str, int, int], ...]
"""Name, modification time and size; if one changes, the recording is loaded again."""


class ReplayBackend(Backend):
    """Return recorded replies; report every difference to the recorded run as an error.

    Args:
        path: the recording or run.
        check: whether to compare the prompt's instructions with the recorded ones.
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
        """Return the current recording; threads share it.

        Raises:
            ReplayError: it cannot be read.
        """
        try:
            with _LOADING:  # a `RunRecording` tracks which session got which replies
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
                f"replay: the recorded reply for {context.where()} does not match: {problem}; "
                f"record it again, or skip this check with 'replay:{self.path}?check=off'"
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
    # of a run, check only the folder: checking each journal in each call would be slow, and a run
    # does not change while it is replayed
    own = (path / name for name in (EVENTS_FILE, COMPRESSED_FILE))
    return (_file_state(path), *(_file_state(f) for f in own if f.exists()))


def _file_state(path: Path) -> tuple[str, int, int]:
    stat = path.stat()
    return str(path), stat.st_mtime_ns, stat.st_size


_LOADING = threading.Lock()


@lru_cache(maxsize=16)
def _loaded(path: Path, state: _State) -> Recording | RunRecording:
    if path.is_dir() or _holds_rows(path):
        from ck_pro.model.recordings.run_recording import RunRecording

        return RunRecording(path)
    return Recording.load(path)


def _holds_rows(path: Path) -> bool:
    """Return whether a file's first line looks like an output row."""
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    return b'"session"' in first and b'"steps"' in first
