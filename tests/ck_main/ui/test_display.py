"""What a person sees: the live table, the plain lines, the summary."""

import io
from typing import Any

import pytest
from fake_agent import make_task
from rich.console import Console

from ck_main.cli.typed import answer_text
from ck_main.output.row import Outcome
from ck_main.ui.display import (
    LiveDisplay,
    PlainDisplay,
    format_duration,
    make_display,
    outcome_line,
    summary_table,
    totals_line,
)


def make_outcome(**changes: Any) -> Outcome:
    facts: dict[str, Any] = {
        "id": "a",
        "question": "q",
        "answer": "[red]42[/red]",
        "gold": "42",
        "corr": 1,
        "status": "done",
        "stop_reason": "finished",
        "message": "",
        "steps": 3,
        "seconds": 1.25,
        "tokens": 1234,
        "money": 0.5,
    }
    return Outcome(**{**facts, **changes})


def make_event(kind: str, **facts: Any) -> dict[str, Any]:
    event = {"kind": kind, "path": ["ck_agent", "web_agent"], "sid": "s", "step": 2}
    return {**event, "tokens": 1500, "money": 0.25, **facts}


def screen(terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=120, force_terminal=terminal, color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_plain_is_one_line_per_finished_task() -> None:
    console = screen()
    with PlainDisplay(console, total=2) as display:
        display.started(make_task("a"))
        display.event("a", make_event("step_started"))
        display.ended(make_outcome())
        display.ended(
            make_outcome(id="b", corr=0, status="problem", stop_reason="time", message="m")
        )
    assert shown(console).splitlines() == [
        "[1/2] a: '[red]42[/red]' (right; 3 steps, 1.2 s, 1,234 tokens; done)",
        "[2/2] b: '[red]42[/red]' (WRONG; 3 steps, 1.2 s, 1,234 tokens; problem (time): m)",
    ]


def test_steps_are_shown_by_depth() -> None:
    console = screen()
    display = make_display(console, steps=True)
    display.started(make_task("a", "what\nis it"))
    display.event("a", make_event("step_started"))
    display.event("a", make_event("call_started", text="click"))
    display.event("a", make_event("model_waits", phase="plan", text="asks again in 2.0 s: busy"))
    display.event("a", make_event("model_call", phase="plan"))
    display.event("a", make_event("step_ended", text="seen\nthis [x]"))
    assert shown(console).splitlines() == [
        "a: what is it",
        "    web_agent step 2 (1,500 tokens)",
        "      calls click",
        "      asks again in 2.0 s: busy",
        "      seen this [x]",
    ]


def test_the_live_table_shows_each_task_in_progress() -> None:
    console = screen(terminal=True)
    now = [100.0]
    display = LiveDisplay(console, total=3, clock=lambda: now[0])
    display.started(make_task("a[1]"))
    display.started(make_task("b"))
    display.event("a[1]", make_event("call_started", text="goto"))
    display.event("gone", make_event("call_started"))
    display.ended(make_outcome(id="b"))
    now[0] = 175.0
    plain = screen()
    plain.print(display.render())
    lines = shown(plain).splitlines()
    assert lines[0].strip() == "1 of 3 done, 1 running"
    words = lines[2].split()
    assert words == ["a[1]", "ck_agent", ">", "web_agent", "2", "1,500", "0.250", "1:15", "goto"]


def test_a_live_display_starts_and_stops() -> None:
    console = screen(terminal=True)
    with make_display(console) as display:
        assert isinstance(display, LiveDisplay)
        display.started(make_task("a"))
        display.ended(make_outcome())
    assert "a: " in shown(console)


@pytest.mark.parametrize(("terminal", "plain"), [(False, False), (True, True)])
def test_no_live_table_where_none_is_wanted(terminal: bool, plain: bool) -> None:
    assert type(make_display(screen(terminal), plain=plain)) is PlainDisplay


def test_the_summary_has_every_column() -> None:
    console = screen()
    rows = [make_outcome(), make_outcome(id="b", corr=None, status="problem", stop_reason="steps")]
    console.print(summary_table(rows))
    text = shown(console)
    for word in ("task", "answer", "score", "steps", "seconds", "tokens", "status"):
        assert word in text
    assert "[red]42[/red]" in text and "problem (steps)" in text


def test_a_narrow_summary_has_no_numbers() -> None:
    console = screen()
    console.print(summary_table([make_outcome(answer="forty-two")], width=30))
    text = shown(console)
    assert "forty-two" in text and "status" in text and "tokens" not in text


def test_the_totals() -> None:
    rows = [
        make_outcome(),
        make_outcome(corr=0, earlier=True, status="problem"),
        make_outcome(corr=None),
    ]
    assert totals_line(rows) == (
        "3 tasks, 1 from earlier runs, 1 of 2 scored tasks right, 1 failed, "
        "3,702 tokens, 1.5000 USD"
    )
    unread = [make_outcome(unreadable={"plan": 2}), make_outcome(unreadable={"plan": 1, "end": 1})]
    assert "4 unreadable replies (3 plan, 1 end), " in totals_line(unread)
    assert "1 unreadable reply (1 action), " in totals_line(
        [make_outcome(unreadable={"action": 1})]
    )
    assert totals_line([]) == "0 tasks, 0 tokens"
    assert totals_line(rows[:1], 4).startswith("1 of 4 tasks, 3 not run, ")


def test_text_cannot_be_reordered_or_hidden_at_the_terminal() -> None:
    spoofed = "do not \u202eyub\u202c \u2066Buy\u2069\u200b \U000e0041\u2028ok"
    assert answer_text(spoofed, to_terminal=True) == "do not yub Buy ok"
    family = "\U0001f469\u200d\U0001f4bb"
    assert answer_text(family, to_terminal=True) == family
    assert "\u202e" not in outcome_line(make_outcome(message="\u202ecba", status="problem"))


EVIL = "a\x1b[2J\x1b]0;title\x07\rb\x9b31m\x7f\ud800"


def test_nothing_from_a_model_or_a_page_steers_the_terminal() -> None:
    console, table = screen(), screen()
    display = make_display(console, steps=True)
    task = EVIL.removesuffix("\ud800")  # no task file can hold half a pair
    display.started(make_task(task, EVIL))
    for kind in ("step_started", "call_started", "step_ended"):
        display.event(task, make_event(kind, text=EVIL, path=[EVIL]))
    display.note(EVIL)
    evil = make_outcome(id=EVIL, answer=EVIL, message=EVIL, status="problem", stop_reason=EVIL)
    display.ended(evil)
    table.print(summary_table([evil]), totals_line([evil], 2))
    live = LiveDisplay(screen(terminal=True))
    live.started(make_task(task))
    live.event(task, make_event("call_started", text=EVIL, path=[EVIL]))
    table.print(live.render())
    text = shown(console) + shown(table)
    assert text.count("[2J") >= 8
    assert not [c for c in text if (ord(c) < 32 or 127 <= ord(c) < 160) and c != "\n"]
    text.encode()


def test_an_answer_for_a_terminal_and_for_a_pipe() -> None:
    assert answer_text("a\x1bb\n\tc", to_terminal=True) == "a b\n\tc"
    assert answer_text("a\x1bb\n\ud800", to_terminal=False) == "a\x1bb\n?"


def test_the_live_table_shows_model_calls() -> None:
    display = LiveDisplay(screen(terminal=True))
    display.started(make_task("a"))
    display.event("a", make_event("model_started", phase="plan"))
    plain = screen()
    plain.print(display.render())
    assert "calls the model (plan)" in shown(plain)
    display.event("a", make_event("model_waits", phase="plan", text="asks again in 2.0 s: busy"))
    plain.print(display.render())
    assert "asks again in 2.0 s: busy" in shown(plain)


def test_names_and_times_are_short() -> None:
    assert [format_duration(s) for s in (0, 61.9, 3700)] == ["0:00", "1:01", "1:01:40"]
    assert "x" * 77 + "..." in outcome_line(make_outcome(answer="x" * 300))
