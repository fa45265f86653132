"""Lines with marks are found by the words that a person reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.files.marks import states

LINE = (
    "The price is [-Ann: 100-][+Ann: 120+][+Bob:  plus tax+][comment by Eve: why?], "
    "p[hidden: a]id[footnote 2] late."
)


def test_a_line_reads_as_shown_accepted_and_rejected() -> None:
    shown, accepted, rejected = states(LINE)
    assert shown == LINE.replace(":  plus", ": plus")
    assert accepted == "The price is 120 plus tax, paid late."
    assert rejected == "The price is 100, paid late."


def test_marks_inside_marks_are_resolved() -> None:
    _, accepted, rejected = states("a [+Ann: b [-Bob: c-][hidden: d]+] e")
    assert (accepted, rejected) == ("a b d e", "a e")


@pytest.mark.integration
@pytest.mark.parametrize("wanted", ["price is 120 plus tax", "The price is 100", "tax secret"])
def test_a_text_that_marks_split_is_found(samples: Path, wanted: str) -> None:
    from ck_pro.files import search_file

    assert "1 lines" in search_file(str(samples / "contract.docx"), wanted)


@given(st.text("[+-]:abhidencomt y1", max_size=80))
def test_every_line_has_one_or_three_states(line: str) -> None:
    assert len(list(states(line))) == (3 if "[" in line else 1)
