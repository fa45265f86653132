"""`python -m ck_pro.trajectory.fork`: start a new run from a step of an old one. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ck_pro.command_line import AnyPath, ExitCode, id_text, run_command
from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.journal_events import FilesData, ForkedData
from ck_pro.exceptions import ConfigError, InputError, JournalError, OutputError
from ck_pro.journal import (
    WORK_FOLDER,
    BlobReader,
    Journal,
    is_journal,
    journal_folders,
    read_events,
)
from ck_pro.journal.snapshots import files_after, restore_files
from ck_pro.model.backends.targets import check_target
from ck_pro.trajectory.reading.sources import require_folder

EPILOG = """
\b
NEW gets two things from the old run: its journal up to the start of STEP of the
main agent (with the sub-agents of earlier steps), and its working folder as it
was then. Files that cannot be restored are listed. Without snapshots
(snapshot_mb=0), NEW gets the current working folder. The command runs nothing.
To resume, make NEW the task's folder in a new run, and start that run (its
option --fork does both):

\b
  python -m ck_pro.trajectory.fork runs/a/task0007 --at 3 --to runs/b/task0007
  python -m ck_main.main -i tasks.jsonl --ids task0007 -o runs/b.jsonl -m gpt:NAME

\b
With --reply, the agent uses the text in FILE as the model's reply of that step.
Later steps call the model.

\b
Exit codes:
  0    NEW is written
  2    the command line or the old run cannot be used
  4    NEW cannot be written, or exists already; partial files were removed
  6    an internal error; the message names the full log
  130  stopped by Ctrl-C; partial files were removed
"""


_MOST_SHOWN = 20


@dataclass(frozen=True)
class Fork:
    """A written fork.

    Args:
        folder: folder of the new journal.
        task_id: id of the task; "" if the journal does not have it.
        steps: number of steps of the old run's main session.
        events: number of events copied.
        files: number of files copied from the working folder.
        task_folder: name that the runner expects for the task's folder.
        lost: paths of files that could not be restored or copied.
        as_now: whether the current working folder was copied, because that step has no snapshot.
    """

    folder: Path
    task_id: str
    steps: int
    events: int
    files: int
    task_folder: str
    lost: tuple[str, ...] = ()
    as_now: bool = False


def events_before(events: Iterable[JournalEvent], step: int) -> Iterator[JournalEvent]:
    """Yield the events of a run up to the start of a step of its main session. Pure.

    Raises:
        InputError: the main session has no such step.
    """
    main, steps = "", 0
    for event in events:
        if event["kind"] == EventKind.SESSION and event["parent"] is None and not main:
            main = event["sid"]
        if event["kind"] == EventKind.STEP and event["sid"] == main:
            if event["i"] == step:
                return
            steps += 1
        yield event
    known = f"steps 0 to {steps - 1}" if steps else "no steps"
    raise InputError(f"there is no step {step}: its main session has {known}")


def fork_run(
    origin: Path, at: int, to: Path, *, reply: str | None = None, work: bool = True
) -> Fork:
    """Write a journal that resumes another run at a given step.

    Args:
        origin: folder of the old journal, which may be compressed; it does not change.
        at: the step of its main session.
        to: folder of the new journal; it must be empty or not exist.
        reply: text to use as the model's reply of that step.
        work: whether to copy the working folder.

    Raises:
        InputError: the old run has no such step, or cannot be read.
        OutputError: the new journal cannot be written; partial files are removed.
    """
    _check_origin(origin)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise OutputError(f"{to} exists already; name another folder")
    partial = to.with_name(f".{to.name}.partial")
    parent = None if to.parent.exists() else to.parent
    try:
        _discard(partial)  # left by a fork that was killed
        partial.mkdir(parents=True)
        made = _write(origin, at, partial, reply)
        if work:
            made = _restore_work(made, origin, partial)
        partial.replace(to)
    except OSError as e:
        raise OutputError(f"cannot write {to}: {e.strerror or e}") from None
    except JournalError as e:
        raise OutputError(str(e)) from None
    except (KeyError, TypeError, AttributeError) as e:
        raise InputError(f"{origin}: not a ck-pro journal: {e!r}") from None
    finally:
        _discard(partial)
        if parent is not None:
            with suppress(OSError):  # not empty after success
                parent.rmdir()
    return replace(made, folder=to)


def _check_origin(origin: Path) -> None:
    require_folder(origin)
    if is_journal(origin):
        return
    found = journal_folders(origin)
    hint = f"; name one of its journals, such as {found[0]}" if found else ""
    raise InputError(f"{origin}: no journal in it{hint}")


def _write(origin: Path, at: int, to: Path, reply: str | None) -> Fork:
    """Write the copied events with a `Journal`, so that the result is an ordinary journal."""
    whole = [(e["kind"], e["sid"], e["parent"]) for e in _recorded(origin, stored=True)]
    main = next(
        (sid for kind, sid, above in whole if kind == EventKind.SESSION and above is None), ""
    )
    steps = sum(kind == EventKind.STEP and sid == main for kind, sid, _ in whole)
    now, count, task_id = 0.0, 0, ""
    with Journal(to, fsync="step", clock=lambda: now) as journal:
        for event in events_before(_recorded(origin), at):
            now = event["time"]
            journal.copy(event)
            count += 1
            if event["kind"] == EventKind.FILES:
                _copy_blobs(event["data"], origin, journal)
            if event["kind"] == EventKind.TASK:
                task_id = str(event["data"].get("id", ""))
        data = ForkedData(origin=str(origin.resolve()), at=at)
        if reply is not None:
            data["reply"] = reply
        journal.append(EventKind.FORKED, sid=main, i=at, data=data)
    return Fork(to, task_id, steps, count, 0, task_folder_of(origin))


def _copy_blobs(data: FilesData, origin: Path, journal: Journal) -> None:
    blobs = BlobReader(origin)
    for facts in data.get("changed", {}).values():
        content = blobs.read(facts["blob"]) if "blob" in facts else None
        if content is not None:
            journal.put_blob(content, facts["blob"].split(".", 1)[1])


def _recorded(origin: Path, *, stored: bool = False) -> Iterator[JournalEvent]:
    """Yield the events of the old run; a read error is an `InputError`."""
    try:
        yield from read_events(origin, stored=stored)
    except JournalError as e:
        raise InputError(str(e)) from None


def task_folder_of(origin: Path) -> str:
    """Return the name of a task's folder, given the folder itself or a try or attempt in it."""
    folder = origin.resolve()
    inner = re.fullmatch(r"(try|attempt)-\d+", folder.name) is not None
    return folder.parent.name if inner else folder.name


