"""`python -m ck_main.share`: which run it chooses, what it writes, and its errors in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from viewer_runs import PICTURE, RunWriter, output_with

from ck_main.share import main

PAGE_MARK = '<script type="application/json" id="ck-data">'


def share(*args: object) -> int:
    return main([str(arg) for arg in args])


def test_a_page_and_a_summary_of_one_task_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = output_with(tmp_path, "one", "two")
    page, summary = tmp_path / "run.html", tmp_path / "run.md"
    assert share(output, "--task", "two", "--html", page, "--markdown", summary) == 0
    assert summary.read_text().startswith("# two\n")
    text = page.read_text()
    assert PAGE_MARK in text and "What is the answer of two?" in text
    assert "answer of one" not in text and "<title>two</title>" in text
    written = capsys.readouterr().out.splitlines()
    assert written == [f"{f}: {f.stat().st_size:,} bytes" for f in (page, summary)]


@pytest.mark.parametrize("journals", [True, False])
def test_a_run_is_shared_from_its_journal_or_its_row(tmp_path: Path, journals: bool) -> None:
    output = output_with(tmp_path, "one", journals=journals)
    page = tmp_path / "run.html"
    assert share(output, "--html", page) == 0
    assert "zebra crossing" in page.read_text()


def test_the_folder_of_a_task_is_a_run(tmp_path: Path) -> None:
    output_with(tmp_path, "one", "two")
    assert share(tmp_path / "a" / "one", "--markdown", tmp_path / "one.md") == 0
    assert "# one" in (tmp_path / "one.md").read_text()


def test_a_gif_is_written_beside_the_summary_that_shows_it(tmp_path: Path) -> None:
    run = RunWriter(tmp_path / "run", "pictured")
    click = ("click", {"id": 3}, "click [3] link 'Help': done")
    run.step(0, calls=(click,))
    picture = {"image": PICTURE, "width": 1, "height": 1, "url": "u", "call": 0, "targets": []}
    run.append("picture", picture, i=0)
    run.finish()
    gif, summary = tmp_path / "g.gif", tmp_path / "sub" / "s.md"
    summary.parent.mkdir()
    assert share(tmp_path / "run", "--gif", gif, "--markdown", summary) == 0
    assert gif.read_bytes().startswith(b"GIF89a")
    assert "(<../g.gif>)" in summary.read_text()


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        ((), 2, "give at least one of --html, --gif, --webm and --markdown"),
        (("--html", "x.html"), 2, "has 2 tasks; choose one by --task: one, two"),
        (("--task", "no", "--html", "x.html"), 2, "has no task 'no'; it has one, two"),
        (("--task", "one", "--try", "3", "--html", "x"), 2, "task 'one' has no try '3'; it has 1"),
        (("--task", "one", "--gif", "x.gif"), 2, "has no pictures of its browser; run it with"),
        (("--task", "one", "--markdown", "no/x.md"), 4, "cannot write no/x.md: No such file"),
    ],
)
def test_each_error_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    code: int,
    line: str,
) -> None:
    output = output_with(tmp_path, "one", "two")
    monkeypatch.chdir(tmp_path)
    assert share(output, *options) == code
    error = capsys.readouterr().err
    assert line in error and "Traceback" not in error
    assert not [f for f in tmp_path.iterdir() if f.suffix in (".html", ".gif", ".md", ".part")]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--html", "old.html"), "old.html exists already; give --force to replace it"),
        (("--html", "a"), "a is a folder; name a file"),
        (("--html", "/dev/null", "--force"), "/dev/null: the output is renamed"),
        (("--html", "x", "--markdown", "x"), "x is given twice"),
    ],
)
def test_no_file_is_replaced_by_mistake(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    line: str,
) -> None:
    output_with(tmp_path, "one")
    monkeypatch.chdir(tmp_path)
    Path("old.html").write_text("old")
    rows = Path("a.jsonl").read_bytes()
    assert share("a.jsonl", *options) == 4
    assert line in capsys.readouterr().err
    assert Path("old.html").read_text() == "old" and Path("a.jsonl").read_bytes() == rows


def test_a_file_is_replaced_with_force(tmp_path: Path) -> None:
    output = output_with(tmp_path, "one")
    page = tmp_path / "old.html"
    page.write_text("old")
    assert share(output, "--html", page, "--force") == 0
    assert PAGE_MARK in page.read_text()


def test_a_missing_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert share(tmp_path / "no.jsonl", "--html", tmp_path / "x.html") == 2
    assert "no.jsonl" in capsys.readouterr().err


def test_a_page_above_the_limit_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunWriter(tmp_path / "run", "large")
    run.step(0, observation="x" * 1_100_000)
    run.finish()
    assert share(tmp_path / "run", "--html", tmp_path / "x.html", "--max-mb", 1) == 2
    assert "more than 1 MB: leave out the prompts with --no-prompts" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()
