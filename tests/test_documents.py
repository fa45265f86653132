"""What the documents say: links lead somewhere, code can be read, examples run."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from paths import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "benchmarks/README.md", *sorted(ROOT.glob("docs/*.md"))]
CONCEPTS = ROOT / "docs/concepts.md"
PROGRAM = re.compile(
    r"python (?:-m ((?:ck_|web_|benchmarks\.)[\w.]+)|((?:benchmarks|examples|tests)/[\w/]+\.py))"
)


def _anchors(text: str) -> set[str]:
    """The names that headings have, as GitHub makes them."""
    bare = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", bare, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_and_programs_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target.read_text(encoding="utf-8")), link
    for module, script in PROGRAM.findall(text):
        name = module.rstrip(".").replace(".", "/")
        places = [ROOT / script] if script else [ROOT / f"{name}.py", ROOT / name / "__main__.py"]
        assert any(p.is_file() for p in places), module or script


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_python_in_documents_can_be_read(path: Path) -> None:
    for code in re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M):
        ast.parse(code)


@pytest.mark.worker
def test_the_example_of_a_custom_agent(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["custom_agent.py", "-u", "currency=francs"])
    runpy.run_path(str(ROOT / "examples/custom_agent.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "francs" in shown and shown.endswith("done: 90.5 francs \n")


def test_the_example_of_goals_actions_memory_and_environment(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["game_agent.py"])
    runpy.run_path(str(ROOT / "examples/game_agent.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "add_note(text='The door is green.') -> {'number': 1, 'result': 'stored: The door is "
        "green.'}",
        "finish(message='I noted: the door is green.') -> I noted: the door is green.",
        "done: I knew: the door is green.",
    ]


@pytest.mark.browser
def test_the_example_of_computer_use(monkeypatch, capsys, tmp_path) -> None:
    from ck_web.browser import shared_servers

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["computer_use.py"])
    runpy.run_path(str(ROOT / "examples/computer_use.py"), run_name="__main__")
    shared_servers.stop_servers()
    assert capsys.readouterr().out.splitlines() == [
        "safety check accepted: Is this the right page?",
        "click({'button': 'left', 'x': 300, 'y': 200})",
        "The bell rings.",
        "You are welcome.",
        "6 items, session done",
    ]


@pytest.mark.integration
def test_the_example_of_a_desktop(monkeypatch, capsys) -> None:
    from ck_web.desktop import missing_programs

    if lacking := missing_programs() or ("" if shutil.which("xterm") else "no xterm"):
        pytest.skip(lacking)
    monkeypatch.setattr(sys, "argv", ["desktop.py"])
    runpy.run_path(str(ROOT / "examples/desktop.py"), run_name="__main__")
    shown = capsys.readouterr().out.splitlines()
    assert shown[-2:] == ["product.txt: 51", "done: 51"]
    assert any("the picture changed in" in line for line in shown)


@pytest.mark.worker
def test_the_example_of_a_conversation(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["chat.py"])
    runpy.run_path(str(ROOT / "examples/chat.py"), run_name="__main__")
    lines = ["1 price", "2 prices", "the total is 51.5", "1 price in turn 4"]
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.worker
@pytest.mark.integration
def test_the_example_of_an_mcp_server(capsys) -> None:
    pytest.importorskip("mcp", reason='needs the extra mcp: pip install "ck-pro[mcp]"')
    pytest.importorskip("mcp_server_time")
    runpy.run_path(str(ROOT / "examples/mcp_agent.py"), run_name="__main__")
    assert capsys.readouterr().out == "done 21:00\n"


@pytest.mark.worker
def test_the_example_of_typed_actions(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["action_agent.py"])
    runpy.run_path(str(ROOT / "examples/action_agent.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert "cmd_run -> cmd_output: 2" in lines and lines[-1] == "done: 2"
    assert "- 0.1 [completed] count its lines" in lines


@pytest.mark.browser
def test_the_example_of_a_sandbox_graph(capsys) -> None:
    pytest.importorskip("langgraph", reason="needs the extra langgraph")
    runpy.run_path(str(ROOT / "examples/sandbox_graph.py"), run_name="__main__")
    asked, done = capsys.readouterr().out.splitlines()
    assert asked.startswith("human-intervention | ") and "Which code" in asked
    assert done == "done | Welcome 4321"


@pytest.mark.worker
def test_the_code_in_concepts_runs(capsys) -> None:
    names = {"__name__": "concepts"}
    for code in re.findall(r"^```python\n(.*?)^```", CONCEPTS.read_text("utf-8"), re.S | re.M):
        exec(compile(code, "concepts.md", "exec"), names)
    assert str(names["memory"].status) == "done"
    assert "0 files" in capsys.readouterr().out
