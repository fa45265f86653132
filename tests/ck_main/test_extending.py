"""The Python of docs/extending.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/extending.md"


@pytest.mark.worker
def test_the_page_for_authors_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "extending"}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M):
        exec(compile(code, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Hello."
    assert shown[1] == "done all on Lamps: on on on"
    assert shown[2] == "{'output': '12', 'log': ''}"
    assert "no switching at night" in "\n".join(shown)
    assert "DONE [('task0000', 'all on', 1)]" in shown
    assert "['done', 'done']" in shown
    assert shown[-2].startswith("action 1 'Two are off") and "'prompt_tokens': 120" in shown[-1]
