"""Configuration files and updates: notations, merging, and one clear line per fault."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import ConfigError
from ck_pro.settings import leaves, line_of, load_settings, merge_settings, parse_update

CONTENTS = {
    "c.yaml": "# a comment\nmax_steps: 5\nmodel:\n  call_target: gpt:x\n",
    "c.yml": "{max_steps: 5, model: {call_target: 'gpt:x'}}",
    "c.json": '{"max_steps": 5, "model": {"call_target": "gpt:x"}}',
    "c.py": "# a comment\n{'max_steps': 5, 'model': {'call_target': 'gpt:x',},}\n",
    "c.txt": "\ufeff{'max_steps': 5, 'model': {'call_target': 'gpt:x'}}",
}


_BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 8)
)


@pytest.mark.parametrize("name", CONTENTS)
def test_notations(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CONTENTS[name], encoding="utf-8")
    expected = {"max_steps": 5, "model": {"call_target": "gpt:x"}}
    assert load_settings(tmp_path / name, []) == expected


@pytest.mark.parametrize("content", ["", "\n# only a comment\n", "null"])
def test_an_empty_file_has_no_settings(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.yaml").write_text(content)
    assert load_settings(tmp_path / "c.yaml") == {}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("c.yaml", "a: 1\nb: [1\n", "c.yaml, line 3: not YAML"),
        ("c.yaml", "a: 1\nb: 2\na: 3\n", "c.yaml, line 3: not YAML: 'a' is given twice"),
        ("c.yaml", "- a\n", "must be a dict of settings, not a list"),
        ("c.yaml", "a:\n  1: x\n", "a: the name 1 is not text"),
        ("c.yaml", "a: !!python/object:os.system x\n", "line 1: not YAML"),
        ("c.yaml", "a: \x00", "line 1: not YAML"),
        ("c.json", '{"a": 1,\n "b" 2}', "c.json, line 2: not JSON"),
        ("c.json", '{"a": 1, "a": 2}', "'a' is given twice"),
        ("c.py", "{'a': 1,\n 'b': open('x')}", "c.py, line 2: only literals are allowed"),
        ("c.py", "{'a': 1,\n 'b' 2}", "c.py, line"),
        ("c.toml", "a = 1", "must end in one of"),
        ("c.yaml", "7\n", "not a single value"),
        ("c.yaml", "&a\nb: {c: *a}\n", "c.yaml: a value contains itself"),
        ("c.yaml", "b: &a [{c: 1}, *a]\n", "c.yaml: a value contains itself"),
        ("c.yaml", _BOMB, "c.yaml: its aliases stand for more than 100,000 values"),
        ("c.yaml", "b: [{1: 2}]\n", "b: the name 1 is not text"),
    ],
)
def test_a_fault_in_a_file_is_one_line(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path / name)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_settings(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml, line 2: not UTF-8"):
        load_settings(tmp_path / "latin.yaml")


def test_a_pipe_is_refused_without_reading_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match=r"pipe\.yaml: is a pipe"):
        load_settings(tmp_path / "pipe.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", 10),
        ("-7", -7),
        ("0o10", 8),
        ("0x1F", 31),
        ("1e-3", 0.001),
        ("2E5", 200000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5e+2", -150.0),
        ("-.inf", float("-inf")),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("1_000", "1_000"),
        ("1e", "1e"),
        ("+.e1", "+.e1"),
        ("off", False),
        ("~", None),
        ("8080:80", "8080:80"),
    ],
)
def test_yaml_reads_what_one_means(tmp_path: Path, text: str, value: Any) -> None:
    (tmp_path / "c.yaml").write_text(f"a: {text}\n")
    read = load_settings(tmp_path / "c.yaml")["a"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': {'b': True}}", {"a": {"b": True}}),
        ('{"a": {"b": true}}', {"a": {"b": True}}),
        ("a.b=gpt:x", {"a": {"b": "gpt:x"}}),
        ("a = 5", {"a": 5}),
        ("a=true", {"a": True}),
        ("a=None", {"a": None}),
        ("a=", {"a": ""}),
        ("a='5'", {"a": "5"}),
        ("a={'b': [1, 2]}", {"a": {"b": [1, 2]}}),
        ("a=http://h:1/v1?x=y", {"a": "http://h:1/v1?x=y"}),
    ],
)
def test_updates(text: str, expected: dict[str, Any]) -> None:
    assert parse_update(text) == expected


@pytest.mark.parametrize("text", ["", "a", "=5", "a..b=1", "1a=2", "{a: 1}", "{'a'", "{1: 2}"])
def test_a_wrong_update_is_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match="--updates") as caught:
        parse_update(text)
    assert "\n" not in str(caught.value)


def test_layers_merge_from_left_to_right(tmp_path: Path) -> None:
    config = {"model": {"call_target": "a", "call_kwargs": {"t": 0, "n": 1}}, "tools": [1, 2]}
    (tmp_path / "c.json").write_text(json.dumps(config))
    updates = ["{'model': {'call_kwargs': {'t': 1}}, 'tools': [3]}", "model=b", "x.y=1", "x.z=2"]
    assert load_settings(tmp_path / "c.json", updates) == {
        "model": {"call_target": "b", "call_kwargs": {"t": 1, "n": 1}},
        "tools": [3],
        "x": {"y": 1, "z": 2},
    }


def test_a_text_and_a_dict_for_a_model_merge() -> None:
    merged = merge_settings({"end_model": "a", "name": "x"}, {"end_model": {"k": 1}, "name": {}})
    assert merged == {"end_model": {"call_target": "a", "k": 1}, "name": {}}


def test_merging_leaves_its_inputs_alone() -> None:
    base, update = {"a": {"b": 1}}, {"a": {"c": 2}}
    merge_settings(base, update)
    assert (base, update) == ({"a": {"b": 1}}, {"a": {"c": 2}})


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("c.yaml", "# x\nb: 1\na:\n  b: 2\n", 4),
        ("c.json", '{"b": 1,\n "a": {\n\n"b": 2}}', 4),
        ("c.json", '{"b": 1,\n\t"a": {\n\t"b": 2}}', None),
        ("c.py", "\n{'b': 1,\n'a': {\n 'b': 2}}", 4),
        ("c.yaml", "a: 1\n", None),
        ("c.py", "{'a': 1}", None),
    ],
)
def test_the_line_of_a_setting(tmp_path: Path, name: str, content: str, line: int | None) -> None:
    (tmp_path / name).write_text(content)
    assert line_of(tmp_path / name, ("a", "b")) == line


def test_leaves() -> None:
    found = leaves({"a": {"b": 1, "c": {}}, "d": [1]})
    assert found == {("a", "b"): 1, ("a", "c"): {}, ("d",): [1]}


@given(st.text())
def test_any_text_is_an_update_or_a_config_error(text: str) -> None:
    try:
        assert isinstance(parse_update(text), dict)
    except ConfigError as e:
        assert "--updates" in str(e)
