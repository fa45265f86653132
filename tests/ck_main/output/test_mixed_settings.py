"""Rows of one output that were made with different settings: warned about, and recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from job_desk import Desk

from ck_main.output.run_settings import Setup, differences, setup_of, warnings_about
from ck_main.runner.run_options import RunOptions
from ck_pro import Journal, MultiStepAgent, __version__
from ck_pro.command_line import ExitCode
from ck_pro.journal import read_events
from ck_pro.language import FunctionCallingLanguage
from ck_pro.run.fingerprint import fingerprint_of
from ck_pro.template import TemplatedString
from ck_pro.testing import ScriptedLLM

pytestmark = pytest.mark.integration
TASKS = [{"question": "a"}, {"question": "b"}, {"question": "c"}]


def agent(**settings: Any) -> MultiStepAgent:
    made = MultiStepAgent(language=FunctionCallingLanguage(), **settings)
    return made.updated({"model": {"backend": ScriptedLLM(replies=lambda *_: "42").backend}})


def setup(**config: Any) -> Setup:
    found = setup_of({"config": config, "version": "1"})
    assert found is not None
    return found


def test_a_command_with_other_settings_lists_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TASKS)
    options = RunOptions(max_steps=5)
    model = {"call_kwargs": {"temperature": 0.2}}
    assert desk.run(agent(model=model), limit=2, options=options) is ExitCode.DONE
    assert "warning" not in desk.said()
    text = TemplatedString("Act on {task}. {functions_short}")
    other = agent(max_steps=7, templates={"action": text}, model={"call_kwargs": {"top_p": 1}})
    assert desk.run(other, options=RunOptions(max_steps=9)) is ExitCode.DONE
    said = desk.said()
    assert "warning: 2 rows of the output have other settings than this command" in said
    assert "  max_steps: 10 in 2 rows, now 7\n" in said
    assert "  limits.max_steps: 5 in 2 rows, now 9\n" in said
    assert "  model.call_kwargs.temperature: 0.2 in 2 rows, now unset\n" in said
    assert "  model.call_kwargs.top_p: unset in 2 rows, now 1\n" in said
    assert "  (prompts): " in said and "  name another --output" in said
    assert said.count("warning:") == 1


def test_equal_settings_are_not_warned_about(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TASKS)
    kwargs = {"call_kwargs": {"temperature": 0.2, "top_p": 1}}
    desk.run(agent(model=kwargs), limit=2)
    reordered = {"call_kwargs": {"top_p": 1, "temperature": 0.2}}
    desk.run(agent(model=reordered))
    assert "warning" not in desk.said()


def test_other_settings_are_listed_although_every_task_has_a_row(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TASKS)
    desk.run(agent())
    before = desk.output.read_bytes()
    assert desk.run(agent(max_steps=7)) is ExitCode.DONE
    assert "warning: 3 rows of the output have other settings" in desk.said()
    assert "  max_steps: 10 in 3 rows, now 7\n" in desk.said()
    assert desk.output.read_bytes() == before


def test_rerun_all_runs_every_task_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TASKS)
    desk.run(agent())
    before = desk.output.read_bytes()
    assert desk.run(agent(max_steps=7), rerun=frozenset({"all"})) is ExitCode.DONE
    assert "warning" not in desk.said() and "3 rows moved to" in desk.said()
    rows = [json.loads(line) for line in desk.output.read_text().splitlines()]
    assert [row["session"]["info"]["config"]["max_steps"] for row in rows] == [7, 7, 7]
    assert (tmp_path / "out.superseded.jsonl").read_bytes() == before


def test_version_and_hashes_are_in_journal_and_row(tmp_path: Path) -> None:
    made = agent()
    with Journal(tmp_path) as journal:
        row = made.run("t", journal=journal).to_dict()
    facts = fingerprint_of(made)
    assert facts.items() <= row["info"].items() and facts["version"] == __version__
    start = next(e for e in read_events(tmp_path) if e["kind"] == "session")
    assert facts.items() <= start["data"].items()


PREFIX = "Act"


def _suffix() -> str:
    return "now"


def test_the_prompts_hash_depends_on_every_part_of_the_prompts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def template(task: str) -> str:
        return f"{PREFIX} on {task} {_suffix()} {ending}"

    def helped(x: int) -> int:
        """Help."""
        return x

    from ck_pro.run import fingerprint

    ending = "."
    hashes = []

    def add(**settings: Any) -> None:
        fingerprint._function_text.cache_clear()
        hashes.append(fingerprint_of(agent(**settings))["prompts_hash"])

    add(templates={"action": template})
    add(templates={"action": template}, max_steps=3)
    assert hashes[0] == hashes[1]
    monkeypatch.setitem(globals(), "PREFIX", "Go")
    add(templates={"action": template})
    ending = "!"
    add(templates={"action": template})
    add(templates={"action": "agent_action"})
    sub = agent(name="helper", templates={"action": template})
    add(sub_agents=[sub])
    assert len(set(hashes)) == 5
    tools = MultiStepAgent(tools=[helped]), MultiStepAgent(tools=[])
    assert len({fingerprint_of(a)["prompts_hash"] for a in tools}) == 2


def test_seeds_of_tries_are_no_difference() -> None:
    configs = [{"model": {"call_kwargs": {"seed": n}}, "max_steps": 3} for n in (1, 2)]
    first, second = (
        setup_of({"config": c, "try": {"number": 1, "seed": n}}) for n, c in enumerate(configs)
    )
    assert first is second and first is not None
    assert setup_of({"config": configs[0]}) != setup_of({"config": configs[1]})


def test_rows_with_equal_hashes_share_their_setup() -> None:
    info = {"config": {"a": 1}, "settings_hash": "s", "prompts_hash": "p", "version": "1"}
    first = setup_of(info)
    assert first is not None and setup_of(json.loads(json.dumps(info))) is first
    for other in ({"limits": {"max_steps": 3}}, {"prompts_hash": "q"}, {"version": "2"}):
        assert setup_of({**info, **other}) != first


def test_settings_of_another_version_alone_are_no_difference() -> None:
    old, new = setup(a=1, gone=2), setup_of({"config": {"a": 1, "added": 3}, "version": "2"})
    assert new is not None
    assert list(differences(old, new)) == [(("(ck-pro version)",), "1", "2")]
    unknown = setup_of({"config": {"a": 1, "gone": 2}})
    assert unknown is not None and list(differences(unknown, new)) == []


@pytest.mark.parametrize("info", [{}, {"config": None}, {"config": 3}, {"config": {}}])
def test_rows_that_record_no_settings_are_no_difference(info: dict[str, Any]) -> None:
    assert setup_of(info) is None
    assert warnings_about([None], setup(a=1)) == [] and warnings_about([setup(a=1)], None) == []


def test_a_long_list_of_differences_is_truncated() -> None:
    old, new = ({f"s{n}": value * 300 for n in range(30)} for value in "ab")
    lines = warnings_about([setup(**old)] * 3, setup(**new))
    assert len(lines) == 23 and lines[21] == "  and 10 more" and max(map(len, lines)) < 200
    assert warnings_about([setup(x=1, a={"b": None}, c={})], setup(x=1)) == []
