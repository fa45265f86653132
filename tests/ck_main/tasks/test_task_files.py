"""Several files of one task: lists, folders, names in the working folder, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_main.tasks.dataset import Task, read_tasks
from ck_main.tasks.task_files import placed_names


def read(folder: Path, **fields: Any) -> list[Any]:
    (folder / "tasks.jsonl").write_text(json.dumps({"question": "q", **fields}) + "\n")
    return list(read_tasks(folder / "tasks.jsonl"))


def names(folder: Path, **fields: Any) -> list[str]:
    (task,) = read(folder, **fields)
    assert isinstance(task, Task), str(task)
    assert all(path.is_file() for path in task.files.values())
    return list(task.files)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    for name in ("a.csv", "x/a.csv", "y/A.csv", "x/b.txt", "data/one.txt", "data/in/two.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "data" / ".git").mkdir()
    (tmp_path / "data" / ".git" / "config").write_text("token")
    return tmp_path


def test_a_line_names_files_as_text_as_a_list_and_as_folders(inputs: Path) -> None:
    assert names(inputs, file_name="x/b.txt") == ["b.txt"]
    assert names(inputs, files="a.csv") == ["a.csv"]
    assert names(inputs, file_name=["a.csv", "x/b.txt"]) == ["a.csv", "b.txt"]
    assert names(inputs, file_name="a.csv", files=["x/b.txt", "./a.csv"]) == ["a.csv", "b.txt"]
    assert names(inputs, files=["data"]) == ["data/one.txt", "data/in/two.txt"]
    assert names(inputs, info={"files": ["data/in"]}) == ["in/two.txt"]
    assert names(inputs, file_name="", files=[]) == []
    (task,) = read(inputs, file_name="a.csv", files=["data"])
    assert task.file_name == "a.csv, data"


def test_equal_names_get_their_paths(inputs: Path) -> None:
    assert names(inputs, files=["x/a.csv", "y/A.csv"]) == ["x/a.csv", "y/A.csv"]
    (inputs / "y" / "data").write_text("a file named like a folder")
    assert names(inputs, files=["y/data", "data/in"])[0] == "data"
    assert names(inputs, files=["y/data", "data"])[0] == "y/data"


def test_each_missing_file_is_one_line(inputs: Path) -> None:
    found = [str(one) for one in read(inputs, files=["no.csv", "a.csv", "data/no.txt"])]
    assert len(found) == 2
    assert "line 1, field 'files': the file" in found[0] and "no.csv does not exist" in found[0]
    assert "no.txt does not exist; create it, or use --files-dir" in found[1]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["../x"], "'../x' is outside of"),
        (["link"], "is outside of"),
        (["linked"], "is outside of"),
        ([3], "a value that is not text"),
        ({"a": 1}, "a value that is not text"),
        ([""], "has an empty name"),
        ("tasks.jsonl", "contains the task file with the answers"),
        (".", "contains the task file with the answers"),
        ("empty", "has no files"),
        ("pipes", "is not a regular file"),
        ("many", "names more than 1,000 files"),
    ],
)
def test_what_must_not_be_copied_is_refused(
    inputs: Path, tmp_path_factory: pytest.TempPathFactory, files: Any, said: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("x")
    (inputs / "link").symlink_to(outside / "secret")
    (inputs / "linked").mkdir()
    (inputs / "linked" / "secret").symlink_to(outside / "secret")
    (inputs / "empty").mkdir()
    (inputs / "pipes").mkdir()
    os.mkfifo(inputs / "pipes" / "p")
    if files == "many":
        (inputs / "many").mkdir()
        for number in range(1001):
            (inputs / "many" / str(number)).touch()
    (inputs / "linked" / "..").resolve()
    if files == ".":
        for name in ("link", "linked/secret", "pipes/p"):
            (inputs / name).unlink()
    (problem,) = read(inputs, files=files)
    assert said in str(problem)


parts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1)
inner = st.lists(parts.filter(lambda p: p not in (".", "..")), min_size=1, max_size=3)


@given(st.lists(inner.map("/".join), max_size=8, unique=True), st.integers(0, 2))
def test_names_are_different_safe_and_inside(paths: list[str], folders: int) -> None:
    given_names = {Path(f"/{n}"): p.replace("/", "//", folders % 2) for n, p in enumerate(paths)}
    placed = placed_names(given_names)
    assert list(placed.values()) == list(given_names)
    folded = [name.casefold() for name in placed]
    assert len(set(folded)) == len(folded)
    for name in placed:
        assert name.isprintable() and name and not name.startswith("/")
        assert ".." not in PurePosixPath(name).parts
