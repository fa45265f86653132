"""What a person sees of a run: a live table on a terminal, one line per task elsewhere."""

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

from ck_main.output.row_file import Outcome
from ck_main.tasks.dataset import Task

_SHOWN_RUNNING = 20
_NARROW = 60
"""Columns of a terminal from which on numbers have room beside answers."""
_SCORES = {1: "right", 0: "WRONG", None: "not scored"}
_SHOWN = ("step_started", "call_started", "step_ended", "model_waits")
"""Kinds of events that are shown where agents are followed step by step."""
_STEERING = (*range(0x20), *range(0x7F, 0xA0))
_INVISIBLE = (
    *(0x061C, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xE0000, 0xE0080),
)
"""Characters that move or hide text: bidirectional controls, separators, spaces without width,
tags. Joiners stay: scripts and emoji need them."""


@dataclass
class _Running:
    """What is known of a task under way."""

    question: str
    started: float
    path: tuple[str, ...] = ()
    step: int = 0
    tokens: int = 0
    money: float = 0.0
    doing: str = ""

    def take(self, event: dict[str, Any]) -> None:
        self.path, self.step = tuple(event["path"]), max(0, event["step"])
        self.tokens, self.money = event["tokens"], event["money"]
        if event["kind"] == "model_started":
            self.doing = f"asks the model ({event['phase']})"
        else:
            self.doing = " ".join(str(event.get("text") or event.get("phase") or "").split())


class PlainDisplay:
    """One line per finished task; with `steps`, also one per thing that agents do.

    Args:
        console: where to write.
        steps: follow the agents step by step.
        total: tasks in all, where it is known.
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
        """A task begins."""
        if self.steps:
            self._line(Text(f"{printable(task.id)}: {_cut(task.question, 200)}", style="bold"))

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        """Something happened in a task."""
        if self.steps and event["kind"] in _SHOWN:
            self._line(step_line(event))
        elif event["kind"] == "try_ended":
            number = f"try {event['number']} of {event['tries']}"
            self._line(Text(f"{printable(task_id)}, {number}: {try_line(event['row']['eval'])}"))

    def ended(self, outcome: Outcome) -> None:
        """A task ended."""
        with self._lock:
            self._ended += 1
            count = f"[{self._ended}/{self.total}] " if self.total else ""
        self._line(Text(count + outcome_line(outcome)))

    def note(self, text: str) -> None:
        """One line for a person."""
        self._line(Text(printable(text), style="yellow"))

    def _line(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True)


class LiveDisplay(PlainDisplay):
    """A table of the tasks under way that redraws itself, with finished tasks above it."""

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
        """A task begins."""
        with self._lock:
            self._running[task.id] = _Running(task.question, self._clock())

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        """Something happened in a task."""
        with self._lock:
            if task_id in self._running:
                self._running[task_id].take(event)
        if event["kind"] == "try_ended":
            super().event(task_id, event)

    def ended(self, outcome: Outcome) -> None:
        """A task ended."""
        with self._lock:
            self._running.pop(outcome.id, None)
        super().ended(outcome)

    def render(self) -> Group:
        """The table as of now."""
        with self._lock:
            running = list(self._running.items())
            ended = self._ended
        table = Table(box=None, pad_edge=False, expand=False)
        for name in ("task", "agent", "step", "tokens", "USD", "time", "doing"):
            right = name in ("step", "tokens", "USD", "time")
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        now = self._clock()
        for task_id, task in running[:_SHOWN_RUNNING]:
            table.add_row(
                escape(_cut(task_id, 24)),
                escape(printable(" > ".join(task.path))),
                str(task.step),
                f"{task.tokens:,}",
                f"{task.money:.3f}",
                clock_text(now - task.started),
                escape(_cut(task.doing, 40)),
            )
        of = f" of {self.total}" if self.total else ""
        head = Text(f"{ended}{of} done, {len(running)} running", style="bold")
        return Group(head, table)


def make_display(
    console: Console, *, steps: bool = False, plain: bool = False, total: int | None = None
) -> PlainDisplay:
    """The display that fits: live on a terminal, unless `plain` or step by step."""
    if console.is_terminal and not plain and not steps:
        return LiveDisplay(console, total=total)
    return PlainDisplay(console, steps=steps, total=total)


def step_line(event: dict[str, Any]) -> Text:
    """One line for an agent's event, indented by its depth."""
    path = event["path"]
    said = _cut(str(event.get("text") or ""), 160)
    indent = "  " * len(path)
    if event["kind"] == "step_started":
        used = f"{event['tokens']:,} tokens"
        return Text(f"{indent}{printable(path[-1])} step {event['step']} ({used})", style="cyan")
    if event["kind"] == "model_waits":
        return Text(f"{indent}  {said}", style="yellow")
    if event["kind"] == "call_started":
        return Text(f"{indent}  calls {said}")
    return Text(f"{indent}  {said}")


