"""The file agent, alone and as a sub-agent; and where prompts name the functions for files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sample_files import write_xlsx

from ck_file import FileAgent
from ck_main.agent import CKAgent
from ck_pro.run.run import Run
from ck_pro.session import AgentSession
from ck_pro.testing import ScriptedLLM
from ck_web.agent import WebAgent

LINES = "Functions for files:\n- describe_file(path: str) -> str:"


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def prompts(model: Any) -> list[str]:
    return ["\n".join(str(m["content"]) for m in call.messages) for call in model.calls]


@pytest.mark.worker
def test_the_file_agent_counts_hidden_rows_and_says_so(tmp_path: Path) -> None:
    write_xlsx(tmp_path / "sales.xlsx")
    count = "rows = read_table('sales.xlsx', 'Sales')\nstop(sum(int(r[1]) for r in rows[1:4]))"
    model = ScriptedLLM([code("print(describe_file('sales.xlsx'))"), code(count)])
    session = FileAgent(model=model).run("How many?", files=[tmp_path / "sales.xlsx"])
    assert session.final_results["output"] == "6"
    first, second = prompts(model)
    assert "sales.xlsx (Excel workbook, " in first
    assert "sheet 'Sales': hidden rows 3" in second


@pytest.mark.worker
def test_the_main_agent_reads_a_file_itself_or_delegates(tmp_path: Path) -> None:
    write_xlsx(tmp_path / "sales.xlsx")
    ask = "r = file_agent(task='Is a sheet of sales.xlsx hidden?')\nstop(r['output'])"
    main = ScriptedLLM([code("print(read_document('sales.xlsx', 'Secret'))"), code(ask)])
    helper = ScriptedLLM(
        [code("stop('yes' if 'very hidden' in describe_file('sales.xlsx') else 0)")]
    )
    agent = CKAgent(model=main, file_agent={"model": helper})
    session = agent.run("Is one hidden?", files=[tmp_path / "sales.xlsx"])
    assert session.final_results["output"] == "yes"
    first, second = prompts(main)
    assert LINES in first and "- file_agent(task: str" in first
    assert "key 99" in second
    assert "sales.xlsx (Excel workbook, " in prompts(helper)[0]


@pytest.mark.worker
def test_prompts_without_documents_do_not_name_the_functions() -> None:
    model = ScriptedLLM([code("open('data.bin', 'w').close()"), code("stop('done')")])
    CKAgent(model=model).run("Nothing with files")
    assert not any("read_document" in text or "file_agent" in text for text in prompts(model))


@pytest.mark.worker
def test_a_document_that_appears_later_names_two_functions() -> None:
    model = ScriptedLLM([code("open('report.pdf', 'w').close()"), code("stop('done')")])
    CKAgent(model=model).run("Make a report")
    first, second = prompts(model)
    assert "read_document" not in first
    assert "describe_file(path) and read_document(path) read documents of any kind." in second


@pytest.mark.worker
def test_function_calls_offer_the_tools_where_documents_are(tmp_path: Path) -> None:
    write_xlsx(tmp_path / "sales.xlsx")
    for files, offered in (([], False), ([tmp_path / "sales.xlsx"], True)):
        model = ScriptedLLM(["no call"] * 3)
        CKAgent(model=model, language="function_calls", max_steps=1).run("x", files=files)
        tools = {tool["function"]["name"] for tool in model.calls[0].params["tools"]}
        assert ("read_document" in tools) == offered


def test_both_browsing_and_main_agents_can_read_documents() -> None:
    for agent in (CKAgent(), WebAgent()):
        agent.check()
        assert "read_document" in agent.functions().names
        assert "read_document" in agent.unlisted()
    listed = CKAgent(tools=["read_document", "stop"])
    assert "read_document" not in listed.unlisted()


def test_the_offered_functions_are_chosen_once_per_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(CKAgent(), AgentSession("x"))
    try:
        assert "read_document" not in run.functions.listed.names
        run.functions.notice_files(["a.txt", "b.pdf"])
        monkeypatch.setattr("os.scandir", None)  # no further look at the folder
        assert "read_document" in run.functions.listed.names
        run.functions.notice_files([])
        assert "read_document" in run.functions.listed.names, "a function stays offered"
    finally:
        monkeypatch.undo()
        run.close()


def test_the_rules_of_the_web_agent_define_no_function_for_files() -> None:
    agent = WebAgent()
    run = Run(agent, AgentSession("x"))
    try:
        assert not {*run.functions.defined.names} & agent.unlisted()
        assert "read_document" in run.functions.registry.names
    finally:
        run.close()
