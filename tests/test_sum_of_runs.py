"""The closing line of `make test`, which runs pytest twice."""

from __future__ import annotations

import runpy

import pytest
from paths import ROOT

SUM = runpy.run_path(str(ROOT / "scripts" / "sum_of_runs.py"))["sum_of_runs"]


@pytest.mark.parametrize(
    ("output", "closing"),
    [
        (
            "= 3092 passed, 1 skipped, 604 deselected, 1 warning in 20.50s =\n"
            "\x1b[31m== \x1b[31m\x1b[1m2 failed\x1b[0m, 3290 passed, 74 skipped, 2 warnings, "
            "1 error\x1b[31m in 640.25s (0:10:40)\x1b[0m\x1b[31m ==\x1b[0m\n",
            " 2 failed, 6382 passed, 75 skipped, 3 warnings, 1 error in 660.75s (0:11:00) ",
        ),
        ("=== 1 passed in 0.10s ===\nno closing line here", " 1 passed in 0.10s (0:00:00) "),
        ("INTERNALERROR", " no tests ran in 0.00s (0:00:00) "),
    ],
)
def test_the_counts_of_all_runs_are_added(output: str, closing: str) -> None:
    assert SUM(output).strip("=") == closing
