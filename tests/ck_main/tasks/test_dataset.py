"""Task files: what is read, and the one line that each fault gives."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_main.tasks.dataset import (
    QUESTION_NAMES,
    LineProblem,
    Task,
    UnusableItem,
    parse_task,
    read_tasks,
    safe_name,
)
from ck_main.tasks.task_lines import MAX_LINE_BYTES
from ck_pro.exceptions import TaskFileError


def read(tmp_path: Path, content: bytes | str | list[Any], **kwargs: Any) -> list[Any]:
    path = tmp_path / "tasks.jsonl"
    if isinstance(content, list):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_tasks(path, **kwargs))


def one_problem(tmp_path: Path, row: Any) -> str:
    """The text for a bad line between two good ones, which must both be read."""
    found = read(tmp_path, [{"question": "a"}, row, {"question": "b"}])
    assert [type(f) for f in found] == [Task, LineProblem, Task]
    assert [found[0].id, found[2].id] == ["task0000", "task0002"]
    text = str(found[1])
    assert text.startswith(f"{tmp_path / 'tasks.jsonl'}, line 2") and "\n" not in text
    return text


@pytest.mark.parametrize("name", QUESTION_NAMES)
@pytest.mark.parametrize("nested", [False, True])
def test_question_names(tmp_path: Path, name: str, nested: bool) -> None:
    row: dict[str, Any] = {name: "q", "true_answer": 7}
    (task,) = read(tmp_path, [{"info": row} if nested else row])
    assert (task.question, task.answer, task.id) == ("q", "7", "task0000")
    assert task.original == ({"info": row} if nested else row)


def test_the_first_name_wins(tmp_path: Path) -> None:
    row = {"question": "1", "task": "2", "info": {"Question": "3"}, "id": 5}
    row2 = {"question": None, "query": "4", "Final answer": "x", "answer": "y", "task_id": "t"}
    one, two = read(tmp_path, [row, row2])
    assert (one.question, one.id) == ("1", "5")
    assert (two.question, two.answer, two.id) == ("4", "x", "t")


@pytest.mark.parametrize("answer", [None, "", "?", " "])
def test_a_withheld_answer_is_unknown(tmp_path: Path, answer: Any) -> None:
    (task,) = read(tmp_path, [{"question": "q", "answer": answer}])
    assert task.answer is None


def test_a_list_of_answers_is_written_as_text(tmp_path: Path) -> None:
    (task,) = read(tmp_path, [{"question": "q", "answer": ["a", 2]}])
    assert task.answer == "a, 2"


def test_bom_crlf_and_blank_lines_do_not_matter(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"question": "a"}\r\n\r\n  \n{"question": "b"}'
    assert [t.id for t in read(tmp_path, content)] == ["task0000", "task0001"]


def test_old_line_ends_and_byte_order_marks_inside_a_file_do_not_matter(
    tmp_path: Path,
) -> None:
    content = b'{"question": "a"}\r\r{"question": "\xc3\xa0"}\r\xef\xbb\xbf{"question": "c"}\r'
    assert [t.question for t in read(tmp_path, content)] == ["a", "\xe0", "c"]
    *_, bad = read(tmp_path, content + b"  x\r")
    assert str(bad).endswith(", line 5: is not JSON: Expecting value at column 3; correct the line")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "x"}, "field 'question': is missing; use one of question, Question"),
        ({"question": ""}, "field 'question': is empty"),
        ({"Query": 3}, "field 'Query': is a number; the question must be text"),
        ({"question": ["x"]}, "field 'question': is a list"),
        ("text", "is text, not an object"),
        ([1], "is a list, not an object"),
        (None, "is null, not an object"),
        ({"question": "q", "id": True}, "field 'id': is true/false"),
        ({"question": "q", "task_id": " "}, "field 'task_id': is empty"),
        ({"question": "q", "id": "x" * 201}, "field 'id': has 201 characters"),
        ({"question": "q", "answer": {}}, "field 'answer': is an object"),
        ({"question": "q", "file_name": 3}, "field 'file_name': has a value that is not text"),
        ({"question": "q", "file_name": "no.csv"}, "field 'file_name': the file /"),
        ({"question": "q", "file_name": "../x"}, "is outside of"),
        ({"question": "q", "file_name": "/etc/passwd"}, "is outside of"),
        ({"question": "q", "file_name": "x\0y"}, "is not a file name"),
        ({"question": "q", "file_name": "x" * 5000}, "is not a file name"),
        ({"question": "q", "id": "task0000"}, "field 'id': 'task0000' is already the id of line 1"),
        ({"question": "\ud800"}, "has a lone surrogate"),
    ],
)
def test_an_invalid_field_is_one_line_and_the_others_are_read(
    tmp_path: Path, row: Any, said: str
) -> None:
    assert said in one_problem(tmp_path, row)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"question": "a"', "is not JSON: Expecting ',' delimiter at column 17"),
        (b"hello", "is not JSON"),
        (b'{"question": NaN}', "NaN is not a JSON value"),
        (b'{"question": "q", "answer": 1e400}', "1e400 is too large for a number"),
        (b'{"question": "\xff"}', "is not UTF-8 at byte 15"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"question": "' + b"x" * MAX_LINE_BYTES + b'"}', "longer than 1,000,000 bytes"),
        (b'{"question": "q", "n": ' + b"9" * 5000 + b"}", "a number of 5000 digits is too long"),
        (b'{"question": "a\0b"}', "Invalid control character at column 16; correct"),
    ],
)
def test_a_broken_line_is_one_line_and_the_others_are_read(
    tmp_path: Path, line: bytes, said: str
) -> None:
    found = read(tmp_path, b'{"question": "a"}\n' + line + b'\n{"question": "b"}\n')
    assert [type(f) for f in found] == [Task, LineProblem, Task]
    assert said in str(found[1]) and ", line 2" in str(found[1])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize(
    "form", ['{"question": "%s"}\n{"question": "b"}\n', '[{"question": "%s"}]']
)
def test_a_file_in_another_encoding_is_reported_once(
    tmp_path: Path, encoding: str, form: str
) -> None:
    (problem,) = read(tmp_path, (form % "caf\xe9").encode(encoding))
    assert str(problem).endswith(", line 1: is UTF-16 or UTF-32; save the file as UTF-8")


def test_a_compressed_file_is_reported(tmp_path: Path) -> None:
    (problem,) = read(tmp_path, gzip.compress(b'{"question": "a"}'))
    assert "is compressed data; decompress the file" in str(problem)


def test_a_line_at_the_limit_is_read(tmp_path: Path) -> None:
    line = b'{"question": "' + b"x" * (MAX_LINE_BYTES - 16) + b'"}'
    assert len(line) == MAX_LINE_BYTES
    assert [type(f) for f in read(tmp_path, line + b"\r\n" + line)] == [Task, Task]


def test_files_are_found_in_the_folder_of_the_task_file_or_in_files_dir(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.csv").write_text("x")
    (one,) = read(tmp_path, [{"question": "q", "file_name": "a.csv"}])
    assert one.file_name == "a.csv" and one.files == {"a.csv": (tmp_path / "a.csv").resolve()}
    rows = [{"question": "q", "file_name": "b.csv"}, {"question": "q", "file_name": "../a.csv"}]
    two, out = read(tmp_path, rows, files_dir=tmp_path / "more")
    assert two.files == {"b.csv": (tmp_path / "more" / "b.csv").resolve()}
    assert "is outside of" in str(out)


def test_an_unreadable_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.txt").write_text("")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # who is root may read all
    assert "f.txt is not readable" in one_problem(tmp_path, {"question": "q", "file_name": "f.txt"})


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    tasks = tmp_path / "in"
    tasks.mkdir()
    (tmp_path / "secret").write_text("x")
    (tasks / "link").symlink_to(tmp_path / "secret")
    (problem,) = read(tasks, [{"question": "q", "file_name": "link"}])
    assert "is outside of" in str(problem)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_list(tmp_path: Path, indent: int | None) -> None:
    rows = [{"question": "a"}, 3, {"question": "b"}]
    one, bad, two = read(tmp_path, "\n" + json.dumps(rows, indent=indent) + "\n")
    assert (one.id, two.id) == ("task0000", "task0002")
    assert "is a number, not an object" in str(bad)
    assert f"line {2 if indent is None else 6}:" in str(bad)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[{"question": "a"},\n {"question" "b"}]', "line 2: is not JSON"),
        ('[{"question": "a"}\n {"question": "b"}]', "line 2: ',' or ']' is missing"),
        ('[{"question": "a"}\n', "line 2: ',' or ']' is missing"),
        ('[\n{"question": "a"}\n]\nx', "line 3: has text after the end of the list"),
    ],
)
def test_a_broken_json_list_keeps_what_came_before(tmp_path: Path, content: str, said: str) -> None:
    task, problem = read(tmp_path, content)
    assert task.question == "a" and said in str(problem)


def test_lines_that_begin_with_a_stray_list_stay_lines(tmp_path: Path) -> None:
    bad, good = read(tmp_path, '["x"]\n{"question": "a"}\n')
    assert isinstance(bad, LineProblem) and good.id == "task0001"


def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(TaskFileError, match="cannot read the task file"):
            list(read_tasks(path))


def test_a_pipe_is_refused_without_reading_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TaskFileError, match="write the tasks to a regular file"):
        list(read_tasks(tmp_path / "pipe"))


def test_different_ids_have_different_folders(tmp_path: Path) -> None:
    ids = ["a", "A", "a/b", "a_b", "..", ".", "con", "é", "è", "x" * 90, "x" * 91, "-rf"]
    tasks = read(tmp_path, [{"question": "q", "id": i} for i in ids])
    assert [t.id for t in tasks] == ids
    assert len({t.folder.casefold() for t in tasks}) == len(ids)
    assert tasks[0].folder == "a" and tasks[3].folder == "a_b"


@pytest.mark.parametrize(
    "name",
    [
        *("status.json", "Status-17.json", "run.log", "run.log.jsonl"),
        *("try-1", "attempt-12", "work", "blobs", "lock", "events.jsonl", "events.jsonl.zst"),
    ],
)
def test_no_task_folder_has_a_reserved_name(name: str) -> None:
    assert safe_name(name).startswith(f"{name}-") and safe_name(f"a{name}") == f"a{name}"


@given(st.text(min_size=1))
def test_a_safe_name_is_one_part_of_a_path(task_id: str) -> None:
    name = safe_name(task_id)
    assert 0 < len(name) <= 80 and Path(name).parts == (name,) and name.isascii()
    assert name[0] not in ".-" and not name.endswith(".")
    assert safe_name(task_id) == name


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
field_names = st.sampled_from(["question", "task", "id", "answer", "file_name", "info", "x"])


@given(st.dictionaries(field_names, json_values | st.dictionaries(field_names, json_values)))
def test_any_object_is_a_task_or_a_problem(item: dict[str, Any]) -> None:
    try:
        task = parse_task(item, 3, Path("/nowhere"), set())
    except UnusableItem as e:
        assert "\n" not in e.text
    else:
        assert task.question.strip() and task.original == item


@given(st.binary(max_size=300))
def test_any_bytes_are_read(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    for found in read_tasks(path):
        assert "\n" not in str(found) or isinstance(found, Task)


def test_one_object_over_several_lines_is_reported_once(tmp_path: Path) -> None:
    row = {"question": "a", "info": {"b": [1, 2]}}
    (problem,) = read(tmp_path, "\n" + json.dumps(row, indent=2) + "\n")
    assert "is one object on several lines; write it on one line" in str(problem)
    broken = json.dumps(row, indent=2).replace(",", "")
    assert len(read(tmp_path, broken)) > 1
    assert isinstance(read(tmp_path, '{"question": \n{"question": "b"}\n')[1], Task)
