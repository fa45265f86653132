"""Runs into rows of `messages` for supervised fine-tuning.

    python data/convert_sft.py -i runs/a.jsonl -o sft.jsonl --min-score 1

A short form of `python -m ck_pro.trajectory.export --format sft --columns messages`, and takes all
of its options (`--help`); those given here win.
"""

import sys

from ck_pro.trajectory.export import main

if __name__ == "__main__":
    sys.exit(main(["--format", "sft", "--columns", "messages", *sys.argv[1:]]))
