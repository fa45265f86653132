"""Large rows are opened in one pass, and give the same values as parsed ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from viewer_runs import small_run

from ck_main.viewer.runs import large_rows, open_runs
from ck_main.viewer.runs.large_rows import UnexpectedForm, open_row
from ck_main.viewer.runs.row_heads import LinePlace
from ck_pro.trajectory.reading.big_json import JsonFile, plain
from ck_pro.trajectory.reading.sources import Problem, Record

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)
_ROWS = st.builds(
    lambda head, info, steps, tail: {
        **{f"h{k}": v for k, v in head.items()},
        "session": {"id": "s", "info": info, "steps": steps},
        **{f"t{k}": v for k, v in tail.items()},
    },
    st.dictionaries(st.text(max_size=4), _JSON, max_size=3),
    _JSON,
    st.lists(_JSON, max_size=5),
    st.dictionaries(st.text(max_size=4), _JSON, max_size=3),
)


def _opened(path: Path, text: str, before: str = "") -> Any:
    data = text.encode("utf-8", "surrogatepass")
    path.write_bytes(before.encode() + data)
    return open_row(JsonFile(path), len(before), len(data))


@given(row=_ROWS, indent=st.sampled_from([None, 1]), ascii=st.booleans(), window=st.integers(1, 64))
def test_an_opened_row_has_the_values_of_a_parsed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Any, indent: Any, ascii: bool, window: int
) -> None:
    monkeypatch.setattr(large_rows, "_WINDOW", window)
    text = json.dumps(row, indent=indent, ensure_ascii=ascii)
    if "\ud800" <= max(text) <= "\udfff":
        text = json.dumps(row)
    assert plain(_opened(tmp_path / "row", text + " \n", before="{}\n")) == row


@pytest.mark.parametrize("number", [-0.0, 1.5, 1e300, 2.5e-9, -120])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 5])
def test_a_number_at_the_end_of_a_piece_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: float, window: int
) -> None:
    monkeypatch.setattr(large_rows, "_WINDOW", window)
    row = {"a": number, "session": {"id": "s", "steps": [number, number]}}
    assert plain(_opened(tmp_path / "row", json.dumps(row))) == row


@given(row=_ROWS, cut=st.floats(0, 0.999))
def test_a_part_of_a_row_is_refused(tmp_path: Path, row: Any, cut: float) -> None:
    text = json.dumps(row)
    with pytest.raises(UnexpectedForm):
        _opened(tmp_path / "row", text[: int(len(text) * cut)])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "1", "{}", '{"a" 1}', '{"session": {"steps": [1 2]}}', '{"a": 1} x', "{'a': 1}"],
)
def test_other_forms_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnexpectedForm):
        _opened(tmp_path / "row", text)


def test_a_broken_large_row_is_a_problem_and_an_unusual_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_runs, "_LARGE", 1)
    row = small_run(tmp_path / "run")
    lines = [json.dumps(row), json.dumps(row)[:-9], "[" * 200_000, '{"id": 1}', "\x00"]
    path, at, found = tmp_path / "rows.jsonl", 0, []
    path.write_text("\n".join(lines) + "\n")
    for number, line in enumerate(lines, 1):
        found.append(open_runs._record(path, LinePlace(number, at, len(line))))
        at += len(line) + 1
    assert isinstance(found[0], Record) and plain(found[0].row) == row
    assert all(isinstance(one, Problem) for one in found[1:])
