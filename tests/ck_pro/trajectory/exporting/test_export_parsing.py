"""Parsing of arbitrary messages, tool calls, conditions and lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import InputError
from ck_pro.trajectory.exporting.filters import Condition
from ck_pro.trajectory.formats.layout import Layout, tagged_text
from ck_pro.trajectory.reading.attempts import tries_of, value_at
from ck_pro.trajectory.reading.messages import (
    Image,
    MessageError,
    normal_messages,
    normal_tool_calls,
)
from ck_pro.trajectory.reading.sources import Problem, Record, read_records

KEYS = """role content type text image_url url tool_calls function name arguments id session steps
action x"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=3)
    ),
    max_leaves=8,
)
PART = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=30)),
    st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
    st.just({"type": "image_url", "image_url": "data:image/jpeg;base64,AAAA"}),
)
MESSAGE = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["system", "user", "assistant", "tool", "developer"]),
    st.text(max_size=30) | st.lists(PART, max_size=4),
)


@given(JSON)
def test_any_prompt_is_read_or_refused(given_: Any) -> None:
    images: list[Image] = []
    try:
        messages = normal_messages(given_, images)
    except MessageError as e:
        assert e.reason in str(e)
        return
    assert all(m["role"] in ("system", "user", "assistant", "tool") for m in messages)


@given(st.lists(MESSAGE, max_size=5))
def test_normal_prompts_keep_their_images_and_stay_normal(given_: Any) -> None:
    images: list[Image] = []
    messages = normal_messages(given_, images)
    parts = [p for m in messages if isinstance(m["content"], list) for p in m["content"]]
    assert len(images) == sum(p["type"] == "image" for p in parts) == str(given_).count("base64")
    plain = [m for m in messages if isinstance(m["content"], str)]
    assert normal_messages(plain, []) == plain


@given(st.text(alphabet="<>image/ vdo\n") | st.text(), st.integers(0, 3))
def test_tags_equal_images_in_number(text: str, count: int) -> None:
    content = [{"type": "text", "text": text}, *[{"type": "image"}] * count]
    layout = Layout(images="folder", has_images=True)
    shown = tagged_text({"role": "user", "content": content}, layout)
    assert len(re.findall("<image>|<video>|<audio>", shown)) == count


@given(JSON)
def test_any_tool_call_is_read_or_refused(given_: Any) -> None:
    try:
        calls = normal_tool_calls(given_)
    except MessageError:
        return
    assert all(isinstance(c["function"]["arguments"], dict) for c in calls)


@given(st.text(), JSON)
def test_conditions_never_fail_on_a_row(text: str, value: Any) -> None:
    for op in ("==", "!=", ">=", "<=", ">", "<", "~", "!~"):
        try:
            condition = Condition.parse(f"x.y{op}{text}")
        except InputError:
            continue
        assert condition.holds({"x": {"y": value}}) in (True, False)


@pytest.mark.parametrize(
    ("condition", "row", "holds"),
    [
        ("a==1", {"a": 1}, True),
        ("a==1", {"a": "1"}, True),
        ("a==one", {"a": "one"}, True),
        ("a==1", {"a": True}, True),
        ("a==true", {"a": True}, True),
        ("a!=1", {}, True),
        ("a==null", {}, False),
        ("a>=0", {}, False),
        ("a>x", {"a": 1}, False),
        ("a.0.b<2", {"a": [{"b": 1.5}]}, True),
        ("a~^X.z$", {"a": "xyz"}, True),
        ('a~"k": 1', {"a": {"k": 1}}, True),
        ("a!~x", {"a": "xyz"}, False),
        ("a ~ b c", {"a": "ab cd"}, True),
        ("a.Final answer >= 3", {"a": {"Final answer": "4"}}, True),
    ],
)
def test_conditions_match_rows(condition: str, row: dict[str, Any], holds: bool) -> None:
    assert Condition.parse(condition).holds(row) is holds


@given(st.lists(JSON | st.binary(max_size=60), max_size=5))
def test_any_file_gives_records_or_problems(tmp_path_factory: Any, lines: list[Any]) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "any.jsonl"
    raw = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines]
    path.write_bytes(b"\n".join(raw))
    for found in read_records([path]):
        assert isinstance(found, Record | Problem)
        if isinstance(found, Record):
            assert isinstance(found.row["session"]["steps"], list)


@pytest.mark.parametrize(
    ("score", "value"), [(1, 1.0), (True, 1.0), ("0.5", 0.5), (" Wrong ", 0.0), (None, None)]
)
def test_scores_are_numbers_or_words(score: Any, value: float | None) -> None:
    row = {"session": {"steps": []}, "judge": {"score": score}}
    assert tries_of("w", row, "judge.score")[-1].score == value
    assert tries_of("w", row, "judge.none")[-1].score is None


@pytest.mark.parametrize("score", ["great", [1], {}, float("nan")])
def test_other_values_are_not_scores(score: Any) -> None:
    with pytest.raises(InputError, match=r"eval\.corr is .*, which is not a score"):
        tries_of("w", {"session": {"steps": []}, "eval": {"corr": score}})


@given(JSON, st.text(alphabet="abx.0", max_size=8))
def test_paths_never_fail_on_a_row(row: Any, path: str) -> None:
    value_at(row, path)
