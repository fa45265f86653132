"""Display a run: a live table on a terminal, one line per task elsewhere."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ck_main.output.row import Outcome, verdict_of
from ck_main.tasks.dataset import Task
from ck_pro.events.progress_events import ProgressEvent, ProgressKind

_SHOWN_RUNNING = 20
_NARROW = 60
"""Minimum terminal width, in columns, for numbers beside answers."""
_SCORES = {"right": "right", "wrong": "WRONG", "unscored": "not scored"}
_STYLES = {"right": "green", "wrong": "red", "unscored": ""}
_SHOWN = (
    ProgressKind.STEP_STARTED,
    ProgressKind.CALL_STARTED,
    ProgressKind.STEP_ENDED,
    ProgressKind.MODEL_WAITS,
    ProgressKind.MESSAGE,
)
"""Kinds of events to display with `steps`."""
_CONTROL_CODES = (*range(0x20), *range(0x7F, 0xA0))
_INVISIBLE = (
    *(0x061C, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xE0000, 0xE0080),
)
"""Characters that reorder or hide text: bidirectional controls, separators, zero-width spaces and
tags. Joiners are kept, because scripts and emoji need them."""


@dataclass
class _Running:
    """The state of a task in progress."""

    question: str
    started: float
    path: tuple[str, ...] = ()
    step: int = 0
    tokens: int = 0
    money: float = 0.0
    activity: str = ""

    def update(self, event: ProgressEvent) -> None:
        self.path, self.step = tuple(event["path"]), max(0, event["step"])
        self.tokens, self.money = event["tokens"], event["money"]
        if event["kind"] == ProgressKind.MODEL_STARTED:
            self.activity = f"calls the model ({event['phase']})"
        else:
            self.activity = " ".join(str(event.get("text") or event.get("phase") or "").split())


class PlainDisplay:
    """Print one line per finished task; with `steps`, also one line per agent event.

    Args:
        console: console to write to.
        steps: print every step of the agents.
        total: total number of tasks, if known.
    """

    def __init__(self, console: Console, *, steps: bool = False, total: int | None = None):
        self.console, self.steps, self.total = console, steps, total
        self._ended = 0
        self._lock = threading.Lock()

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        return None

    def started(self, task: Task) -> None:
        """Print a task that starts, with `steps`."""
        if self.steps:
            self._line(Text(f"{printable(task.id)}: {_truncate(task.question, 200)}", style="bold"))

    def event(self, task_id: str, event: ProgressEvent) -> None:
        """Print an event of a task: each step with `steps`, and each try that ended."""
        if self.steps and event["kind"] in _SHOWN:
            self._line(step_line(event))
        elif event["kind"] == ProgressKind.TRY_ENDED:
            number = f"try {event['number']} of {event['tries']}"
            self._line(Text(f"{printable(task_id)}, {number}: {try_line(event['row']['eval'])}"))

    def ended(self, outcome: Outcome) -> None:
        """Print the outcome of a task."""
        with self._lock:
            self._ended += 1
            count = f"[{self._ended}/{self.total}] " if self.total else ""
        self._line(Text(count + outcome_line(outcome)))

    def note(self, text: str) -> None:
        """Print one line."""
        self._line(Text(printable(text), style="yellow"))

    def _line(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True)


class LiveDisplay(PlainDisplay):
    """A live table of the tasks in progress, below the lines of finished tasks."""

    def __init__(
        self,
        console: Console,
        *,
        total: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(console, total=total)
        self._running: dict[str, _Running] = {}
        self._clock = clock
        self._live = Live(
            get_renderable=self.render, console=console, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def started(self, task: Task) -> None:
        """Add a task to the table."""
        with self._lock:
            self._running[task.id] = _Running(task.question, self._clock())

    def event(self, task_id: str, event: ProgressEvent) -> None:
        """Update a task in the table."""
        with self._lock:
            if task_id in self._running:
                self._running[task_id].update(event)
        if event["kind"] == ProgressKind.TRY_ENDED:
            super().event(task_id, event)

    def ended(self, outcome: Outcome) -> None:
        """Remove a task from the table and print its outcome."""
        with self._lock:
            self._running.pop(outcome.id, None)
        super().ended(outcome)

    def render(self) -> Group:
        """Build the current table."""
        with self._lock:
            running = list(self._running.items())
            ended = self._ended
        table = Table(box=None, pad_edge=False, expand=False)
        for name in ("task", "agent", "step", "tokens", "USD", "time", "activity"):
            right = name in ("step", "tokens", "USD", "time")
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        now = self._clock()
        for task_id, task in running[:_SHOWN_RUNNING]:
            table.add_row(
                escape(_truncate(task_id, 24)),
                escape(printable(" > ".join(task.path))),
                str(task.step),
                f"{task.tokens:,}",
                f"{task.money:.3f}",
                format_duration(now - task.started),
                escape(_truncate(task.activity, 40)),
            )
        of = f" of {self.total}" if self.total else ""
        head = Text(f"{ended}{of} done, {len(running)} running", style="bold")
        return Group(head, table)


def make_display(
    console: Console, *, steps: bool = False, plain: bool = False, total: int | None = None
) -> PlainDisplay:
    """Create a live display on a terminal, else (or with `plain` or `steps`) a plain one."""
    if console.is_terminal and not plain and not steps:
        return LiveDisplay(console, total=total)
    return PlainDisplay(console, steps=steps, total=total)


def step_line(event: ProgressEvent) -> Text:
    """Format an agent's event as one line, indented by the agent's depth."""
    path = event["path"]
    text = _truncate(str(event.get("text") or ""), 160)
    indent = "  " * len(path)
    if event["kind"] == ProgressKind.STEP_STARTED:
        used = f"{event['tokens']:,} tokens"
        return Text(f"{indent}{printable(path[-1])} step {event['step']} ({used})", style="cyan")
    if event["kind"] == ProgressKind.MODEL_WAITS:
        return Text(f"{indent}  {text}", style="yellow")
    if event["kind"] == ProgressKind.CALL_STARTED:
        return Text(f"{indent}  calls {text}")
    if event["kind"] == ProgressKind.MESSAGE:
        return Text(f"{indent}  {printable(path[-1])} says: {text}", style="bold")
    return Text(f"{indent}  {text}")


def try_line(scored: Mapping[str, Any]) -> str:
    """Format a try that ended as one line: answer, score and verdict."""
    verdicts = [_score_text(scored["corr"])]
    if "judge" in scored:
        verdicts.append(f"judged {'right' if scored['judge'] else 'wrong'}")
    return f"{_truncate(scored['pred'], 80)!r} ({', '.join(verdicts)})"


def _score_text(corr: float | None) -> str:
    partly = corr is not None and 0 < corr < 1
    return f"score {corr:.3g}" if partly else _SCORES[verdict_of(corr)]


def outcome_line(outcome: Outcome) -> str:
    """Format a task that ended as one line."""
    score = _score_text(outcome.corr)
    used = f"{_counted(outcome.steps, 'step')}, {outcome.seconds:.1f} s, {outcome.tokens:,} tokens"
    if outcome.tries > 1:
        used = f"{outcome.tries} tries, {used}"
    reason = (
        f": {_truncate(outcome.message, 160)}" if outcome.message and not outcome.is_done else ""
    )
    answer = _truncate(outcome.answer, 80)
    return f"{printable(outcome.id)}: {answer!r} ({score}; {used}; {_status(outcome)}{reason})"


def summary_table(outcomes: Sequence[Outcome], *, width: int = 80) -> Table:
    """Build the table of all tasks; a `width` below 60 omits steps, seconds and tokens."""
    numbers = ("steps", "seconds", "tokens") if width >= _NARROW else ()
    table = Table(title=None, header_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("answer", overflow="fold", max_width=44)
    table.add_column("score", justify="center")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status", overflow="fold")
    for outcome in outcomes:
        style = _STYLES[verdict_of(outcome.corr)]
        shown = "-" if outcome.corr is None else f"{outcome.corr:.3g}"
        used = {"steps": str(outcome.steps), "seconds": f"{outcome.seconds:.1f}"}
        used["tokens"] = f"{outcome.tokens:,}"
        table.add_row(
            escape(printable(outcome.id)),
            escape(_truncate(outcome.answer, 120)),
            Text(shown, style=style),
            *(used[name] for name in numbers),
            escape(_status(outcome)),
        )
    return table


def totals_line(outcomes: Sequence[Outcome], total: int | None = None) -> str:
    """Format the totals as one line: tasks, right answers, failures, usage.

    Args:
        outcomes: outcomes of the tasks that have a row.
        total: number of selected tasks; default: `len(outcomes)`.
    """
    missing = (total or 0) - len(outcomes)
    scored = [o for o in outcomes if o.corr is not None]
    bad = sum(not o.is_done for o in outcomes)
    earlier = sum(o.earlier for o in outcomes)
    money = sum(o.money or 0.0 for o in outcomes)
    parts = [
        f"{len(outcomes)} of {total} tasks, {missing} not run"
        if missing > 0
        else _counted(len(outcomes), "task"),
        f"{earlier} from earlier runs" if earlier else "",
        f"{sum(o.corr == 1 for o in scored)} of {len(scored)} scored tasks right" if scored else "",
        f"{bad} failed" if bad else "",
        _unreadable(outcomes),
        f"{sum(o.tokens for o in outcomes):,} tokens",
        f"{money:.4f} USD" if money else "",
    ]
    return ", ".join(p for p in parts if p)


def _unreadable(outcomes: Sequence[Outcome]) -> str:
    """Format the number of unreadable replies by phase; "" if there are none."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found.update(outcome.unreadable)
    if not found:
        return ""
    phases = ", ".join(f"{number} {phase}" for phase, number in found.most_common())
    return f"{_counted(found.total(), 'unreadable reply', 'unreadable replies')} ({phases})"


def _counted(number: int, name: str, plural: str = "") -> str:
    return f"{number} {name}" if number == 1 else f"{number} {plural or name + 's'}"


def format_duration(seconds: float) -> str:
    """Format seconds as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _status(outcome: Outcome) -> str:
    bad = f"{outcome.status} ({outcome.stop_reason})"
    return outcome.status if outcome.is_done else printable(bad)


def printable(text: str, kept: str = "") -> str:
    """Make `text` safe for a terminal: replace control characters (C0, C1, DEL) with spaces.

    Remove characters that reorder or hide text. Lone surrogates, which cannot be encoded, become
    the replacement character.

    Args:
        text: text from a model, a page or a file.
        kept: control characters to keep, such as newlines.
    """
    table: dict[int, str] = dict.fromkeys(_INVISIBLE, "")
    table.update((code, " ") for code in _CONTROL_CODES if chr(code) not in kept)
    return text.translate(table).encode("utf-8", "replace").decode()


def _truncate(text: str, length: int) -> str:
    text = " ".join(printable(text).split())
    return text if len(text) <= length else text[: length - 3] + "..."
