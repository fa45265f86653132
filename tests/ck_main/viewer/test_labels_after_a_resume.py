"""A label of a run that was interrupted, and resumed later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_runs import make_agent, read_lines, run_tasks

from ck_main.viewer.run_labels import new_label
from ck_main.viewer.runs.library import Entry, Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.trajectory.export import main as export
from ck_pro.trajectory.labels import LabelFile

pytestmark = pytest.mark.integration


def interrupted(output: Path) -> None:
    """Run a task, and take back the end of it: the reply of its last step and all that follows."""
    run_tasks(make_agent(), output, ["sum"])
    output.unlink()
    journal = output.with_suffix("") / "sum" / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    last = len(kinds) - 1 - kinds[::-1].index("model_call")
    journal.write_bytes(b"".join(lines[: last + 1]))


def label_in_viewer(output: Path, step: int, body: dict[str, Any]) -> None:
    """Append a label as the route of the viewer does."""
    library = Library(sources_of([output]))
    library.scan()
    entry: Entry = library.entries()[0]
    with library.opened(entry) as reader:
        assert reader.outline.main is not None
        target = {"sid": reader.outline.main.sid, "step": step, "call": 0}
        label = new_label({**body, "target": target}, None, reader, entry)
    LabelFile(output.with_name("a.labels.jsonl")).append(label)


def test_labels_stay_with_their_calls_when_a_run_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, labels, out = (tmp_path / n for n in ("a.jsonl", "a.labels.jsonl", "o.jsonl"))
    interrupted(output)
    label_in_viewer(output, 0, {"label": "good"})
    label_in_viewer(output, 1, {"label": None, "reply": "It is 42."})
    run_tasks(make_agent(), output, ["sum"])
    [row] = read_lines(output)
    assert row["session"]["info"]["resumed"] == 1
    for source in (output, output.with_suffix("")):
        args = ["-f", "sft", "-i", str(source), "-o", str(out), "--force", "--labels", str(labels)]
        assert export(args) == 0
        facts = [(r["metadata"]["step"], r["metadata"]["label"], r["metadata"]["corrected"])
                 for r in read_lines(out)]  # fmt: skip
        assert facts == [(0, "good", False), (1, "good", True)]
    assert capsys.readouterr().err == ""


def test_a_label_does_not_move_to_the_reply_that_replaced_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, labels, out = (tmp_path / n for n in ("a.jsonl", "a.labels.jsonl", "o.jsonl"))
    run_tasks(make_agent(wrong=True), output, ["sum"])
    label_in_viewer(output, 1, {"label": "exclude"})
    for path in (output, output.with_suffix("") / "sum" / "events.jsonl"):
        path.write_text(path.read_text().replace('"43"', '"42"'))
    args = ["-f", "sft", "-i", str(output), "-o", str(out), "--labels", str(labels)]
    assert export(args) == 0
    assert [r["metadata"]["step"] for r in read_lines(out)] == [0, 1]
    assert "the reply of its call has changed since; label it again" in capsys.readouterr().err
