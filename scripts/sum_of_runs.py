"""Print one closing line for several runs of pytest: `python scripts/sum_of_runs.py LOG`.

LOG has the output of all runs. Tests that one run leaves to another one are not counted.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

COLOR = re.compile(r"\x1b\[[0-9;]*m")
CLOSING = re.compile(r"^=+ (.* in ([0-9.]+)s(?: \([0-9:]+\))?) =+$", re.MULTILINE)
ORDER = ("failed", "passed", "skipped", "xfailed", "xpassed", "warning", "error")


def sum_of_runs(output: str) -> str:
    """Return the closing line of the runs in an output."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for counted, took in CLOSING.findall(COLOR.sub("", output)):
        seconds += float(took)
        for number, word in re.findall(r"(\d+) ([a-z]+)", counted.rpartition(" in ")[0]):
            counts[word.rstrip("s") if word in ("errors", "warnings") else word] += int(number)
    parts = [f"{counts[word]} {_plural(word, counts[word])}" for word in ORDER if counts[word]]
    clock = f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"
    text = f" {', '.join(parts) or 'no tests ran'} in {seconds:.2f}s ({clock}) "
    return text.center(80, "=")


def _plural(word: str, count: int) -> str:
    return f"{word}s" if word in ("warning", "error") and count > 1 else word


if __name__ == "__main__":
    sys.stdout.write(sum_of_runs(Path(sys.argv[1]).read_text(errors="replace")) + "\n")
