"""Large JSON, read part by part and written piece by piece, equals small JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.trajectory.reading import big_json
from ck_pro.trajectory.reading.big_json import (
    JsonFile,
    LargeList,
    LargeObject,
    NotJsonError,
    Pairs,
    json_pieces,
    open_json,
    plain,
)

TEXTS = st.text(st.sampled_from('ab\\"[]{},: \n\x00é\U0001f600\ud800'), max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
Opener = Callable[[bytes], Any]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    """Open bytes as if every object and list were large, with windows of seven bytes."""
    path = tmp_path_factory.mktemp("json") / "x"

    def open_bytes(text: bytes) -> Any:
        path.unlink(missing_ok=True)
        path.write_bytes(b"--" + text + b"--")
        return open_json(JsonFile(path), 2, len(text))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(big_json, "LARGE", 1)
        patch.setattr(big_json, "_WINDOW", 7)
        yield open_bytes


@given(value=JSON, ascii=st.booleans(), indent=st.sampled_from([None, 1]))
def test_a_large_value_equals_the_parsed_json(
    opened: Opener, value: Any, ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = json.dumps(value, indent=indent).encode()
    found = opened(b" " + data + b"\n")
    assert isinstance(found, LargeObject | LargeList) == isinstance(value, dict | list)
    assert plain(found) == value
    assert json.loads(b"".join(json_pieces(found))) == value


@given(value=JSON, at=st.integers(0, 200), put=st.sampled_from([b"", b",", b"]", b"}", b'"', b"x"]))
def test_invalid_json_raises_or_reads_like_json(
    opened: Opener, value: Any, at: int, put: bytes
) -> None:
    text = json.dumps([value]).encode()
    text = text[:at] + put + text[at + 1 :]
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(NotJsonError, match="not JSON"):
            plain(opened(text))
    else:
        assert plain(opened(text)) == expected


def test_only_accessed_parts_are_parsed(opened: Opener) -> None:
    found = opened(b'{"id": 7, "steps": [1, nonsense, 3], "\\u0061": {}}')
    assert list(found) == ["id", "steps", "a"] and len(found) == 3
    steps = found["steps"]
    assert found["steps"] is steps and len(steps) == 3 and steps[-1] == 3 and steps[:1] == [1]
    with pytest.raises(NotJsonError, match=r"not JSON: .* \(in the value at byte 24\)"):
        steps[1]
    assert "b" not in found and found.get("b") is None


@given(JSON)
def test_pieces_equal_the_output_of_json(value: Any) -> None:
    def made(part: Any) -> Any:
        if isinstance(part, dict):
            return Pairs((k, made(v)) for k, v in part.items())
        return (made(v) for v in part) if isinstance(part, list) else part

    for form in (value, made(value)):
        text = b"".join(json_pieces(form))
        assert json.loads(text) == value
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            continue  # an escape
        assert text == json.dumps(value, ensure_ascii=False).encode()


def test_nan_is_written_as_null() -> None:
    value = {"a": [float("nan"), 1.5], "b": iter([float("-inf")])}
    assert json.loads(b"".join(json_pieces(value))) == {"a": [None, 1.5], "b": [None]}
    with pytest.raises(TypeError, match="set is not JSON"):
        list(json_pieces({"a": {1}}))
