"""`python -m ck_main.share`: share one run. See `--help` and docs/viewer.md."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ck_main.sharing.animation import MAX_FRAMES, gif_of, limited
from ck_main.sharing.drawing import require_pillow
from ck_main.sharing.frames import Frame, frames_of, with_answer
from ck_main.sharing.markdown import summary_of
from ck_main.sharing.page_data import PageData
from ck_main.sharing.selection import select_run
from ck_main.sharing.video import webm_of
from ck_main.viewer.bundle import page_html
from ck_main.viewer.run_labels import labels_of_run
from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.run_reader import RunReader
from ck_pro.command_line import AnyPath, ExitCode, run_command, without_controls
from ck_pro.exceptions import InputError, OutputError
from ck_pro.trajectory.exporting.writers import require_no_device
from ck_pro.trajectory.labels import CurrentLabels, Label
from ck_pro.trajectory.reading.sources import require_not_input

EPILOG = """
\b
Examples:
  python -m ck_main.share runs/demo.jsonl --task order-form --html order.html
  python -m ck_main.share runs/demo/order-form --gif order.gif --markdown order.md

\b
A GIF or a video needs pictures: run the task with --pictures. Secrets in environment variables are
masked, as in journals. Look at a file before you publish it: it has all texts of the run.

\b
Exit codes:
  0    the files were written
  2    the command line, the run or a file cannot be used
  4    a file exists already, or cannot be written
  5    Chromium did not encode the video
  6    an internal error; the message names the full log
"""
_FILE = AnyPath()
_SHOWN_PROBLEMS = 20


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", type=_FILE)
@click.option("--task", metavar="ID", help="The task, if RUN has several.")
@click.option("--try", "number", metavar="N", help="Share this try.  [the one of the result]")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a web page with the whole run.")
@click.option("--gif", type=_FILE, metavar="FILE", help="Write the browser steps as pictures.")
@click.option(
    "--webm", type=_FILE, metavar="FILE", help="Write the browser steps as a video (with Chromium)."
)
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write a summary in Markdown.")
@click.option("--no-prompts", is_flag=True, help="Leave prompts and replies out of the web page.")
@click.option(
    "--labels",
    type=_FILE,
    metavar="FILE",
    help="Show the labels of this file in the web page, with comments and corrections.",
)
@click.option(
    "--max-mb",
    type=click.IntRange(1, 2000),
    default=50,
    show_default=True,
    metavar="N",
    help="Limit for the size of the web page.",
)
@click.option("--force", is_flag=True, help="Replace files that exist.")
def cli(
    run: Path,
    task: str | None,
    number: str | None,
    html: Path | None,
    gif: Path | None,
    webm: Path | None,
    markdown: Path | None,
    no_prompts: bool,
    labels: Path | None,
    max_mb: int,
    force: bool,
) -> ExitCode:
    """Share one run of RUN: an output (runs/a.jsonl), its folder, or the folder of a task."""
    if not (html or gif or webm or markdown):
        raise click.UsageError("give at least one of --html, --gif, --webm and --markdown")
    inputs = [run, labels] if labels else [run]
    _check_files([file for file in (html, gif, webm, markdown) if file], inputs, force)
    known = _labels_in(labels) if labels else None
    library, entry = select_run(run, task, number)
    with library.opened(entry) as reader:
        if html:
            shown = None if known is None else labels_of_run(known, reader, entry)
            _write(html, lambda: _page(reader, entry, max_mb, not no_prompts, shown))
        if gif or webm:
            require_pillow()
            frames = _frames(reader, entry.task_id)
            if gif:
                _write(gif, lambda: gif_of(frames))
            if webm:
                _write(webm, lambda: webm_of(frames))
        if markdown:
            image = os.path.relpath(gif, markdown.parent) if gif else ""
            _write(markdown, lambda: summary_of(reader, image).encode())
    return ExitCode.DONE


def _check_files(files: list[Path], inputs: list[Path], force: bool) -> None:
    """Check the output files before any work.

    Raises:
        OutputError: one exists, or is not a regular file.
        InputError: one is an input.
    """
    for n, path in enumerate(files):
        require_no_device(path)
        if path in files[:n]:
            raise OutputError(f"{path} is given twice; name a file for each form")
        if path.is_dir():
            raise OutputError(f"{path} is a folder; name a file")
        require_not_input("output", path, inputs)
        if path.exists() and not force:
            raise OutputError(f"{path} exists already; give --force to replace it")


def _page(
    reader: RunReader, entry: Entry, max_mb: int, prompts: bool, labels: dict[str, Any] | None
) -> bytes:
    data = PageData(
        reader,
        entry.key,
        task_id=entry.task_id,
        limit=max_mb * 1_000_000,
        prompts=prompts,
        labels=labels,
    )
    return page_html(data.to_json(), data.title).encode("utf-8", "replace")


def _labels_in(path: Path) -> list[Label]:
    """Return the labels of a file; report lines that are not labels.

    Raises:
        InputError: it cannot be read.
    """
    if not path.is_file():
        raise InputError(f"cannot read the labels {path}: there is no such file")
    found = CurrentLabels(path)
    found.refresh()
    for problem in found.all_problems()[:_SHOWN_PROBLEMS]:
        click.echo(f"{without_controls(str(problem))} (skipped)", err=True)
    return list(found.labels.values())


def _frames(reader: RunReader, task_id: str) -> list[Frame]:
    """Return the frames of a run.

    Raises:
        InputError: it has no pictures.
    """
    frames = frames_of(reader)
    if not frames:
        raise InputError(
            f"the run of task {task_id!r} has no pictures of its browser; run it with --pictures"
        )
    main = reader.outline.main
    answer = str(main.results.get("output") or "") if main is not None else ""
    if len(frames) >= MAX_FRAMES:
        click.echo(f"only {MAX_FRAMES} of {len(frames)} pictures are used", err=True)
    return limited(with_answer(frames, answer))


def _write(path: Path, make: Callable[[], bytes]) -> None:
    """Write a file when its content is complete, and print its name and size.

    Raises:
        OutputError: it cannot be written.
    """
    content = make()
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as e:
        partial.unlink(missing_ok=True)
        raise OutputError(f"cannot write {path}: {e.strerror}") from None
    click.echo(f"{path}: {len(content):,} bytes")


def main(args: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
