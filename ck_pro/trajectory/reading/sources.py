"""Read the inputs of an export, one row at a time: files of output rows, and run directories.

A file has one row per line, in CK-Pro's schema; rows of other programs may lack keys. A directory
is a journal (`events.jsonl`, perhaps compressed) or a run (`<run>/<task id>/events.jsonl`). Files
and directories give the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ck_pro.events import EventKind, JournalEvent
from ck_pro.exceptions import InputError, JournalError, OutputError
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE, is_journal, journal_folders, read_events
from ck_pro.session import Status, sessions_from_events
from ck_pro.trajectory.reading.big_json import JsonFile, NotJsonError, is_list, open_json
from ck_pro.trajectory.reading.spill import StepStore

_BOM = b"\xef\xbb\xbf"
_ROW_EVENTS = (EventKind.TASK, EventKind.EVAL)
_UNUSED_BY_CALLS = (EventKind.WORLD, EventKind.STARTED, EventKind.CALL, EventKind.SCREEN)
_BINARY = {
    b"\x1f\x8b": ("compressed (gzip)", "unpack it first, with gunzip"),
    b"\x28\xb5\x2f\xfd": ("compressed (zstd)", "unpack it first, with unzstd"),
    b"\xfd7zXZ": ("compressed (xz)", "unpack it first, with unxz"),
    b"BZh": ("compressed (bzip2)", "unpack it first, with bunzip2"),
    b"PK\x03\x04": ("a zip archive", "unpack it first"),
    b"PAR1": ("Parquet", "rows are read from JSON lines only"),
}
"""First bytes of files that are not rows, with the message for the user."""
_LARGE_LINE = 16 * 2**20
"""Size in bytes from which a line is not read as a whole."""


@dataclass(frozen=True)
class Record:
    """One row.

    Args:
        where: its source: "runs/a.jsonl, line 3" or a journal's folder.
        row: the row.
        on_disk: whether prompts and other long values are read on access; go through such a row
            step by step.
    """

    where: str
    row: Mapping[str, Any]
    on_disk: bool = False


@dataclass(frozen=True)
class Problem:
    """An input that gives no row.

    Args:
        where: file and line, or folder.
        text: what is wrong.
        unfinished: whether it is only a journal of a run that has not ended.
    """

    where: str
    text: str
    unfinished: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def require_folder(path: Path) -> None:
    """Check that a path is a folder, which may contain journals.

    Raises:
        InputError: it is not a folder.
    """
    if not path.exists():
        raise InputError(f"cannot read {path}: No such file or directory")
    if not path.is_dir():
        raise InputError(f"{path} is a file: name the folder of a run or of a task, with journals")


def unreadable(error: Exception) -> str:
    """Describe an error that appeared while going through a row."""
    if isinstance(error, JournalError | NotJsonError):
        return str(error)
    return f"not an output row: {error}"


def check_inputs(paths: Sequence[Path]) -> None:
    """Check the inputs before any work.

    Raises:
        InputError: a path does not exist or cannot be read, a folder has no journals, or a file
            is binary.
    """
    for path in paths:
        try:
            if path.is_dir():
                if not journal_folders(path):
                    raise InputError(
                        f"{path}: no journal in it: neither {EVENTS_FILE} nor */{EVENTS_FILE}"
                    )
            else:
                _check_file(path)
        except OSError as e:
            raise InputError(f"cannot read {path}: {e.strerror}") from None


def require_not_input(option: str, output: Path, inputs: Iterable[Path]) -> None:
    """Check that a file to write is not one that the command reads, also by another name.

    Args:
        option: subject of the message, such as "--output".
        output: the file to write.
        inputs: files of rows, and folders. The rows beside a folder, and the journals in a folder,
            count as well.

    Raises:
        InputError: it is.
    """
    if not output.exists():
        return
    journal = output.name in (EVENTS_FILE, COMPRESSED_FILE)
    for path in inputs:
        rows = path.with_name(f"{path.name}.jsonl")
        same = any(one.exists() and output.samefile(one) for one in (path, rows))
        if same or (journal and path.resolve() in output.resolve().parents):
            raise InputError(f"{option} {output} is also an input; name another file")


def _check_file(path: Path) -> None:
    if path.name in (EVENTS_FILE, COMPRESSED_FILE):
        raise InputError(f"{path} is a journal's file: name its folder, {path.parent}")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot read {path}: it is neither a file nor a folder")
    with path.open("rb") as file:
        head = file.read(8)
    for magic, (form, what_to_do) in _BINARY.items():
        if head.startswith(magic):
            raise InputError(f"{path} is {form}: {what_to_do}")


def count_restarted(path: Path) -> int:
    """Count the journals of a run that `read_records` skips: attempts that the runner restarted.

    The runner moves them to `attempt-N`. Each can be read by its own path.
    """
    levels = ("attempt-*", "*/attempt-*", "*/*/attempt-*")
    found = (p for level in levels for p in path.glob(level) if p.name[8:].isdecimal())
    return sum(map(is_journal, found))


def read_records(paths: Sequence[Path], *, light: bool = False) -> Iterator[Record | Problem]:
    """Yield all rows of files and run directories in order; errors become a `Problem`.

    Neither a journal nor a row need fit in memory. Of a journal or a very long line, only the
    structure is in memory; values are read on access.

    Args:
        paths: the inputs.
        light: read from journals only what model calls need; skip most of the observations.
    """
    for path in paths:
        if not path.is_dir():
            yield from _rows_of_file(path)
            continue
        for folder in journal_folders(path):
            yield _row_of_journal(folder, light)


def record_index(path: Path) -> dict[str, list[Callable[[], Record | Problem]]]:
    """Index the rows of one input by task id, with a function to read each row.

    A folder gives the rows of all tries; of several lines with one id, the last. Runs that have
    not ended are included. Only the ids are in memory.
    """
    found: dict[str, list[Callable[[], Record | Problem]]] = {}
    if path.is_dir():
        for folder in journal_folders(path):
            read = partial(_row_of_journal, folder, False, unfinished=True)
            found.setdefault(_id_of_journal(folder), []).append(read)
        return found
    for line in _lines(path):
        record = _row_of_line(path, line)
        known = record.row.get("id") if isinstance(record, Record) else None
        key = f"line {line.number}" if known is None else str(known)
        found[key] = [partial(_row_at, path, line)]
    return found


def _row_at(path: Path, line: _Line) -> Record | Problem:
    with path.open("rb") as file:
        file.seek(line.at)
        text = None if line.text is None else file.read(line.length)
    return _row_of_line(path, replace(line, text=text))


def read_line(path: Path, number: int, at: int, length: int) -> Record | Problem:
    """Read the row in one line of a file; from a large one, only its structure.

    Args:
        path: of the file.
        number: of the line, for messages.
        at, length: position of the line in bytes.
    """
    try:
        text = b"" if length < _LARGE_LINE else None
        return _row_at(path, _Line(number, at, length, text))
    except OSError as e:
        return Problem(f"{path}, line {number}", f"cannot be read: {e.strerror}")


def _id_of_journal(folder: Path) -> str:
    """Return the id of a journal's task, from its first lines or else the folder's name."""
    with suppress(JournalError, KeyError, TypeError):
        for event in read_events(folder):
            if event["kind"] == EventKind.TASK:
                return str(event["data"]["id"])
            if event["kind"] == EventKind.MODEL_CALL:
                break
    return folder.resolve().name


@dataclass(frozen=True)
class _Line:
    """A non-blank line and its position in bytes; without its text if it is large."""

    number: int
    at: int
    length: int
    text: bytes | None


def _lines(path: Path) -> Iterator[_Line]:
    at = 0
    with path.open("rb") as file:
        number = 1
        while text := file.readline(_LARGE_LINE):
            length, large = len(text), len(text) == _LARGE_LINE
            while large and not text.endswith(b"\n") and (text := file.readline(_LARGE_LINE)):
                length += len(text)
            if large or text.strip():
                yield _Line(number, at, length, None if large else text)
            at += length
            number += 1


def _rows_of_file(path: Path) -> Iterator[Record | Problem]:
    number = 0
    try:
        for line in _lines(path):
            number = line.number
            yield _row_of_line(path, line)
    except OSError as e:
        yield Problem(f"{path}, line {number + 1}", f"cannot be read: {e.strerror}")


def _row_of_line(path: Path, line: _Line) -> Record | Problem:
    where = f"{path}, line {line.number}"
    if line.text is not None:
        return _parsed(where, line.text.removeprefix(_BOM) if line.number == 1 else line.text)
    file = JsonFile(path)
    bom = len(_BOM) if file.read(line.at, len(_BOM)) == _BOM else 0
    try:
        row = open_json(file, line.at + bom, line.length - bom)
        return _checked(where, row, on_disk=True)
    except NotJsonError as e:
        return Problem(where, str(e))


def _parsed(where: str, line: bytes) -> Record | Problem:
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        return Problem(where, "not UTF-8")
    except ValueError as e:
        torn = "" if line.endswith(b"\n") else " (a torn last line?)"
        return Problem(where, f"not JSON: {e}{torn}")
    except RecursionError:
        return Problem(where, "nested too deeply")
    return _checked(where, row)


def _checked(where: str, row: Any, *, on_disk: bool = False) -> Record | Problem:
    session = row.get("session") if isinstance(row, Mapping) else None
    if not isinstance(session, Mapping) or not is_list(session.get("steps")):
        return Problem(where, "not an output row: it has no session with steps")
    return Record(where, row, on_disk)


def _row_of_journal(folder: Path, light: bool, *, unfinished: bool = False) -> Record | Problem:
    facts: dict[str, dict[str, Any]] = {}
    events = read_events(folder, stored=True)
    if light:
        events = _without_large_values(events)
    try:
        sessions = sessions_from_events(_collect_row_events(events, facts), StepStore().new_session)
    except JournalError as e:
        message = str(e).removeprefix("cannot read ").removeprefix(f"{folder}")
        return Problem(str(folder), message.lstrip("/: "))
    except RecursionError:
        return Problem(str(folder), "nested too deeply")
    except OutputError:  # the local disk is full; the journal is fine
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        return Problem(str(folder), f"not a ck-pro journal: {type(e).__name__}: {e}")
    main = next(iter(sessions.values()), None)
    if main is None:
        return Problem(str(folder), "its run has not started", unfinished=True)
    ended = main.stop_reason is not None and main.status is not Status.IN_PROGRESS
    if not (ended or unfinished):
        return Problem(str(folder), "its run has not ended", unfinished=True)
    return Record(str(folder), _row(folder, main.task, main.to_dict(), facts), on_disk=True)


def _collect_row_events(
    events: Iterator[JournalEvent], facts: dict[str, dict[str, Any]]
) -> Iterator[JournalEvent]:
    """Pass the events on, and collect those about the row in `facts` (the last of each kind)."""
    for event in events:
        if event["kind"] in _ROW_EVENTS:
            facts[event["kind"]] = event["data"]
        yield event


def _without_large_values(events: Iterator[JournalEvent]) -> Iterator[JournalEvent]:
    """Drop what no model call contains: environment states, call results, most of observations.

    References to sub-agents' sessions stay.
    """
    for event in events:
        if event["kind"] in _UNUSED_BY_CALLS:
            continue
        if event["kind"] == EventKind.OBSERVATION:
            event["data"]["observation"] = _references(event["data"].get("observation"))
        yield event


def _references(observation: Any) -> Any:
    """Keep only the parts of an observation that lead to sessions."""

    if isinstance(observation, list):
        return [_references(s) for s in observation if not isinstance(s, str)]
    if not isinstance(observation, dict):
        return ""
    kept = {k: observation[k] for k in ("session", "sel_cands", "sel_idx") if k in observation}
    if "sel_cands" in kept:
        kept["sel_cands"] = _references(kept["sel_cands"])
    return kept


def _row(
    folder: Path, task: str, session: Mapping[str, Any], facts: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    row = dict(facts.get("task") or {"id": folder.resolve().name, "task": task})
    row["session"] = session
    if "eval" in facts:
        row["eval"] = facts["eval"]
    return row
