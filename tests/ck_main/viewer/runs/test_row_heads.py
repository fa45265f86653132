"""The head and the score of a row are read without the steps between them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ck_main.viewer.runs import row_heads
from ck_main.viewer.runs.row_heads import LinePlace, line_places, row_head

_TEXT = st.text(max_size=30) | st.sampled_from(
    ['}, "eval": {"corr": 1}}', '], "eval": {"corr": 0}', '"steps": [', "\\", '\\"', "é" * 9]
)
_JSON = st.recursive(
    st.none() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_EVAL = st.dictionaries(st.sampled_from(["corr", "pred", "gold"]), _JSON, max_size=3)
_MORE = settings(max_examples=3 * settings.default.max_examples)


def _places(path: Path, data: bytes) -> tuple[int, list[LinePlace]]:
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    return fd, list(line_places(fd))


@_MORE
@given(
    task=_JSON,
    info=st.dictionaries(_TEXT, _JSON, max_size=4),
    steps=st.lists(_JSON, max_size=4),
    scored=_EVAL,
    after=_JSON,
    sizes=st.sampled_from([(8, 64, 2**20), (2**20,)]),
)
def test_the_head_has_the_values_of_the_row(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: Any,
    info: Any,
    steps: Any,
    scored: Any,
    after: Any,
    sizes: Any,
) -> None:
    monkeypatch.setattr(row_heads, "_HEADS", sizes)
    session = {"id": "s", "info": info, "task": "t", "steps": steps}
    row = {"id": "x", "task": task, "session": session, "eval": scored, "sel_idx": after}
    line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
    row = json.loads(line)
    fd, [place] = _places(tmp_path / "rows", line + b"\n")
    try:
        head = row_head(fd, place)
    finally:
        os.close(fd)
    assert head is not None
    assert head["task"] == row["task"]
    assert head["session"] == {k: row["session"][k] for k in ("id", "info", "task")}
    assert head.get("eval", row["eval"]) == row["eval"]


@_MORE
@given(
    lines=st.lists(st.binary(max_size=40), max_size=6), chunk=st.integers(1, 50), end=st.booleans()
)
def test_lines_are_found_whatever_the_size_of_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Any, chunk: int, end: bool
) -> None:
    monkeypatch.setattr(row_heads, "_CHUNK", chunk)
    data = b"\n".join(lines) + (b"\n" if end else b"")
    fd, places = _places(tmp_path / "rows", data)
    os.close(fd)
    expected = [line for line in data.split(b"\n") if line.strip()]
    assert [data[p.at : p.at + p.length] for p in places] == expected
    assert [data.split(b"\n")[p.number - 1] for p in places] == expected
    incomplete = bool(data.split(b"\n")[-1].strip())
    assert [p.complete for p in places] == [True] * (len(places) - incomplete) + [
        False
    ] * incomplete


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"session": 3}', b"\xff", b'{"a": 1}', b'{"a"}'])
def test_other_lines_have_no_head(tmp_path: Path, line: bytes) -> None:
    fd, [place] = _places(tmp_path / "rows", line)
    assert row_head(fd, place) is None
    os.close(fd)
