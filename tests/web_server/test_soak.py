"""Sessions in a row: nothing of them stays. `CK_SOAK_SESSIONS` makes it as long as you like."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))


def _samples(sizes: list[float], every: int = 50) -> list[object]:
    from soak import Sample

    return [Sample(every * (i + 1), float(i), size, 0.0, 8) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        ([300, 330, 350, *[351.0, 349.0, 350.0] * 5], "flat"),
        ([300.0] * 10 + [900.0] + [300.0] * 10, "flat"),
        ([300 + 5.0 * i for i in range(20)], "GROWS"),
        ([300.0, 400.0], "too short"),
    ],
)
def test_the_verdict_is_of_the_slope(sizes: list[float], word: str) -> None:
    from soak import Soak

    assert Soak(_samples(sizes)).verdict().startswith(word)  # type: ignore[arg-type]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sessions_in_a_row_leave_nothing_behind() -> None:
    from soak import soak
    from web_pages import Site
    from web_ways import Ours

    sessions = int(os.environ.get("CK_SOAK_SESSIONS", "8"))
    with Site() as site:
        server = Ours(site.host, 2)
        try:
            run = soak(server, site, sessions, every=max(1, sessions // 20))
            left = server.status()
        finally:
            server.end()
    first, last = run.samples[0], run.samples[-1]
    assert last.sessions == sessions and not run.cut
    assert left["browsers"] == [] and left["free"] == 2
    # a renderer or two may be kept warm, or be on its way out; one for each session may not
    assert last.processes <= first.processes + 4
    assert not run.verdict().startswith("GROWS"), run.verdict()
