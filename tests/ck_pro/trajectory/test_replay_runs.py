"""`replay:RUN` repeats a recorded run step by step, or raises."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from journal_data import model_call
from sample_runs import Samples, make_agent, make_tried_agent, read_lines, run_tasks

from ck_main.runner.choosing import TryOptions
from ck_main.runner.run_options import RunOptions
from ck_pro import MultiStepAgent
from ck_pro.events import EventKind
from ck_pro.events.journal_events import ForkedData
from ck_pro.exceptions import ContentFiltered, ReplayError
from ck_pro.journal import EVENTS_FILE, Journal, compress_journal, journal_folders
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import LLM, CallContext, Usage
from ck_pro.model.backends.backend import FilteredReply
from ck_pro.model.recordings.record import RecordBackend
from ck_pro.testing import ScriptedLLM


def _replaying(agent: MultiStepAgent, target: str) -> MultiStepAgent:
    agent.model = LLM(call_target=target)
    for sub in agent.sub_agents:
        sub.model = agent.model
    return agent


def _steps(row: dict[str, Any]) -> Any:
    """Return prompts, replies and observations of a row at every depth, without values that differ
    between runs: ids, times and model names."""

    def plain(session: dict[str, Any]) -> Any:
        out = []
        for step in session["steps"]:
            action = step["action"]
            calls = action.get("llm_info", {}).get("tool_calls")
            subs = [plain(s) for s in action.get("sub_sessions", ())]
            out.append((action["llm_input"], action["llm_output"], calls, subs))
        return (session["task"], session["info"]["status"], out)

    return plain(row["session"])


@pytest.mark.integration
@pytest.mark.parametrize("form", ["rows", "run", "task", "journal", "compressed"])
def test_rows_and_journals_reproduce_a_run(samples: Samples, tmp_path: Path, form: str) -> None:
    recorded = {r["id"]: r for r in read_lines(samples.good)}
    journals = tmp_path / "recorded"
    shutil.copytree(samples.journals(samples.good), journals)
    if form == "compressed":
        for folder in journal_folders(journals):
            compress_journal(folder)
    path = {
        "rows": samples.good,
        "task": journals / "capital",
        "journal": journals / "capital" / EVENTS_FILE,
    }.get(form, journals)
    names = ["capital"] if form in ("task", "journal") else ["sum", "capital"]
    again = run_tasks(_replaying(make_agent(), f"replay:{path}"), tmp_path / "again.jsonl", names)
    for row in read_lines(again):
        assert _steps(row) == _steps(recorded[row["id"]])
        assert row["session"]["info"]["status"] == "done"


def _one_step_agent(answers: list[str], rules: str = "") -> MultiStepAgent:
    return MultiStepAgent(
        name="solo",
        model=ScriptedLLM(replies=answers),
        language=FunctionCallingLanguage(),
        description=rules,
    )


def test_tries_are_replayed_in_recorded_order(tmp_path: Path) -> None:
    for n, answer in enumerate(["first", "second"]):
        with Journal(tmp_path / "run" / f"try-{n}") as journal:
            _one_step_agent([answer]).run("Say a word.", journal=journal)
    agent = _one_step_agent([])
    agent.model = LLM(call_target=f"replay:{tmp_path / 'run'}")
    said = [agent("Say a word.")["output"] for _ in range(4)]
    assert said == ["first", "second", "first", "second"]  # then it starts over


_FILTERS = [
    ContentFiltered("m: the content filter stopped the prompt: no"),
    FilteredReply("m: the content filter stopped the reply", Usage(7, 0, 3)),
]


@pytest.mark.integration
@pytest.mark.parametrize("form", ["rows", "journals", "recording"])
def test_calls_that_a_filter_stopped_are_stopped_again(tmp_path: Path, form: str) -> None:
    def seen(agent: MultiStepAgent, output: Path) -> Any:
        row = read_lines(run_tasks(agent, output, ["sum"]))[0]
        said = [
            (s.get("plan", {}).get("llm_output", ""), s["action"]) for s in row["session"]["steps"]
        ]
        return [(plan, a.get("llm_output", ""), a["observation"]) for plan, a in said], row["eval"][
            "pred"
        ]

    def agent(model: LLM) -> MultiStepAgent:
        phases = {"plan": "agent_action", "action": "agent_action"}
        return MultiStepAgent(
            name="solo",
            language=FunctionCallingLanguage(),
            templates=phases,
            planning="separate",
            model=model,
        )

    said = [_FILTERS[0], "{}", _FILTERS[1], "{}", "42"]
    scripted = ScriptedLLM(replies=said)
    scripted.backend = RecordBackend(tmp_path / "recording", scripted.backend)
    first = seen(agent(scripted), tmp_path / "a.jsonl")
    assert [text.partition(":")[0] for *_, text in first[0][:2]] == [
        "ContentFiltered",
        "FilteredReply",
    ]
    path = {"rows": "a.jsonl", "journals": "a", "recording": "recording"}[form]
    replaying = agent(LLM(call_target=f"replay:{tmp_path / path}"))
    assert seen(replaying, tmp_path / "b.jsonl") == first


@pytest.mark.integration
@pytest.mark.parametrize("form", ["rows", "journals"])
def test_a_run_with_several_tries_is_reproduced(tmp_path: Path, form: str) -> None:
    options = RunOptions(tries=TryOptions(tries=4, until="em"))
    rows = run_tasks(make_tried_agent(3), tmp_path / "a.jsonl", ["sum", "capital"], options)
    target = f"replay:{rows if form == 'rows' else rows.with_suffix('')}"
    agent = _replaying(make_agent(), target)
    again = run_tasks(agent, tmp_path / "b.jsonl", ["sum", "capital"], options)
    for a, b in zip(read_lines(rows), read_lines(again), strict=True):
        assert _steps(a) == _steps(b)
        earlier = [r["previous_failed_sessions"] for r in (a, b)]
        assert [len(e) for e in earlier] == [2, 2]
        for x, y in zip(*earlier, strict=True):
            assert _steps(x) == _steps(y)


def _call(target: str, content: str = "hi", *, system: str = "rules", **where: Any) -> str:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": content}]
    facts = {"agent_path": ("solo",), "phase": "action", "task": "t", "sid": "live", **where}
    instructions = f"{system}\n\n{content.split('|')[-1]}" if "|" in content else system
    context = CallContext(instructions=instructions, **facts)
    return str(LLM(call_target=target)(messages, context=context))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    with Journal(folder) as journal:
        facts = {"task": "t", "agent": "solo", "path": ["solo"]}
        journal.append(EventKind.SESSION, sid="s", data=facts)
        for n in range(2):
            system = {"role": "system", "content": "rules"}
            user = {"role": "user", "content": f"[{n + 3}] button 'Go' at http://localhost:1|Act."}
            data = model_call([system, user], output=f"click({n + 3})")
            journal.append(EventKind.MODEL_CALL, sid="s", i=n, phase="action", data=data)
        for said in ("a", "b"):
            data = model_call([{"role": "user", "content": "q"}], output=said)
            journal.append(EventKind.MODEL_CALL, sid="s", i=1, phase="tool:ask_llm", data=data)
        failure = {"error": "ModelUnavailable: gone"}
        journal.append(EventKind.MODEL_FAILED, sid="s", i=2, phase="action", data=failure)
    return folder


def test_replies_are_translated_for_the_current_run(journal: Path) -> None:
    assert _call(f"replay:{journal}", "[70] button 'Go' and more|Act.", step=1) == "click(70)"


def test_calls_of_a_tool_are_replayed_in_order(journal: Path) -> None:
    llm = LLM(call_target=f"replay:{journal}")
    context = CallContext(agent_path=("solo",), phase="tool:ask_llm", step=1, task="t", sid="x")
    assert [llm("q", context=context) for _ in range(2)] == ["a", "b"]
    with pytest.raises(ReplayError, match="step 1 after the 2 recorded ones"):
        llm("q", context=context)
    with pytest.raises(ReplayError, match="with these messages"):
        llm("other", context=context)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"task": "other"}, "task 'other'; the nearest is solo, action, step 0, task 't'"),
        ({"agent_path": ("duo",)}, "no reply for duo, action, step 0, task 't'; the nearest"),
        ({"step": 7}, "step 7; the recorded session has steps 0 to 1 of that phase"),
        ({"step": 2}, r"the recorded call failed \(ModelUnavailable: gone\)"),
        ({"phase": "plan"}, "the recorded session has no such phase"),
        ({"system": "new rules"}, r"has changed: \n@@ .* @@\n\n-rules\n\+new rules"),
        ({"content": "[3] button 'Go'|Do."}, r"has changed: \n@@ .* @@\n\n-.*Act\.\n\+Do\."),
    ],
)
def test_a_mismatch_raises_and_explains(journal: Path, changed: dict[str, Any], says: str) -> None:
    given = {"content": "[3] button 'Go'|Act.", **changed}
    with pytest.raises(ReplayError, match=says):
        _call(f"replay:{journal}", **given)


def test_folders_of_a_run_and_its_fork_are_translated(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        facts = {"task": "t", "agent": "solo", "path": ["solo"], "workdir": "/home/me/old"}
        journal.append(EventKind.SESSION, sid="s", data=facts)
        for n, folder in enumerate(["/home/me/old", str(tmp_path.resolve() / "work")]):
            messages = [{"role": "system", "content": f"rules in {folder}"}]
            data = model_call(messages, output=f"open('{folder}/x')")
            journal.append(EventKind.MODEL_CALL, sid="s", i=n, phase="action", data=data)
            fork = ForkedData(origin="/home/me", at=1)
            journal.append(EventKind.FORKED, sid="s", i=1, data=fork)
    for step in range(2):
        system, workdir = "rules in /home/me/new", "/home/me/new"
        said = _call(f"replay:{tmp_path}", system=system, workdir=workdir, step=step)
        assert said == "open('/home/me/new/x')"


def test_the_comparison_of_instructions_can_be_switched_off(journal: Path) -> None:
    target = f"replay:{journal}?check=off"
    assert _call(target, "[5] button 'Go'|Do.", system="new rules") == "click(5)"


def test_a_run_without_texts_cannot_be_replayed(tmp_path: Path) -> None:
    agent = _one_step_agent(["word"])
    agent.store_io = False
    with Journal(tmp_path) as journal:
        agent.run("Say a word.", journal=journal)
    with pytest.raises(ReplayError, match="was it run with store_io=False"):
        LLM(call_target=f"replay:{tmp_path}").check()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "contains no journal"),
        ('{"kind":"model_call","sid":"s","data":{"messages":[]}}\n', "is not a run of ck-pro"),
        ("nonsense\n", "line 1: not JSON"),
    ],
)
def test_a_path_without_a_run_is_reported_in_one_line(
    tmp_path: Path, content: str | None, says: str
) -> None:
    if content is not None:
        (tmp_path / EVENTS_FILE).write_text(content)
    with pytest.raises(ReplayError, match=says):
        LLM(call_target=f"replay:{tmp_path}").check()


def test_rows_of_other_programs_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"session": {"task": "t", "steps": 3}}\n')
    with pytest.raises(ReplayError, match="is not a run of ck-pro"):
        LLM(call_target=f"replay:{path}").check()
