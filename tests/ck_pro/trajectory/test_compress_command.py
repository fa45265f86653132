"""`python -m ck_pro.trajectory.compress`, and exports of compressed journals."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sample_runs import Samples

from ck_pro.events import EventKind
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE, Journal
from ck_pro.trajectory import compress, export, spans


@pytest.fixture
def run_folder(samples: Samples, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(samples.journals(samples.good), folder)
    with Journal(folder / "open") as journal:
        journal.append(EventKind.SESSION, sid="s", data={"task": "t", "agent": "a"})
    return folder


def _export(run: Path, name: str) -> bytes:
    out = run.parent / name
    assert export.main(["-f", "sft", "-i", str(run), "-o", str(out)]) == 0
    return out.read_bytes()


@pytest.mark.integration
def test_a_compressed_run_gives_the_same_export(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _export(run_folder, "a.jsonl")
    capsys.readouterr()
    assert compress.main([str(run_folder)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 journals: ") and "1 of runs that have not ended" in said
    names = sorted(str(p.relative_to(run_folder)) for p in run_folder.glob("*/events*"))
    assert names == [
        f"capital/{COMPRESSED_FILE}",
        f"open/{EVENTS_FILE}",
        f"sum/{COMPRESSED_FILE}",
    ]
    assert compress.main([str(run_folder)]) == 0
    said = capsys.readouterr().out
    assert (
        said == "0 journals to do; 2 already compressed; 1 of runs that have not ended, skipped\n"
    )
    assert _export(run_folder, "b.jsonl").replace(b"b_images", b"a_images") == before
    assert compress.main([str(run_folder), "--undo"]) == 0
    assert "2 journals: " in capsys.readouterr().out
    assert not list(run_folder.glob("*/*.zst"))
    assert _export(run_folder, "c.jsonl").replace(b"c_images", b"a_images") == before


def test_files_in_the_working_folder_are_skipped(run_folder: Path) -> None:
    inner = run_folder / "sum" / "work" / "inner"
    shutil.copytree(run_folder / "sum", inner, ignore=lambda *_: ["work"])
    assert compress.main([str(run_folder)]) == 0
    assert (inner / EVENTS_FILE).exists()
    assert compress.main([str(run_folder / "sum" / "work")]) == 0  # unless it is named
    assert not (inner / EVENTS_FILE).exists()


def test_open_journals_are_skipped(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Journal(run_folder / "sum"):
        assert compress.main([str(run_folder)]) == 3
        said = capsys.readouterr()
    assert "in use by another process; left unchanged" in said.err
    assert "1 failed" in said.out
    assert (run_folder / "sum" / EVENTS_FILE).exists()


@pytest.mark.parametrize("args", [[], ["nothing-here"], ["--level", "0", "."]])
def test_wrong_command_lines_are_reported(
    args: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert compress.main(args) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_broken_journal_is_reported_and_left_unchanged(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_folder / "sum" / EVENTS_FILE).write_bytes(b'{"kind":"status",nonsense\n')
    assert compress.main([str(run_folder)]) == 3
    assert "line 1: not JSON" in capsys.readouterr().err
    assert (run_folder / "capital" / COMPRESSED_FILE).exists()


def test_a_file_is_not_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.jsonl").write_text("{}")
    for command in (compress.main, spans.main):
        assert command([str(tmp_path / "rows.jsonl")]) == 2
        assert "rows.jsonl is a file: name the folder of a run" in capsys.readouterr().err
        assert command([str(tmp_path / "none")]) == 2
        assert "none: No such file or directory" in capsys.readouterr().err