def _restore_work(made: Fork, origin: Path, to: Path) -> Fork:
    files = files_after(read_events(to, stored=True))
    if files is None:
        count, lost = _copy_work(origin, to)
        return replace(made, files=count, lost=tuple(lost), as_now=count > 0 or bool(lost))
    now = origin / WORK_FOLDER
    if not files and not now.is_dir():
        return made
    (to / WORK_FOLDER).mkdir()
    lost = restore_files(files, to / WORK_FOLDER, BlobReader(to).read, now)
    return replace(made, files=len(files) - len(lost), lost=tuple(lost))


def _copy_work(origin: Path, to: Path) -> tuple[int, list[str]]:
    """Copy the current working folder.

    Returns:
        The number of copied files, and the paths of those that cannot be read or are neither
        files, folders nor links.

    Raises:
        OutputError: the copy cannot be written.
    """
    source = origin / WORK_FOLDER
    if not source.is_dir():
        return 0, []
    skipped: list[str] = []

    def skip(folder: str, names: list[str]) -> list[str]:
        bad = [name for name in names if not _can_copy(Path(folder, name))]
        skipped.extend(str(Path(folder, name).relative_to(source)) for name in bad)
        return bad

    try:
        shutil.copytree(source, to / WORK_FOLDER, symlinks=True, ignore=skip)
    except shutil.Error as e:
        raise OutputError(f"cannot copy {source}: {e.args[0][0][2]}") from None
    return sum(p.is_file() for p in (to / WORK_FOLDER).rglob("*")), sorted(skipped)


def _can_copy(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode):
        return True
    if stat.S_ISDIR(mode):
        return os.access(path, os.R_OK | os.X_OK)
    return stat.S_ISREG(mode) and os.access(path, os.R_OK)


def _discard(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("task_folder", type=AnyPath())
@click.option(
    "--at", type=click.IntRange(min=0), required=True, metavar="STEP", help="Step, from 0."
)
@click.option("--to", type=AnyPath(), required=True, metavar="NEW")
@click.option("--reply", type=AnyPath(), metavar="FILE", help="File with an edited reply.")
@click.option("-m", "--model", metavar="TARGET", help="Model in the printed resume command.")
@click.option("--no-work", is_flag=True, help="Do not copy the working folder.")
def cli(
    task_folder: Path, at: int, to: Path, reply: Path | None, model: str | None, no_work: bool
) -> ExitCode:
    """Start the run NEW with the steps of TASK_FOLDER before STEP."""
    if model is not None:
        try:
            check_target(model)
        except ConfigError as e:
            raise InputError(str(e)) from None
    text = None if reply is None else read_reply(reply)
    made = fork_run(task_folder, at, to, reply=text, work=not no_work)
    for line in report_lines(made, at, model, edited=text is not None):
        click.echo(line)
    return ExitCode.DONE


def read_reply(path: Path) -> str:
    """Read the edited reply from a file.

    Raises:
        InputError: it cannot be read, or is empty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
        raise InputError(f"cannot read the reply {path}: {reason}") from None
    if not text.strip():
        raise InputError(f"the reply {path} is empty")
    return text


def report_lines(made: Fork, at: int, model: str | None, *, edited: bool) -> list[str]:
    """Say what was written, and how to resume."""
    files = f", {made.files} files of its working folder" if made.files else ""
    first = "your reply" if edited else "a new reply"
    folder = made.folder.resolve()
    output = Path(f"{folder.parent}.jsonl")
    if not made.folder.is_absolute():
        output = Path(os.path.relpath(output))
    command = ["python", "-m", "ck_main.main", "-i", "TASKS"]
    command += ["--ids", id_text(made.task_id or made.folder.name), "-o", str(output)]
    command += ["-m", model or "MODEL"]
    lines = [
        f"{made.folder}: {made.events} events{files}; next is step {at} of {made.steps}, "
        f"with {first}",
        *file_lines(made, at),
        f"resume: {shlex.join(command)}",
    ]
    if folder.name != made.task_folder:
        lines.insert(1, f"rename it to {made.task_folder}, the name that the runner expects")
    return lines


def file_lines(made: Fork, at: int) -> list[str]:
    """Say which files differ from those at the start of the step."""
    lines = []
    if made.as_now:
        lines = [f"no snapshot of step {at}: copied the current working folder instead"]
    if made.lost:
        shown = ", ".join(map(repr, made.lost[:_MOST_SHOWN]))
        more = len(made.lost) - _MOST_SHOWN
        verb = "copied" if made.as_now else "restored"
        lines.append(f"not {verb}: {shown}" + (f" and {more} more" if more > 0 else ""))
    return lines


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
