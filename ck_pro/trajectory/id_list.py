"""The option `--ids`, which selects tasks by id."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

HELP = "Only these tasks; @FILE has one id per line."
METAVAR = "ID,..."


def ids_of(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Parse `a,b`, `"with, comma",b` (as in CSV), or `@FILE` with one id per line (click callback).

    Returns:
        The ids; empty if the option is not given, which means all tasks.

    Raises:
        click.BadParameter: the list is empty (such as from an empty shell variable), or the file
            cannot be read.
    """
    if text is None:
        return ()
    try:
        ids = _of_file(Path(text[1:])) if text.startswith("@") else _listed(text)
    except OSError as e:
        raise click.BadParameter(f"cannot read {text[1:]}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise click.BadParameter(f"cannot read {text[1:]}: it is not UTF-8 text") from None
    except csv.Error as e:
        raise click.BadParameter(f"{text!r}: {e}") from None
    if not ids:
        raise click.BadParameter("no task ids; omit the option to select all tasks")
    return ids


def id_text(task_id: str) -> str:
    """Quote an id for `--ids`."""
    if task_id.startswith("@"):
        return f'"{task_id}"'
    out = io.StringIO()
    csv.writer(out).writerow([task_id])
    return out.getvalue().rstrip("\r\n")


def _listed(text: str) -> tuple[str, ...]:
    rows = csv.reader([text], skipinitialspace=True)
    return tuple(i.strip() for row in rows for i in row if i.strip())


def _of_file(path: Path) -> tuple[str, ...]:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return tuple(line.strip() for line in lines if line.strip())
