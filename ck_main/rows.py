"""Output rows: what a row holds, and the file that rows are appended to and never lost from.

A row is one JSON line: `id, task, file, answer, _orig, skip_hard, session, eval{pred, gold, corr}`.
It is made of two things that are both in the task's journal, the event `task` and the session, so
that it can be made again from the journal alone, to the byte: see `row_from_events`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ck_main.dataset import Task
from ck_main.scoring import evaluate
from ck_pro.exceptions import InputError, JournalError
from ck_pro.session import AgentSession, sessions_from_events

TASK_EVENT = "task"
EVAL_EVENT = "eval"
"""In a journal: its row is complete."""
WRITTEN_EVENT = "row"
"""In a journal: its row was written to the output."""


class OutputError(InputError):
    """The output cannot be written, or is no file of rows. The message says what to do."""


def folder_of(output: Path) -> Path:
    """Where the folders of an output's tasks are: beside it, its name without the ending."""
    stem = output.with_suffix("")
    return stem if stem != output else output.with_name(output.name + ".d")


def check_output(path: Path) -> None:
    """Find out whether a file can be an output, as far as is known without opening it.

    Raises:
        OutputError: it cannot; the message says why, and what to do.
    """
    blocked = next((p for p in path.parents if p.exists() and not p.is_dir()), None)
    if blocked is not None:
        raise OutputError(f"--output {path}: {blocked} is a file, not a folder; name another")
    if path.exists() and not path.is_file():
        raise OutputError(f"--output {path} is not a regular file; name another")
    folder = folder_of(path)
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            f"--output {path}: the tasks' files go into the folder {folder}, but a file of that "
            "name is there; move it, or name another --output"
        )


def task_facts(task: Task) -> dict[str, Any]:
    """What a row says of the task itself: the data of the journal's `task` event."""
    return {
        "id": task.id,
        "task": task.question,
        "file": task.file_name,
        "answer": task.answer,
        "_orig": task.original,
        "skip_hard": bool(task.original.get("skip_hard", False)),
    }


