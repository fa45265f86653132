"""`python -m ck_main.score INPUT -o OUTPUT --scorer NAME`: score rows again. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ck_main.output.rescore import Rescored, rescore
from ck_main.scoring.judge import Judge
from ck_main.scoring.scoring import DEFAULT, FIELD, Scoring, scorers
from ck_pro.command_line import AnyPath, ExitCode, exit_code_of, run_command, without_controls
from ck_pro.exceptions import ConfigError, InputError, LimitReached, ModelError
from ck_pro.model import LLM, Budget
from ck_pro.model.types import CallContext
from ck_pro.run.sampling import Messages
from ck_pro.trajectory.labels import without_label_files
from ck_pro.trajectory.reading.sources import require_not_input

_SHOWN = 20


def _scorers_help() -> str:
    width = max(map(len, scorers())) + 4
    lines = ["\b", "Scorers:"]
    for scorer in scorers().values():
        lines += _wrapped(f"  {scorer.name}".ljust(width), scorer.help, width)
    return "\n".join(lines)


def _wrapped(head: str, text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 79, initial_indent=head, subsequent_indent=" " * width)


EPILOG = f"""
{_scorers_help()}

\b
A task that names a scorer in its field `{FIELD}` is scored with that one.
Give several inputs to write their rows to one output.

\b
Examples:
  python -m ck_main.score runs/a.jsonl -o runs/a-gaia.jsonl --scorer gaia
  python -m ck_main.score runs/a.jsonl -o b.jsonl --scorer numeric:rel=0.01
  python -m ck_main.score runs/a.jsonl -o b.jsonl --scorer judge \\
      --judge-model gpt:NAME --rubric rubric.txt --max-money 2

\b
Exit codes:
  0    complete
  2    the command line or an input cannot be used
  3    some lines cannot be read or scored; the rest was written
  4    the output cannot be written, or exists already (--force)
  5    the judge's model is unreachable; repeat the command
  6    an internal error; the message names the full log
  7    a limit of the judge was reached; repeat the command with a higher one
  130  stopped by Ctrl-C
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("inputs", metavar="INPUT...", type=AnyPath(), nargs=-1, required=True)
@click.option("-o", "--output", type=AnyPath(), required=True, help="File for the scored rows.")
@click.option(
    "--scorer",
    default=DEFAULT,
    show_default=True,
    metavar="NAME[:OPTIONS]",
    help="How to score the answers; see below.",
)
@click.option(
    "--field",
    default=FIELD,
    show_default=True,
    metavar="NAME",
    help='Field of a task that names its scorer; "" ignores it.',
)
@click.option("--judge-model", metavar="MODEL", help="The model that judges: gpt:NAME, http://...")
@click.option(
    "--rubric", type=AnyPath(), metavar="FILE", help="Rules for the judge, as a text file."
)
@click.option(
    "--cache",
    type=AnyPath(),
    metavar="FILE",
    help="The judge's verdicts, for a repetition without cost.  [OUTPUT.verdicts.jsonl]",
)
@click.option("--max-money", type=click.FloatRange(min=0), metavar="USD", help="Of the judge.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Of the judge.")
@click.option(
    "-w",
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    default=1,
    show_default=True,
    help="Number of rows that the judge scores in parallel.",
)
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cli(
    inputs: tuple[Path, ...], output: Path, scorer: str, field: str, as_json: bool, **options: Any
) -> ExitCode:
    """Score the rows of an output again, and write them to another file.

    INPUT is a file of output rows, or the folder of a run. It never changes.
    """
    runs = without_label_files(inputs, _report_label_file)
    judge, budget = _judge(output, runs, options)
    scoring = Scoring(scorer, judge=judge, field=field)
    try:
        found = rescore(runs, output, scoring, force=options["force"], workers=options["workers"])
    except (LimitReached, ModelError) as e:
        kept = judge.asked if judge is not None else 0
        click.echo(
            f"error: {without_controls(str(e))}; {kept:,} verdicts are cached, and nothing was "
            "written: repeat the command",
            err=True,
        )
        return ExitCode.LIMIT if isinstance(e, LimitReached) else exit_code_of(e)
    if as_json:
        data = {**found.to_dict(), "output": str(output), "judge": _usage(judge, budget)}
        click.echo(json.dumps(data, ensure_ascii=False))
    else:
        _print(found, output, judge, budget)
    for problem in found.problems[:_SHOWN]:
        click.echo(without_controls(f"{problem}"), err=True)
    if len(found.problems) > _SHOWN:
        click.echo(f"... and {len(found.problems) - _SHOWN:,} more", err=True)
    return ExitCode.LINES if found.problems or found.failed else ExitCode.DONE


