"""The files of a task: copied or linked, listed first in every prompt, also of sub-agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_pro import MultiStepAgent, StopTool
from ck_pro.exceptions import InputError
from ck_pro.run import working_folder
from ck_pro.run.working_folder import by_name, files_text, given_files, place_files
from ck_pro.testing import ScriptedLLM

STOP = "```python\nstop('done')\n```"


def reader(replies: list[str], **settings: object) -> MultiStepAgent:
    return MultiStepAgent(
        name="reader", model=ScriptedLLM(replies), tools=[StopTool()], imports=["numpy"], **settings
    )


def prompts(agent: MultiStepAgent) -> list[str]:
    return ["\n".join(str(m["content"]) for m in call.messages) for call in agent.model.calls]


@pytest.mark.worker
def test_the_files_of_a_task_come_before_all_others(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("item,n\nlamp,3\n")
    many = "for n in range(700): open(f'made{n}.txt', 'w').close()"
    agent = reader([f"```python\n{many}\nprint(open('data.csv').read())\n```", STOP])
    session = agent.run("Count", files=[tmp_path / "data.csv"])
    assert "lamp,3" in session.steps[0]["action"]["observation"]
    first, second = prompts(agent)
    listed = "# Files of the task, in the working directory\n```\ndata.csv (CSV table, 14 bytes)"
    assert listed in first and listed in second
    assert "# Other files in the working directory\n```\nmade0.txt" in second
    assert second.count("data.csv (") == 1
    assert session.info["files"] == [{"name": "data.csv", "kind": "CSV table", "size": 14}]


@pytest.mark.worker
def test_sub_agents_are_told_the_files_too(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x")
    helper = reader([STOP])
    agent = reader(
        ["```python\nreader2('look')\n```", STOP], sub_agents=[helper.updated({"name": "reader2"})]
    )
    agent.run("Count", files=[tmp_path / "data.csv"])
    texts = [text for call in agent.sub_agents for text in prompts(call)]
    assert texts and all("data.csv (CSV table, 1 bytes)" in text for text in texts)


@pytest.mark.worker
def test_a_large_file_is_linked_and_cannot_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_folder, "LARGE_FILE", 10)
    (tmp_path / "large.txt").write_text("0123456789abc")
    code = "print(open('large.txt').read())\nopen('large.txt', 'w').write('x')"
    agent = reader([f"```python\n{code}\n```", STOP])
    session = agent.run("Read", files=[tmp_path / "large.txt"])
    seen = session.steps[0]["action"]["observation"]
    assert "0123456789abc" in seen and "Error" in seen
    assert (tmp_path / "large.txt").read_text() == "0123456789abc"


def test_missing_files_and_equal_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist, or is not a file"):
        by_name([tmp_path / "none"])
    (tmp_path / "a").mkdir()
    for path in (tmp_path / "x.txt", tmp_path / "a" / "x.txt"):
        path.write_text("x")
    with pytest.raises(InputError, match=r"two files are named 'x.txt'; rename one"):
        by_name([tmp_path / "x.txt", tmp_path / "a" / "x.txt"])


def test_a_list_of_files_from_an_edited_journal_may_be_anything() -> None:
    assert given_files({"files": "text"}) == given_files({}) == []
    assert given_files({"files": [3, {"name": 4}, {"name": "a"}]}) == [{"name": "a"}]
    assert files_text([]) == ""


def test_installed_packages_are_named_once_in_the_rules() -> None:
    agent = reader([STOP])
    agent.run("Count")
    line = "- The code can import Python's standard library and: numpy."
    assert prompts(agent)[0].count(line) == 1
    assert set(MultiStepAgent().importable()) >= {"yaml"}


def test_links_of_an_earlier_run_lead_no_file_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("new")
    (tmp_path / "outside").mkdir()
    (tmp_path / "secret").write_text("old")
    work = tmp_path / "work"
    work.mkdir()
    (work / "in.txt").symlink_to(tmp_path / "secret")
    (work / "data").symlink_to(tmp_path / "outside")
    place_files(work, {"in.txt": tmp_path / "in.txt"})
    assert (tmp_path / "secret").read_text() == "old"
    assert (work / "in.txt").read_text() == "new"
    with pytest.raises(InputError, match=r"'data/b/in\.txt' leads out of"):
        place_files(work, {"data/b/in.txt": tmp_path / "in.txt"})
    assert not list((tmp_path / "outside").iterdir())


def test_a_long_list_of_task_files_is_cut_with_its_size() -> None:
    files = [{"name": f"{n}.csv", "kind": "CSV table", "size": 1000} for n in range(103)]
    assert "99.csv (CSV table, 1 KB)\n(and 3 more files, 3 KB)" in files_text(files)
