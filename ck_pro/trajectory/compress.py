"""`python -m ck_pro.trajectory.compress`: compress the journals of ended runs. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from ck_pro.command_line import AnyPath, ExitCode, run_command
from ck_pro.exceptions import InputError, JournalError
from ck_pro.journal import (
    COMPRESSED_FILE,
    EVENTS_FILE,
    WORK_FOLDER,
    Journal,
    compress_journal,
    has_ended,
)
from ck_pro.journal.packed import LEVEL, require_zstd
from ck_pro.trajectory.reading.sources import require_folder

EPILOG = """
\b
All other commands (export, replay, diff, fork, spans) read both forms, and a
resumed run decompresses its journal. The command skips journals that a process
has open, and journals of runs that have not ended.

\b
Exit codes:
  0    all ended journals are compressed
  2    the command line or a folder cannot be used
  3    some journals could not be read or written; they are unchanged
  6    an internal error; the message names the full log
  130  stopped by Ctrl-C; run the same command again to complete it
"""


@dataclass
class Totals:
    """Numbers of journals, and their bytes before and after; `kept` by reason."""

    done: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    before: int = 0
    after: int = 0


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folders", type=AnyPath(), nargs=-1, required=True)
@click.option(
    "--level",
    type=click.IntRange(1, 22),
    default=LEVEL,
    show_default=True,
    help="Compression level of zstd.",
)
@click.option("--unfinished", is_flag=True, help="Also compress runs that have not ended.")
@click.option("--undo", is_flag=True, help="Decompress the journals.")
def cli(folders: tuple[Path, ...], level: int, unfinished: bool, undo: bool) -> ExitCode:
    """Compress the journals in FOLDERS: task folders, runs, or any folder above them."""
    try:
        require_zstd()
    except JournalError as e:
        raise InputError(str(e)) from None
    found = [journal for folder in folders for journal in _journals_below(folder)]
    totals = Totals()
    for journal in found:
        try:
            _unpack(journal, totals) if undo else _pack(journal, level, unfinished, totals)
        except JournalError as e:
            totals.failed += 1
            click.echo(f"{e}; left unchanged", err=True)
    click.echo(_summary(totals))
    return ExitCode.LINES if totals.failed else ExitCode.DONE


def _journals_below(folder: Path) -> Iterator[Path]:
    """List the folders of all journals at any depth, with those of previous attempts.

    Journals in the agents' working folders are skipped.

    Raises:
        InputError: the folder has no journals.
    """
    require_folder(folder)
    names = (EVENTS_FILE, COMPRESSED_FILE)
    found = {p.parent for name in names for p in folder.rglob(name)}
    own = [f for f in sorted(found) if WORK_FOLDER not in f.relative_to(folder).parts]
    if not own:
        raise InputError(f"{folder}: no journal in it or below it")
    yield from own


def _pack(journal: Path, level: int, unfinished: bool, totals: Totals) -> None:
    if not (journal / EVENTS_FILE).exists():
        totals.kept["already compressed"] += 1
        return
    if not (unfinished or has_ended(journal)):
        totals.kept["of runs that have not ended, skipped"] += 1
        return
    before, after = compress_journal(journal, level=level)
    totals.done += 1
    totals.before += before
    totals.after += after


def _unpack(journal: Path, totals: Totals) -> None:
    if not (journal / COMPRESSED_FILE).exists():
        totals.kept["already decompressed"] += 1
        return
    totals.before += (journal / COMPRESSED_FILE).stat().st_size
    Journal(journal).close()  # opening a journal decompresses it
    totals.done += 1
    totals.after += (journal / EVENTS_FILE).stat().st_size


def _summary(totals: Totals) -> str:
    small, large = sorted((max(1, totals.before), max(1, totals.after)))
    sizes = f": {totals.before:,} bytes, now {totals.after:,} ({large / small:.1f} : 1)"
    parts = [f"{totals.done:,} journals{sizes if totals.done else ' to do'}"]
    parts += [f"{number:,} {reason}" for reason, number in totals.kept.items()]
    if totals.failed:
        parts.append(f"{totals.failed:,} failed")
    return "; ".join(parts)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
