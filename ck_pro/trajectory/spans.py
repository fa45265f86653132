"""`python -m ck_pro.trajectory.spans`: convert journals to OpenTelemetry spans. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import requests

from ck_pro.command_line import AnyPath, ExitCode, run_command
from ck_pro.exceptions import InputError, JournalError, OutputError
from ck_pro.journal import journal_folders, read_events
from ck_pro.trajectory.exporting.writers import require_no_device
from ck_pro.trajectory.otel.otlp import JsonEmitter, traces_data
from ck_pro.trajectory.otel.span_maker import SpanMaker
from ck_pro.trajectory.reading.sources import require_folder

_BATCH = 2000
_SPANS = b'{"resourceSpans"'
_SECONDS = 30
EPILOG = """
\b
Each run of a task is one trace of invoke_agent, chat and execute_tool spans,
after the semantic conventions for generative AI. A sub-agent's spans are
children of the call that started it. Prompts and replies are included only with
--texts.

\b
Examples:
  python -m ck_pro.trajectory.spans runs/a -o spans.jsonl       (a trace a line)
  python -m ck_pro.trajectory.spans runs/a --endpoint \\
      http://localhost:4318/v1/traces                        (to any collector)

\b
Exit codes:
  0    all spans were written
  2    the command line or an input cannot be used
  3    some journals cannot be read; the rest was written
  4    the spans cannot be written or sent
  6    an internal error; the message names the full log
  130  stopped by Ctrl-C; the output is not complete
"""


def spans_of(folder: Path, *, texts: bool = False) -> list[dict[str, Any]]:
    """Return the spans of a journal in OTLP's JSON form; its run need not have ended.

    Raises:
        JournalError: the journal cannot be read.
    """
    events = read_events(folder, stored=not texts)
    first = next(events, None)
    if first is None:
        return []
    emitter = JsonEmitter(first["sid"])
    maker = SpanMaker(emitter, texts=texts)
    maker.take(first)
    for event in events:
        maker.take(event)
    maker.close()
    return emitter.spans


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", type=AnyPath(), nargs=-1, required=True)
@click.option("-o", "--output", type=AnyPath(), help="JSON lines.  [stdout]")
@click.option("--endpoint", metavar="URL", help="Send to this collector (OTLP/HTTP, JSON).")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="HTTP header for --endpoint."
)
@click.option("--service", default="ck-pro", show_default=True, help="service.name of the spans.")
@click.option("--texts", is_flag=True, help="Include prompts, replies, arguments and results.")
def cli(
    runs: tuple[Path, ...],
    output: Path | None,
    endpoint: str | None,
    headers: tuple[str, ...],
    service: str,
    texts: bool,
) -> ExitCode:
    """Convert the journals in RUNS (task folders or runs) to spans."""
    if output is not None and endpoint is not None:
        raise InputError("give --output or --endpoint, not both")
    pairs = _pairs(headers)
    traces = _Traces(runs, texts)
    if endpoint is not None:
        for spans in traces:
            for start in range(0, len(spans), _BATCH):
                _send(endpoint, traces_data(spans[start : start + _BATCH], service), pairs)
    else:
        _write(output, (json.dumps(traces_data(spans, service)) for spans in traces))
    if str(output or "-") != "-" or endpoint is not None:
        click.echo(f"{traces.count} spans: {output or endpoint}")
    return ExitCode.LINES if traces.problems else ExitCode.DONE


class _Traces:
    """Yield the spans of each journal; report journals that cannot be read."""

    def __init__(self, runs: Sequence[Path], texts: bool):
        self.folders, self.texts = list(_folders(runs)), texts
        self.count = self.problems = 0

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        for folder in self.folders:
            try:
                spans = spans_of(folder, texts=self.texts)
            except JournalError as e:
                self._report(str(e))
                continue
            except (KeyError, TypeError, AttributeError, ValueError) as e:
                self._report(f"{folder}: not a ck-pro journal: {e!r}")
                continue
            self.count += len(spans)
            if spans:
                yield spans

    def _report(self, problem: str) -> None:
        self.problems += 1
        click.echo(f"{problem} (skipped)", err=True)


def _folders(runs: Sequence[Path]) -> Iterator[Path]:
    for run in runs:
        require_folder(run)
        try:
            found = journal_folders(run)
        except OSError as e:
            raise InputError(f"cannot read {run}: {e.strerror}") from None
        if not found:
            raise InputError(f"{run}: no journal in it")
        yield from found


def _pairs(headers: Sequence[str]) -> dict[str, str]:
    for header in headers:
        if "=" not in header:
            raise InputError(f"--header {header}: write NAME=VALUE")
    return dict(h.split("=", 1) for h in headers)


def _send(endpoint: str, data: dict[str, Any], headers: dict[str, str]) -> None:
    try:
        reply = requests.post(endpoint, json=data, headers=headers, timeout=_SECONDS)
    except (requests.RequestException, ValueError) as e:
        raise OutputError(f"cannot send the spans to {endpoint}: {_reason(e)}") from None
    if not reply.ok:
        message = " ".join(reply.text.split())[:200]
        raise OutputError(f"{endpoint} refused the spans: {reply.status_code} {message}")


def _reason(error: BaseException) -> str:
    """Return the system's message; libraries wrap it in long lines."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)


def _write(output: Path | None, lines: Iterable[str]) -> None:
    if output is None or str(output) == "-":
        for line in lines:
            click.echo(line)
            if getattr(sys.stdout, "lost", None) is not None:
                return  # the output is closed
        return
    require_no_device(output)
    _require_spans(output)
    partial = output.with_name(f".{output.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        partial.replace(output)
    except OSError as e:
        raise OutputError(f"cannot write {output}: {e.strerror}") from None
    finally:
        with suppress(OSError):
            partial.unlink()


def _require_spans(path: Path) -> None:
    """Check that a path does not exist or contains spans, which may be replaced.

    Raises:
        OutputError: it contains something else, which must not be overwritten.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_SPANS))
    except FileNotFoundError:
        return
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}") from None
    if head not in (b"", _SPANS):
        raise OutputError(f"{path} exists already, and has no spans; name another file")


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
