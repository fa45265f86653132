"""Formats are declared once: the command, its help and the docs derive from the declarations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from ck_pro.exceptions import ConfigError
from ck_pro.trajectory import formats
from ck_pro.trajectory.export import FORMATS, cli

ONE_FILE = """
from ck_pro.trajectory.formats.export_format import ExportFormat

def rows(call, layout):
    return [{"asked": call.prompt[-1]["content"], "answered": call.reply["content"]}]

FORMAT = ExportFormat(
    name="pairs-of-text", help="the last message and the reply", trainer="a script",
    row="`asked, answered`", images="none", call_rows=rows, json_images=("drop",),
)
"""
WITH_FOLDER = (
    "import sys; from ck_pro.trajectory import formats; formats.__path__.append(sys.argv[1]);"
    "from ck_pro.trajectory.export import main; sys.exit(main(sys.argv[2:]))"
)


def test_the_docs_have_the_line_of_each_format() -> None:
    text = (ROOT / "docs" / "trajectories.md").read_text()
    table = text.partition("| `--format` |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == [f.docs_line() for f in FORMATS.values()]


def test_the_command_offers_each_format() -> None:
    (option,) = [p for p in cli.params if p.name == "format_"]
    assert list(option.type.choices) == list(FORMATS)  # type: ignore[attr-defined]
    assert cli.epilog is not None
    assert all(f"\n  {name} " in cli.epilog for name in FORMATS)


def test_each_format_makes_rows_of_calls_or_of_runs() -> None:
    for form in FORMATS.values():
        assert (form.call_rows is None) is form.whole_runs
        assert form.json_images or form.parquet_columns


def test_two_formats_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sft_again.py").write_text("from ck_pro.trajectory.formats.sft import FORMAT\n")
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    with pytest.raises(ConfigError, match="two export formats are named 'sft'"):
        formats.export_formats()
    sys.modules.pop("ck_pro.trajectory.formats.sft_again")


@pytest.mark.integration
def test_one_file_adds_a_format(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "text_pairs.py").write_text(ONE_FILE)
    action = {"llm_input": [{"role": "user", "content": "1 + 1?"}], "llm_output": "2"}
    row = {"id": "t", "task": "t", "session": {"info": {}, "steps": [{"action": action}]}}
    (tmp_path / "r.jsonl").write_text(json.dumps(row))

    def run(*args: str) -> str:
        command = [sys.executable, "-c", WITH_FOLDER, str(tmp_path / "new"), *args]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    assert "pairs-of-text  the last message and the reply" in run("--help")
    run("-f", "pairs-of-text", "-i", "r.jsonl", "-o", "o.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert rows == [{"asked": "1 + 1?", "answered": "2"}]
