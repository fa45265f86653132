"""Lines about similar actions fold into one line that keeps every difference."""

from __future__ import annotations

import doctest

import pytest

import ck_pro.session.folded_lines
from ck_pro.executor import CallLine, CodeResult
from ck_pro.run.results import code_observation
from ck_pro.session.folded_lines import fold


def test_the_example_of_the_module_holds() -> None:
    assert doctest.testmod(ck_pro.session.folded_lines).failed == 0


def typed(n: int, shown: str = "") -> str:
    return f"type [{n}] textbox 'Field {n}' 'v{n}': now value: {shown or f'v{n}'}"


@pytest.mark.parametrize(
    ("lines", "folded"),
    [
        ([typed(1), typed(2)], [typed(1), typed(2)]),
        (
            [typed(1), typed(2), typed(3)],
            [
                "type 3 times, each now value as given: [1] textbox 'Field 1' 'v1'; "
                "[2] textbox 'Field 2' 'v2'; [3] textbox 'Field 3' 'v3'"
            ],
        ),
        (
            [f"click [{n}] checkbox 'Row: {n}': now checked: true" for n in (4, 5, 6)],
            [
                "click 3 times, each now checked: true: [4] checkbox 'Row: 4'; "
                "[5] checkbox 'Row: 5'; [6] checkbox 'Row: 6'"
            ],
        ),
        (
            [f"click [{n}] link 'next': now at http://x/{n} ('P {n}')" for n in (1, 2, 3)],
            [
                "click 3 times, each now at: [1] link 'next' -> http://x/1 ('P 1'); "
                "[2] link 'next' -> http://x/2 ('P 2'); [3] link 'next' -> http://x/3 ('P 3')"
            ],
        ),
        (["click ['a'] failed: no such element"] * 3, ["click ['a'] failed: no such element"] * 3),
        (["text: a b", "text: a b", "text: a b"], ["text: a b"] * 3),
    ],
)
def test_three_similar_lines_become_one(lines: list[str], folded: list[str]) -> None:
    assert fold(lines) == folded


def test_other_lines_in_between_keep_their_place() -> None:
    checked = [f"click [{n}] checkbox 'R{n}': now checked: true" for n in (7, 8)]
    lines = [typed(1), typed(2), typed(3), *checked, "goto http://x: now there", typed(4)]
    assert fold(lines)[1:] == lines[3:]
    assert len(fold(lines)) == 5


def test_prints_between_the_lines_prevent_the_fold() -> None:
    lines = [CallLine(typed(n)) for n in range(1, 5)]
    together = code_observation(CodeResult(pieces=["start\n", *lines, "end\n"]))
    assert together.startswith("start\ntype 4 times, each now value as given: [1]")
    assert together.endswith("'v4'\nend")
    apart = [piece for line in lines for piece in (line, "printed\n")]
    assert "times" not in code_observation(CodeResult(pieces=apart))


def test_only_the_last_lines_are_shown() -> None:
    lines = [CallLine(typed(n)) for n in range(100)]
    shown = code_observation(CodeResult(pieces=lines))
    assert shown.startswith(
        "(70 earlier actions omitted)\ntype 30 times, each now value as given: "
    )
    assert "Field 70" in shown and "Field 69" not in shown