def build_row(
    facts: Mapping[str, Any], session: AgentSession, judged: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The row of a task that ended.

    Args:
        facts: the data of its `task` event.
        session: its main agent's session.
        judged: what `eval` holds beside prediction, right answer and score.
    """
    results = session.final_results or {"output": ""}
    scored = {**evaluate(results["output"], facts["answer"]), **(judged or {})}
    return {**facts, "session": session.to_dict(), "eval": scored}


def row_from_events(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The row of a journal, as `ck_pro.journal.read_events` gives its events.

    Raises:
        JournalError: the journal does not tell of a task.
    """
    return _folded(list(events))


def row_of(events: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The same, if the journal says that the row is complete and does not say it was written."""
    kept = list(events)
    kinds = {e["kind"] for e in kept}
    return _folded(kept) if EVAL_EVENT in kinds and WRITTEN_EVENT not in kinds else None


def _folded(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = {e["kind"]: e["data"] for e in events if e["kind"] in (TASK_EVENT, EVAL_EVENT)}
    if TASK_EVENT not in known:
        raise JournalError("the journal does not tell of a task")
    session = next(iter(sessions_from_events(events).values()))
    return build_row(known[TASK_EVENT], session, known.get(EVAL_EVENT))


def row_line(row: Mapping[str, Any]) -> bytes:
    """A row as it stands in the output, its newline included."""
    try:
        return (json.dumps(row, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a model wrote half of a surrogate pair: only escapes can hold it
        return (json.dumps(row) + "\n").encode()


@dataclass(frozen=True)
class Outcome:
    """How a task ended, for tables and exit codes.

    Args:
        steps: steps of all agents together, in all tries of which the row tells.
        seconds: wall time of them.
        tokens: prompt and completion tokens of all their calls.
        corr: 1, 0, or None where no right answer is known.
        money: USD; None when not known.
        earlier: the row was in the output before this run.
        tries: how many tries of the task were made.
    """

    id: str
    question: str
    answer: str
    gold: str | None
    corr: int | None
    status: str
    stop_reason: str | None
    message: str
    steps: int
    seconds: float
    tokens: int
    money: float | None = None
    earlier: bool = False
    tries: int = 1

    @classmethod
    def of_row(
        cls, row: Mapping[str, Any], *, money: float | None = None, earlier: bool = False
    ) -> Outcome:
        """Read off a row. Raises KeyError, TypeError or AttributeError if it is not one."""
        info, scored = row["session"]["info"], row["eval"]
        tries = row.get("sel_cands") or [
            {
                "steps": count_steps(row["session"]),
                "seconds": info.get("duration", 0.0),
                "tokens": tokens_of(row["session"]),
            }
        ]
        return cls(
            id=str(row["id"]),
            question=row["task"],
            answer=scored["pred"],
            gold=scored["gold"],
            corr=scored["corr"],
            status=info["status"],
            stop_reason=info.get("stop_reason"),
            message=info.get("message", ""),
            steps=sum(int(t["steps"]) for t in tries),
            seconds=sum(float(t["seconds"]) for t in tries),
            tokens=sum(int(t["tokens"]) for t in tries),
            money=money,
            earlier=earlier,
            tries=len(tries),
        )


def count_steps(session: Mapping[str, Any]) -> int:
    """Steps of a row's session and of all sessions below it."""
    nested = (sub for s in session["steps"] for sub in s["action"].get("sub_sessions", ()))
    return len(session["steps"]) + sum(count_steps(sub) for sub in nested)


def tokens_of(session: Mapping[str, Any]) -> int:
    """Prompt and completion tokens of a row's session and of all sessions below it."""
    return int(session["info"]["call_stat"]["__ALL__"]["total_tokens"])


class RowFile:
    """The output file: read for what is done, appended to, never truncated.

    A row is written with one call and forced to the disk before `append` returns. A torn last
    line (its writer was killed) moves to `<file>.torn`, so that the next row begins a line.
    Several processes may append to one file.

    Args:
        path: the file; made, with its folder, when missing.

    Raises:
        OutputError: it cannot be written, or holds something else than rows.
    """

    def __init__(self, path: Path):
        self.path = path
        self.repaired = 0
        """Bytes of torn lines that were moved to `<file>.torn`."""
        self.done: dict[str, Outcome] = {}
        """Outcome by task id of every row in the file."""
        self._read_to, self._lines = 0, 0
        self._lock = threading.Lock()
        try:
            check_output(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as e:
            raise self._unwritable(e) from None
        try:
            with self._locked():
                self._read()
                self._repair()
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def folder(self) -> Path:
        """Where the tasks' own folders are: the file's name without its ending."""
        return folder_of(self.path)

    def has(self, task_id: str) -> bool:
        """Whether the file has this task's row by now, written by whomever."""
        self.refresh()
        return task_id in self.done

    def refresh(self) -> None:
        """Take in the rows that other processes have added."""
        with self._locked():
            self._read()

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row.

        Raises:
            OutputError: it could not be written; the file is as it was before.
        """
        line = row_line(row)
        with self._locked():
            self._read()
            self._repair()
            before = os.fstat(self._fd).st_size
            try:
                done = 0
                while done < len(line):
                    done += os.write(self._fd, line[done:])
                os.fsync(self._fd)
            except OSError as e:
                os.ftruncate(self._fd, before)  # only what this call wrote
                raise self._unwritable(e) from None
            self._read()

    def close(self) -> None:
        """Release the file; harmless when repeated."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among the threads of this process and among processes."""
        with self._lock:
            if self._fd < 0:  # a thread that an interrupted run left behind
                raise OutputError(f"the output {self.path} is closed")
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _read(self) -> None:
        """Take in the whole lines since the last reading."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read_to)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._lines += 1
                    self._take(line)
                    self._read_to += len(line)
        except OSError as e:
            raise self._unwritable(e) from None

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            outcome = Outcome.of_row(json.loads(line), earlier=True)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise OutputError(
                f"--output {self.path}, line {self._lines}: is not an output row; name another "
                "file, or remove the line"
            ) from None
        self.done[outcome.id] = outcome

    def _repair(self) -> None:
        """Move a torn last line away; a whole row that only lacks its newline gets it."""
        size = os.fstat(self._fd).st_size
        if size <= self._read_to:
            return
        try:
            tail = os.pread(self._fd, size - self._read_to, self._read_to)
            if _is_row(tail):
                os.write(self._fd, b"\n")
                self._read()
                return
            with self.path.with_name(self.path.name + ".torn").open("ab") as torn:
                torn.write(tail + b"\n")
            os.ftruncate(self._fd, self._read_to)
        except OSError as e:
            raise self._unwritable(e) from None
        self.repaired += len(tail)

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(
            f"cannot write the output {self.path}: {error.strerror}; what is in it stays: "
            + what_to_do(error)
        )


def what_to_do(error: OSError) -> str:
    """What a person can do about a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "make room, the same command continues"
    return "correct that (the same command continues), or name another --output"


def _is_row(line: bytes) -> bool:
    try:
        Outcome.of_row(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return True
