"""Tasks and messages that the user types, and the answers on standard output."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from rich.console import Console

from ck_main.output.row_file import RowFile
from ck_main.ui.display import printable
from ck_pro.terminal import read_line, terminal_turn

_END = "__END__"


def typed_lines(screen: Console, prompt: str, help_line: str) -> Iterator[str]:
    """Yield lines from standard input, until its end or a line `__END__`.

    Args:
        screen: console for the prompt.
        prompt: shown before each line on a terminal, such as "task> ".
        help_line: shown once on a terminal.
    """
    interactive = sys.stdin.isatty()
    if interactive:
        screen.print(f"{help_line} Ctrl-D or {_END} quits.")
    while True:
        if interactive:
            screen.print(prompt, end="")
        with terminal_turn():
            line = read_line(sys.stdin)
        if not line or line.strip() == _END:
            return
        if line.strip():
            yield line.strip()


def answer_text(answer: str, *, to_terminal: bool) -> str:
    """Format an answer for standard output; strip control characters for a terminal."""
    if to_terminal:
        return printable(answer, kept="\n\t")
    return answer.encode("utf-8", "replace").decode()  # lone surrogates cannot be encoded


def print_hint(screen: Console, hint: str) -> None:
    """Print a hint for the next command, if there is one."""
    if hint:
        screen.print(printable(hint), markup=False, highlight=False, soft_wrap=True)


def free_id(rows: RowFile, kind: str = "task") -> str:
    """Return an unused task id: the local time, plus a number if the id exists."""
    base = time.strftime(f"{kind}-%Y%m%d-%H%M%S")
    number, name = 1, base
    while name in rows.done or (rows.folder / name).exists():
        number += 1
        name = f"{base}-{number}"
    return name