def try_line(scored: Mapping[str, Any]) -> str:
    """One line for a try that ended: its answer, how it was scored and judged."""
    said = [_SCORES[scored["corr"]]]
    if "judge" in scored:
        said.append(f"judged {'right' if scored['judge'] else 'wrong'}")
    return f"{_cut(scored['pred'], 80)!r} ({', '.join(said)})"


def outcome_line(outcome: Outcome) -> str:
    """One line for a task that ended."""
    score = _SCORES[outcome.corr]
    used = f"{_counted(outcome.steps, 'step')}, {outcome.seconds:.1f} s, {outcome.tokens:,} tokens"
    if outcome.tries > 1:
        used = f"{outcome.tries} tries, {used}"
    said = f": {_cut(outcome.message, 160)}" if outcome.message and not outcome.is_done else ""
    answer = _cut(outcome.answer, 80)
    return f"{printable(outcome.id)}: {answer!r} ({score}; {used}; {_status(outcome)}{said})"


def summary_table(outcomes: Sequence[Outcome], *, width: int = 80) -> Table:
    """All tasks: answer, score, steps, seconds, tokens, status; without numbers if it is narrow."""
    numbers = ("steps", "seconds", "tokens") if width >= _NARROW else ()
    table = Table(title=None, header_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("answer", overflow="fold", max_width=44)
    table.add_column("score", justify="center")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status", overflow="fold")
    for outcome in outcomes:
        style = {1: "green", 0: "red", None: ""}[outcome.corr]
        shown = {1: "1", 0: "0", None: "-"}[outcome.corr]
        used = {"steps": str(outcome.steps), "seconds": f"{outcome.seconds:.1f}"}
        used["tokens"] = f"{outcome.tokens:,}"
        table.add_row(
            escape(printable(outcome.id)),
            escape(_cut(outcome.answer, 120)),
            Text(shown, style=style),
            *(used[name] for name in numbers),
            escape(_status(outcome)),
        )
    return table


def totals_line(outcomes: Sequence[Outcome], total: int | None = None) -> str:
    """One line: how many tasks, how many right, how many did not end well, what was used.

    Args:
        outcomes: of the tasks that have a row.
        total: how many there should be; as many as there are if None.
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
        f"{earlier} of them from before" if earlier else "",
        f"{sum(o.corr == 1 for o in scored)} of {len(scored)} scored ones right" if scored else "",
        f"{bad} did not end well" if bad else "",
        _unreadable(outcomes),
        f"{sum(o.tokens for o in outcomes):,} tokens",
        f"{money:.4f} USD" if money else "",
    ]
    return ", ".join(p for p in parts if p)


def _unreadable(outcomes: Sequence[Outcome]) -> str:
    """How many replies could not be read, by phase; "" if all could."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found.update(outcome.unreadable)
    if not found:
        return ""
    phases = ", ".join(f"{number} {phase}" for phase, number in found.most_common())
    return f"{_counted(found.total(), 'reply', 'replies')} not readable ({phases})"


def _counted(number: int, name: str, plural: str = "") -> str:
    return f"{number} {name}" if number == 1 else f"{number} {plural or name + 's'}"


def clock_text(seconds: float) -> str:
    """Seconds as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _status(outcome: Outcome) -> str:
    bad = f"{outcome.status} ({outcome.stop_reason})"
    return outcome.status if outcome.is_done else printable(bad)


def printable(text: str, kept: str = "") -> str:
    """`text` as a terminal may show it: what steers one (C0, C1, DEL) becomes a space.

    Characters that reorder or hide text are left out: a message must read as it is written. Half
    surrogate pairs, which no terminal can be sent, become the replacement character.

    Args:
        text: from a model, a page or a file.
        kept: control characters that stay, such as newlines.
    """
    table: dict[int, str] = dict.fromkeys(_INVISIBLE, "")
    table.update((code, " ") for code in _STEERING if chr(code) not in kept)
    return text.translate(table).encode("utf-8", "replace").decode()


def _cut(text: str, length: int) -> str:
    text = " ".join(printable(text).split())
    return text if len(text) <= length else text[: length - 3] + "..."
