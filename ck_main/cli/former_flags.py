"""Command-line flags of the original CK-Pro: translated, or refused with a replacement."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import click

UPDATES = ("-u", "--updates", "-U")
_UPDATE = re.compile(r"\s*(\{|[A-Za-z_][\w.]*\s*=)")
REFUSED: Mapping[str, str] = {
    "--starting-idx": "finished tasks are skipped; use --ids, --shard or --limit to select tasks",
    "--ending-idx": "use --limit N, --ids or --shard",
    "--sampling-mode": "use --tries K with --choose first|vote|judge",
    "--max-retry-num": "use --tries K with --until em|llm_judge|stop_with_answer",
    "--max-retry": "use --tries K with --until em|llm_judge|stop_with_answer",
    "--evaluation-method": "use --until em|llm_judge|stop_with_answer",
    "--inference-time-evaluation-method": "use --until em|llm_judge|stop_with_answer",
    "--enable-reflection": "use --until HOW --reflect",
    "--skip-hard-query": 'mark these tasks with "skip": 1, or use --ids',
    "--skip-hard": 'mark these tasks with "skip": 1, or use --ids',
    "--try-all-files": "the files of a task are found by its file_name; use --files-dir",
}
"""Flags without an equivalent option, with the replacement to suggest."""


def current_arguments(
    arguments: Sequence[str],
    known: Collection[str],
    *,
    renamed: Mapping[str, str] | None = None,
    refused: Mapping[str, str] = REFUSED,
) -> list[str]:
    """Translate a command line written for the original CK-Pro.

    Underscores in option names become hyphens. Each of several updates after one `-u` gets its
    own `-u`.

    Args:
        arguments: arguments of the command.
        known: names of its options.
        renamed: former option names and their current names.
        refused: former flags without an option, and their replacements.

    Raises:
        click.UsageError: a flag has no equivalent; the message names the replacement.
    """
    out: list[str] = []
    updating = False
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*out, *arguments[number:]]
        is_value = bool(out) and out[-1] in UPDATES
        if not is_value and updating and _UPDATE.match(argument):
            out += [UPDATES[0], argument]
            continue
        if is_value or not argument.startswith("-"):
            out.append(argument)
            continue
        if argument[:2] in UPDATES and len(argument) > 2:  # "-u{...}" without a space
            out.append(UPDATES[0] + argument[2:])
            updating = True
            continue
        name, equals, value = argument.partition("=")
        current = (renamed or {}).get(name, name)
        hyphened = current.replace("_", "-") if current.startswith("--") else current
        if hyphened in refused and hyphened not in known:
            raise click.UsageError(f"{name}: not an option here; {refused[hyphened]}")
        current = hyphened if hyphened in known else current
        current = UPDATES[0] if current == "-U" else current
        updating = current in UPDATES
        out.append(f"{current}{equals}{value}")
    return out
