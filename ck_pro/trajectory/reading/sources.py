"""What an export reads: files of output rows, and run directories of journals; one row at a time.

A file has one row per line (the schema of ck-pro's runs, which is CK-Pro's; what other programs
left out of a row is tolerated). A directory is either one journal (it holds `events.jsonl`, maybe
compressed) or a
run: `<run>/<task id>/events.jsonl`. Both give the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ck_pro.exceptions import InputError, JournalError, OutputError
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE, is_journal, journal_folders, read_events
from ck_pro.session import Status, sessions_from_events
from ck_pro.trajectory.reading.big_json import JsonFile, NotJsonError, is_list, open_json
from ck_pro.trajectory.reading.spill import Parking

_BOM = b"\xef\xbb\xbf"
_ROW_EVENTS = ("task", "eval")
_BINARY = {
    b"\x1f\x8b": ("compressed (gzip)", "unpack it first, with gunzip"),
    b"\x28\xb5\x2f\xfd": ("compressed (zstd)", "unpack it first, with unzstd"),
    b"\xfd7zXZ": ("compressed (xz)", "unpack it first, with unxz"),
    b"BZh": ("compressed (bzip2)", "unpack it first, with bunzip2"),
    b"PK\x03\x04": ("a zip archive", "unpack it first"),
    b"PAR1": ("Parquet", "rows are read from JSON lines only"),
}
"""How files begin that are given for files of rows by mistake."""
_LARGE_LINE = 16 * 2**20
"""Bytes from which on a line is not read as a whole."""


@dataclass(frozen=True)
class Record:
    """One row.

    Args:
        where: it stands: "runs/a.jsonl, line 3" or a journal's folder.
        row: the row.
        on_disk: prompts, and what else is long, are read when they are asked for: it should be gone
            through piece by piece.
    """

    where: str
    row: Mapping[str, Any]
    on_disk: bool = False


@dataclass(frozen=True)
class Problem:
    """Something that gave no row.

    Args:
        where: file and line, or folder.
        text: what is wrong with it.
        unfinished: it is a journal whose run has not ended: no fault, but no row either.
    """

    where: str
    text: str
    unfinished: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def unreadable(error: Exception) -> str:
    """What is wrong with a row whose faults show only when it is gone through."""
    if isinstance(error, JournalError | NotJsonError):
        return str(error)
    return f"not an output row: {error}"


def check_inputs(paths: Sequence[Path]) -> None:
    """Find out before any work whether there is something to read.

    Raises:
        InputError: a path does not exist, cannot be read, is a folder without journals, or a file
            that is no text.
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


def _check_file(path: Path) -> None:
    if path.name in (EVENTS_FILE, COMPRESSED_FILE):
        raise InputError(f"{path} is a journal's file: name its folder, {path.parent}")
    with path.open("rb") as file:
        head = file.read(8)
    for magic, (form, what_to_do) in _BINARY.items():
        if head.startswith(magic):
            raise InputError(f"{path} is {form}: {what_to_do}")


def journals_aside(path: Path) -> int:
    """How many journals of a run `read_records` passes over: attempts that the runner moved aside,
    to begin a task anew, in `attempt-N` (each can be read by its own name)."""
    levels = ("attempt-*", "*/attempt-*", "*/*/attempt-*")
    found = (p for level in levels for p in path.glob(level) if p.name[8:].isdecimal())
    return sum(map(is_journal, found))


def read_records(paths: Sequence[Path], *, light: bool = False) -> Iterator[Record | Problem]:
    """All rows of files and run directories in order; what cannot be read becomes a `Problem`.

    Args:
        paths: what to read.
        light: rows of journals need what makes up their model calls only: what agents saw beside
            their prompts is then left out.

    Neither a journal nor a row need fit in memory: of a journal, and of a line of many megabytes,
    there is only the structure, and the rest is read when it is asked for.
    """
    for path in paths:
        if not path.is_dir():
            yield from _rows_of_file(path)
            continue
        for folder in journal_folders(path):
            yield _row_of_journal(folder, light)


def record_index(path: Path) -> dict[str, list[Callable[[], Record | Problem]]]:
    """How to read each row of one input, by the id of its task: of a folder the rows of all tries,
    of several lines with one id the last.

    Runs that have not ended are read too. Only ids are kept in memory.
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


def _id_of_journal(folder: Path) -> str:
    """The id of a journal's task: what its first lines say, or the folder's name."""
    with suppress(JournalError, KeyError, TypeError):
        for event in read_events(folder):
            if event["kind"] == "task":
                return str(event["data"]["id"])
            if event["kind"] == "model_call":
                break
    return folder.resolve().name


@dataclass(frozen=True)
class _Line:
    """A line that is not blank, and its place in bytes; without its text if it is large."""

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
        events = _lightened(events)
    try:
        sessions = sessions_from_events(_aside(events, facts), Parking().new_session)
    except JournalError as e:
        said = str(e).removeprefix("cannot read ").removeprefix(f"{folder}")
        return Problem(str(folder), said.lstrip("/: "))
    except RecursionError:
        return Problem(str(folder), "nested too deeply")
    except OutputError:  # it is our disk that is full, and no fault of the journal
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        return Problem(str(folder), f"not a journal of ours: {type(e).__name__}: {e}")
    main = next(iter(sessions.values()), None)
    if main is None:
        return Problem(str(folder), "its run has not begun", unfinished=True)
    ended = main.stop_reason is not None and main.status is not Status.IN_PROGRESS
    if not (ended or unfinished):
        return Problem(str(folder), "its run has not ended", unfinished=True)
    return Record(str(folder), _row(folder, main.task, main.to_dict(), facts), on_disk=True)


def _aside(
    events: Iterator[dict[str, Any]], facts: dict[str, dict[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """The events, those of the row itself put into `facts` on the way (the last of a kind)."""
    for event in events:
        if event["kind"] in _ROW_EVENTS:
            facts[event["kind"]] = event["data"]
        yield event


def _lightened(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events without what a model call is not made of: observations (but for references to
    sub-agents' sessions), states of the world, results of calls."""
    for event in events:
        if event["kind"] in ("world", "started", "call", "screen"):
            continue
        if event["kind"] == "observation":
            event["data"]["observation"] = _references(event["data"].get("observation"))
        yield event


def _references(seen: Any) -> Any:
    """What of an observation leads to sessions."""
    if isinstance(seen, list):
        return [_references(s) for s in seen if not isinstance(s, str)]
    if not isinstance(seen, dict):
        return ""
    kept = {k: seen[k] for k in ("session", "sel_cands", "sel_idx") if k in seen}
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
