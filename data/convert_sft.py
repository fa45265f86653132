"""Turn runs into rows of `messages` for supervised fine-tuning.

    python data/convert_sft.py -i runs/a.jsonl -o sft.jsonl --min-score 1

A short form of `python -m ck_pro.trajectory.export --format sft --columns messages`. It accepts all
options of that command (`--help`); a later option overrides an earlier one. Underscores in options
are accepted, and `--input_file`, `--input_files`, `--output_file` mean `--input` and `--output`.
"""

import sys

import click

from ck_main.cli.former_flags import current_arguments
from ck_pro.trajectory.export import cli, main

RENAMED = {
    **dict.fromkeys(("--input_file", "--input_files", "--input_path", "--inputs"), "--input"),
    **dict.fromkeys(("--output_file", "--output_path", "--outputs"), "--output"),
}


def arguments(given: list[str]) -> list[str]:
    """Translate the options of this script to those of the export."""
    known = {name for param in cli.params for name in param.opts}
    renamed = {**RENAMED, **{k.replace("_", "-"): v for k, v in RENAMED.items()}}
    return current_arguments(given, known, renamed=renamed, refused={})


if __name__ == "__main__":
    try:
        sys.exit(main(["--format", "sft", "--columns", "messages", *arguments(sys.argv[1:])]))
    except click.UsageError as e:
        sys.exit(f"error: {e.format_message()}")
