"""The examples in docs/ run, and docs/ lists every setting."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from paths import ROOT

from ck_main.analyze import cli as analyze
from ck_main.main import cli as main
from ck_main.score import cli as score
from ck_pro.agent import MultiStepAgent
from ck_pro.agent_settings import ExecutorSettings
from ck_pro.trajectory.compress import cli as compress
from ck_pro.trajectory.diff import cli as diff
from ck_pro.trajectory.export import cli as export
from ck_pro.trajectory.fork import cli as fork
from ck_pro.trajectory.spans import cli as spans

DOCS = ROOT / "docs"


def text_of(*names: str) -> str:
    return "\n".join((DOCS / name).read_text(encoding="utf-8") for name in names)


@pytest.mark.parametrize("command", [main, analyze, compress, diff, export, fork, score, spans])
def test_each_option_is_explained(command: click.Command) -> None:
    text = text_of("running.md", "trajectories.md", "scale.md", "analysis.md")
    names = [max(p.opts, key=len) for p in command.params if isinstance(p, click.Option)]
    assert [n for n in names if not re.search(rf"{n}\b", text)] == []


def test_each_setting_is_explained() -> None:
    text = text_of("agents.md")
    names = [*MultiStepAgent().setting_names(), *ExecutorSettings().setting_names()]
    assert [n for n in names if not re.search(rf"[`.]{n}`", text) and n != "executor"] == []


@pytest.mark.worker
def test_the_page_for_authors_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "extending"}
    for code in re.findall(r"^```python\n(.*?)^```", text_of("extending.md"), re.S | re.M):
        exec(compile(code, "extending.md", "exec"), names)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Hello."
    assert shown[1] == "done all on Lamps: on on on"
    assert shown[2] == "{'output': '12', 'log': ''}"
    assert "no switching at night" in "\n".join(shown)
    assert "DONE [('task0000', 'all on', 1)]" in shown
    assert "['done', 'done']" in shown
    assert shown[-2].startswith("action 1 'Two are off") and "'prompt_tokens': 120" in shown[-1]