def _report_label_file(path: Path) -> None:
    click.echo(f"{path} has labels, not runs (skipped)", err=True)


def _judge(
    output: Path, inputs: Sequence[Path], options: dict[str, Any]
) -> tuple[Judge | None, Budget]:
    """Return the judge, if the options name its model, and its budget.

    Raises:
        ConfigError, InputError: the options cannot be used.
    """
    budget = Budget(max_tokens=options["max_tokens"], max_money=options["max_money"])
    target, rubric = options["judge_model"], options["rubric"]
    if target is None:
        if rubric is not None:
            raise ConfigError("--rubric: it needs --judge-model")
        return None, budget
    llm = LLM(call_target=target)
    llm.check()

    def ask(messages: Messages) -> str:
        budget.check()
        return llm(messages, context=CallContext(phase="tool:judge", budget=budget))

    cache = options["cache"] or output.with_name(f"{output.stem}.verdicts.jsonl")
    require_not_input("--cache", cache, [*inputs, *([rubric] if rubric else [])])
    text = "" if rubric is None else _read(rubric)
    return Judge(ask, target, rubric=text, cache=cache), budget


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read {path}: {reason}") from None


def _usage(judge: Judge | None, budget: Budget) -> dict[str, Any] | None:
    if judge is None:
        return None
    used = budget.snapshot()
    return {
        "asked": judge.asked,
        "cached": judge.cached,
        "tokens": used["tokens"],
        "money": None if used["unpriced_calls"] else used["money"],
    }


def _print(found: Rescored, output: Path, judge: Judge | None, budget: Budget) -> None:
    out = Console(highlight=False)
    table = Table(title="scores")
    table.add_column("")
    for name in ("before", "after"):
        table.add_column(name, justify="right")
    for kind in ("right", "partly right", "wrong", "no score"):
        if found.before[kind] or found.after[kind]:
            table.add_row(kind, f"{found.before[kind]:,}", f"{found.after[kind]:,}")
    table.add_row("mean score", _share(found.mean_before), _share(found.mean_after), style="bold")
    out.print(table)
    for name, count in found.scorers.most_common():
        out.print(f"scored by {without_controls(name)}: {count:,}", markup=False)
    for reason, count in found.reasons.most_common(5):
        out.print(f"no score, {without_controls(reason)}: {count:,}", markup=False)
    usage = _usage(judge, budget)
    if usage is not None:
        money = "unknown" if usage["money"] is None else f"{usage['money']:.4f} USD"
        out.print(
            f"judge: {usage['asked']:,} verdicts, {usage['cached']:,} from the cache, "
            f"{usage['tokens']:,} tokens, {money}"
        )
    for change in found.changes[:_SHOWN]:
        text = f"  {change.task_id}: {_share(change.before)} -> {_share(change.after)}"
        reason = " ".join(change.reason.split())[:120]
        out.print(without_controls(f"{text}  {reason}".rstrip()), markup=False, soft_wrap=True)
    if found.changed > _SHOWN:
        out.print(f"  ... and {found.changed - _SHOWN:,} more")
    rows = "row" if found.rows == 1 else "rows"
    out.print(f"{found.changed:,} of {found.rows:,} {rows} changed score", style="bold")
    out.print(f"written: {output}", markup=False, soft_wrap=True)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
