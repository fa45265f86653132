"""Messages about a whole run: the summary, invalid task lines, and lost rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ck_main.output.row import Outcome
from ck_main.runner.task_folder import UNUSABLE
from ck_main.tasks.dataset import LineProblem, safe_name
from ck_main.ui.display import printable, summary_table, totals_line
from ck_pro.journal import read_events
from ck_pro.run.resume import read_interrupted_run
from ck_pro.session.status import Status
from ck_web.browser.viewing import view_url

_SHOWN_PROBLEMS = 20
_SHOWN_ROWS = 60
_SHOWN_IDS = 5


def report_lost(screen: Console, output: Path, lost: Sequence[str]) -> None:
    """Report rows of this run that are missing from the output."""
    report_error(
        screen,
        f"{output} was removed, moved or truncated during this run: rows lost: "
        f"{_first_ids(lost)}; repeat the command to run these tasks again",
    )


def report_changed(screen: Console, tasks: Path, name: str, output: Path) -> None:
    """Report a task whose row answers a different question."""
    report_error(
        screen,
        f"{tasks}, task {name!r}: its row in {output} answers a different question; "
        "change the id, remove that row, or name another --output",
    )


def report_skipped(screen: Console, tasks: Path, skipped: Sequence[str]) -> None:
    """List the tasks that the file marks to be skipped."""
    line = f'{printable(str(tasks))}: not run, marked "skip": {printable(_first_ids(skipped))}'
    screen.print(line, markup=False, highlight=False, soft_wrap=True)


def report_missing(screen: Console, tasks: Path, missing: Sequence[str]) -> None:
    """Report tasks that were skipped because their line or file changed during the run."""
    report_error(
        screen,
        f"{tasks}, or a file that it names, changed during the run: not run: "
        f"{_first_ids(missing)}; repeat the command to run the changed tasks",
    )


def show_summary(outcomes: Sequence[Outcome], output: Path, out: Console, *, total: int) -> None:
    """Print the table, the totals (of `total` selected tasks) and the path of the rows."""
    if outcomes:
        out.print(summary_table(outcomes[:_SHOWN_ROWS], width=out.width))
    if len(outcomes) > _SHOWN_ROWS:
        out.print(f"... and {len(outcomes) - _SHOWN_ROWS} more rows")
    lines = f"{totals_line(outcomes, total)}\nrows: {output}"
    out.print(lines, markup=False, highlight=False, soft_wrap=True)


def resume_hint(status: str, folder: Path) -> str:
    """What to do about a run that waits for a person; "" for any other status.

    Args:
        status: of the run.
        folder: of its journal.
    """
    if status in (Status.HUMAN_INTERVENTION.value, Status.AMBIGUITY.value):
        hint = f"answer it with --resume {folder} --answer TEXT"
    elif status == Status.SENSITIVE_ACTION.value:
        hint = f"allow the action with --resume {folder} --approve"
    else:
        return ""
    browsers = " and ".join(kept_browsers(folder))
    return f"{hint}; its browser is at {browsers}" if browsers else hint


def kept_browsers(folder: Path) -> list[str]:
    """Return the addresses at which a person sees the browsers that a run keeps."""
    try:
        found, _ = read_interrupted_run(read_events(folder))
    except UNUSABLE:
        return []
    sessions = found.sessions.values() if found is not None else ()
    return [url for url in (view_url(one.lease) for one in sessions) if url]


def show_waiting(outcomes: Sequence[Outcome], folder: Path, screen: Console) -> None:
    """The tasks that wait for a person, the first of them, with what to do.

    Args:
        outcomes: of all tasks.
        folder: that holds the tasks' folders.
        screen: for the lines.
    """
    hints = [(o, resume_hint(o.status, folder / safe_name(o.id))) for o in outcomes]
    waiting = [f"{o.id}: {hint}" for o, hint in hints if hint]
    more = len(waiting) - _SHOWN_PROBLEMS
    for line in [*waiting[:_SHOWN_PROBLEMS], *([f"... and {more} more"] if more > 0 else [])]:
        screen.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def show_problems(problems: Sequence[LineProblem], screen: Console) -> None:
    """Report the first invalid lines of a task file."""
    for problem in problems[:_SHOWN_PROBLEMS]:
        report_error(screen, str(problem))
    if len(problems) > _SHOWN_PROBLEMS:
        more = len(problems) - _SHOWN_PROBLEMS
        report_error(screen, f"... and {more} more invalid lines")


def report_error(screen: Console, text: str) -> None:
    """Report a problem that does not stop the run, on one line."""
    line = Text(f"error: {printable(text)}", style="yellow")
    screen.print(line, soft_wrap=True)


def report_warning(screen: Console, text: str) -> None:
    """Print a warning before the run, on one line."""
    line = printable(text) if text.startswith(" ") else f"warning: {printable(text)}"
    screen.print(Text(line, style="yellow"), soft_wrap=True)


def _first_ids(ids: Sequence[str]) -> str:
    return f"{len(ids)} ({', '.join(ids[:_SHOWN_IDS])})"
