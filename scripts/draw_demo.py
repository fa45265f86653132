"""Draw `docs/demo.svg` from the rows of a demo: `python scripts/draw_demo.py [runs/demo.jsonl]`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from ck_main.demo import notice
from ck_main.output.row import Outcome
from ck_main.ui.display import summary_table, totals_line

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"
WIDTH = 96
# the picture loads no fonts from elsewhere
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> int:
    """Draw the notice, the table and the totals."""
    rows = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo.jsonl")
    outcomes = [Outcome.of_row(json.loads(line)) for line in rows.read_text().splitlines()]
    with Path("/dev/null").open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(notice(None))
        console.print(summary_table(outcomes, width=WIDTH))
        console.print(totals_line(outcomes), highlight=False)
        console.print("rows: runs/demo.jsonl", highlight=False)
        console.save_svg(str(PICTURE), title="make demo", code_format=FORMAT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
