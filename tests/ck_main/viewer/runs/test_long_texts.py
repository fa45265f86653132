"""Long texts in responses are shortened, and the rest can be read in pieces."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ck_main.viewer.runs.long_texts import MAX_CHARS, MAX_TOTAL, shortened, text_at

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=15,
)


def test_a_long_text_can_be_read_whole_in_pieces() -> None:
    text = "".join(str(n) for n in range(100_000))
    value = {"a.b": {"c": [{"text": text}]}, "image": "data:image/png;base64," + "A" * 400_000}
    short, [more] = shortened(value)
    assert more == {"path": "a.b.c.0.text", "shown": MAX_CHARS, "chars": len(text)}
    found = short["a.b"]["c"][0]["text"]
    assert short["image"] == value["image"]
    while len(found) < more["chars"]:
        piece = text_at(value, more["path"], len(found))
        assert piece is not None
        found += piece["text"]
    assert found == text


def test_a_response_has_a_limit_for_all_its_texts() -> None:
    value = ["x" * MAX_CHARS] * 100
    short, more = shortened(value)
    assert len(json.dumps(short)) < 1.2 * MAX_TOTAL
    assert {m["chars"] for m in more} == {MAX_CHARS}


def test_deep_data_is_cut_off() -> None:
    value: Any = "end"
    for _ in range(500):
        value = [value]
    json.dumps(shortened(value)[0])


@given(_JSON)
def test_data_without_long_texts_is_unchanged(value: Any) -> None:
    assert shortened(value) == (value, [])


@given(_JSON, st.text(max_size=12), st.integers(-5, 50))
def test_any_path_gives_text_or_nothing(value: Any, path: str, start: int) -> None:
    piece = text_at(value, path, start)
    assert piece is None or piece["chars"] >= len(piece["text"])
