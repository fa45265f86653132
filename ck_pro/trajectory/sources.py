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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ck_pro.exceptions import InputError, JournalError
from ck_pro.journal import EVENTS_FILE, journal_folders, read_events
from ck_pro.session import AgentSession, Status, sessions_from_events

_BOM = b"\xef\xbb\xbf"
_ROW_EVENTS = ("task", "eval")


@dataclass(frozen=True)
class Record:
    """One row, and where it stands: "runs/a.jsonl, line 3" or a journal's folder; `light` if it
    is not the whole row, see `read_records`."""

    where: str
    row: dict[str, Any]
    light: bool = False


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


def check_inputs(paths: Sequence[Path]) -> None:
    """Find out before any work whether there is something to read.

    Raises:
        InputError: a path does not exist, cannot be read, or is a folder without journals.
    """
    for path in paths:
        try:
            if path.is_dir():
                if not journal_folders(path):
                    raise InputError(
                        f"{path}: no journal in it: neither {EVENTS_FILE} nor */{EVENTS_FILE}"
                    )
            else:
                path.open("rb").close()
        except OSError as e:
            raise InputError(f"cannot read {path}: {e.strerror}") from None


def read_records(paths: Sequence[Path], *, light: bool = False) -> Iterator[Record | Problem]:
    """All rows of files and run directories in order; what cannot be read becomes a `Problem`.

    Args:
        paths: what to read.
        light: rows of journals need what makes up their model calls only: prompts are then read
            from the disk as they are asked for, and what agents saw beside them is left out. A
            journal that does not fit in memory can be read so.
    """
    for path in paths:
        if not path.is_dir():
            yield from _rows_of_file(path)
            continue
        for folder in journal_folders(path):
            yield _row_of_journal(folder, light)


def record_index(path: Path) -> dict[str, Callable[[], Record | Problem]]:
    """How to read each row of one input, by the id of its task; of two lines with one id the
    last, while several tries of a task are told apart.

    Runs that have not ended are read too. Only ids are kept in memory.
    """
    found: dict[str, Callable[[], Record | Problem]] = {}
    if path.is_dir():
        for folder in journal_folders(path):
            key = _id_of_journal(folder)
            while key in found:  # tries of one task
                key = f"{key}/{folder.name}"
            found[key] = partial(_row_of_journal, folder, False, unfinished=True)
        return found
    at = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}, line {number}"
            record = _parsed(where, line.removeprefix(_BOM)) if line.strip() else None
            if record is not None:
                known = record.row.get("id") if isinstance(record, Record) else None
                key = f"line {number}" if known is None else str(known)
                found[key] = partial(_row_at, path, at, len(line), where)
            at += len(line)
    return found


def _row_at(path: Path, at: int, length: int, where: str) -> Record | Problem:
    with path.open("rb") as file:
        file.seek(at)
        return _parsed(where, file.read(length).removeprefix(_BOM))


def _id_of_journal(folder: Path) -> str:
    """The id of a journal's task: what its first lines say, or the folder's name."""
    with suppress(JournalError, KeyError, TypeError):
        for event in read_events(folder):
            if event["kind"] == "task":
                return str(event["data"]["id"])
            if event["kind"] == "model_call":
                break
    return folder.resolve().name


def _rows_of_file(path: Path) -> Iterator[Record | Problem]:
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                line = line.removeprefix(_BOM) if number == 1 else line
                if line.strip():
                    yield _parsed(f"{path}, line {number}", line)
    except OSError as e:
        yield Problem(f"{path}, line {number + 1}", f"cannot be read: {e.strerror}")


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


def _checked(where: str, row: Any) -> Record | Problem:
    session = row.get("session") if isinstance(row, dict) else None
    if not isinstance(session, dict) or not isinstance(session.get("steps"), list):
        return Problem(where, "not an output row: it has no session with steps")
    return Record(where, row)


def _row_of_journal(folder: Path, light: bool, *, unfinished: bool = False) -> Record | Problem:
    facts: dict[str, dict[str, Any]] = {}
    events = read_events(folder, stored=light)
    try:
        sessions = sessions_from_events(_aside(_lightened(events) if light else events, facts))
    except JournalError as e:
        said = str(e).removeprefix("cannot read ").removeprefix(f"{folder}")
        return Problem(str(folder), said.lstrip("/: "))
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        return Problem(str(folder), f"not a journal of ours: {type(e).__name__}: {e}")
    main = next(iter(sessions.values()), None)
    if main is None:
        return Problem(str(folder), "its run has not begun", unfinished=True)
    ended = main.stop_reason is not None and main.status is not Status.IN_PROGRESS
    if not (ended or unfinished):
        return Problem(str(folder), "its run has not ended", unfinished=True)
    return Record(str(folder), _row(folder, main, facts), light)


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
        if event["kind"] in ("world", "started", "call"):
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
    kept = {k: seen[k] for k in ("session", "sel_cands") if k in seen}
    if "sel_cands" in kept:
        kept["sel_cands"] = _references(kept["sel_cands"])
    return kept


def _row(folder: Path, main: AgentSession, facts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    row = dict(facts.get("task") or {"id": folder.resolve().name, "task": main.task})
    row["session"] = main.to_dict()
    if "eval" in facts:
        row["eval"] = facts["eval"]
    return row
