"""The sums of the table: input = output + dropped, and properties of preferences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_runs import data_url, read_lines

from ck_main.runner import judging
from ck_pro.run import sampling
from ck_pro.trajectory.export import FORMATS, main
from ck_pro.trajectory.exporting.filters import JUDGES, FilterSettings
from ck_pro.trajectory.exporting.job import ExportSettings, Report
from ck_pro.trajectory.exporting.pipeline import export

TEXTS = st.sampled_from(["", "p", "q" * 400, "é\ud800\x00", "<image>", "<think>"])
IMAGES = st.sampled_from([data_url(1), data_url(2), "data:image/png;base64,***", "https://x/y.png"])


@st.composite
def _calls(draw: st.DrawFn) -> dict[str, Any]:
    content: Any = draw(TEXTS)
    if draw(st.integers(0, 4)) == 0:
        image = {"type": "image_url", "image_url": {"url": draw(IMAGES)}}
        content = [{"type": "text", "text": content}, image]
    role = draw(st.sampled_from(["user"] * 8 + ["assistant", "wizard"]))
    calls = draw(st.sampled_from([None, None, "{}", "{"]))
    info = {"tool_calls": [{"function": {"name": "f", "arguments": calls}}]} if calls else {}
    return {
        "llm_input": [{"role": role, "content": content}],
        "llm_output": draw(st.sampled_from(["a", "b", "c" * 300, ""])),
        "llm_info": {**info, "reasoning": draw(st.sampled_from(["", "hm"]))},
        "error": draw(st.sampled_from([None, {"error": "NameError"}])),
    }


@st.composite
def _sessions(draw: st.DrawFn, depth: int = 0) -> dict[str, Any]:
    steps = []
    for _ in range(draw(st.integers(1, 2))):
        action = draw(_calls())
        if depth < 2 and draw(st.booleans()):
            action["sub_sessions"] = [draw(_sessions(depth + 1))]
        if draw(st.integers(0, 3)) == 0:
            action["model_calls"] = [{"phase": draw(st.sampled_from(JUDGES)), **draw(_calls())}]
        steps.append({"plan": draw(_calls()), "action": action})
    status = draw(st.sampled_from(["done", "problem"]))
    return {"id": draw(st.text("abcdef", min_size=4)), "info": {"status": status}, "steps": steps}


@st.composite
def _rows(draw: st.DrawFn) -> dict[str, Any]:
    row: dict[str, Any] = {"id": "t", "task": draw(st.sampled_from("xy"))}
    row["session"] = draw(_sessions())
    row["eval"] = {"corr": draw(st.sampled_from([None, 0, 0.5, 1]))}
    row["previous_failed_sessions"] = draw(st.lists(_sessions(2), max_size=1))
    return row


def _filters(whole: bool) -> st.SearchStrategy[FilterSettings]:
    keep = st.sampled_from(["keep", "drop"])
    of_tries: dict[str, Any] = {
        "status": st.sampled_from([(), ("done",)]),
        "min_score": st.sampled_from([None, 0.5]),
        "best": st.sampled_from([None, 1]),
        "duplicates": keep,
    }
    of_calls: dict[str, Any] = {
        "phases": st.sampled_from([(), ("plan",), ("tool:judge", "action")]),
        "judges": keep,
        "failed_subs": keep,
        "errors": keep,
        "max_tokens": st.sampled_from([None, 100]),
    }
    return st.builds(FilterSettings, **of_tries, **({} if whole else of_calls))


@pytest.mark.integration
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), rows=st.lists(_rows(), max_size=4))
def test_input_equals_output_plus_dropped(
    tmp_path_factory: pytest.TempPathFactory, data: Any, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "sums"
    folder.mkdir(exist_ok=True)
    source = folder / "rows.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in rows) + "{torn\n")
    format_ = data.draw(st.sampled_from(sorted(set(FORMATS) - {"verl", "parquet"})))
    filters = data.draw(_filters(format_ in ("atif", "ckpro")))
    out = folder / "out.jsonl"
    report = export(ExportSettings(FORMATS[format_], [source], out, filters, force=True))
    assert report.runs == len(rows) + 1 and report.problems == 1
    assert report.calls_in == report.calls_used + report.dropped.total()
    written = read_lines(out)
    assert len(written) == report.rows_out
    if format_ == "dpo":
        _check_pairs(written, report)
    else:
        assert report.rows_out == report.calls_used


def _check_pairs(pairs: list[dict[str, Any]], report: Report) -> None:
    prompts = [json.dumps([p["prompt"], p.get("images"), p.get("tools")]) for p in pairs]
    assert len(prompts) == len(set(prompts)) <= report.calls_used
    for pair in pairs:
        assert pair["chosen"] != pair["rejected"]
        assert pair["metadata"]["chosen_reward"] > pair["metadata"]["rejected_reward"]
        assert pair["metadata"]["chosen_reward"] > 0


def _session(*replies: str, status: str = "done", **of_last: Any) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"action": {"llm_input": [{"role": "user", "content": "p"}], "llm_output": r}}
        for r in replies
    ]
    steps[-1]["action"].update(of_last)
    return {"id": "".join(replies), "info": {"status": status}, "steps": steps}


def _exported(tmp_path: Path, format_: str, *rows: Any, args: tuple[str, ...] = ()) -> list[Any]:
    source, out = tmp_path / "r.jsonl", tmp_path / f"{format_}.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in rows))
    main(["-f", format_, "-i", str(source), "-o", str(out), "--force", *args])
    return read_lines(out)


def test_a_session_is_never_paired_with_itself(tmp_path: Path) -> None:
    row = {"id": "t", "task": "t", "session": _session("a", "b"), "eval": {"corr": 1}}
    assert _exported(tmp_path, "dpo", row) == []
    other = {**row, "session": _session("b"), "eval": {"corr": 0}}
    [pair] = _exported(tmp_path, "dpo", row, other)
    assert (pair["chosen"][0]["content"], pair["rejected"][0]["content"]) == ("a", "b")


def test_good_sub_sessions_of_a_failed_run_can_be_exported_alone(tmp_path: Path) -> None:
    subs = [_session("found"), _session("lost", status="problem")]
    main_ = _session("wrong", status="problem", sub_sessions=subs)
    row = {"id": "t", "task": "t", "session": main_, "eval": {"corr": 0}}
    kept = _exported(tmp_path, "sft", row, args=("--agent", "sub_agent"))
    assert [r["completion"][0]["content"] for r in kept] == ["found"]
    assert kept[0]["metadata"]["status"] == "done" and kept[0]["metadata"]["reward"] == 0


def test_judge_calls_are_dropped_by_default(tmp_path: Path, capsys: Any) -> None:
    assert (judging.JUDGE, judging.REFLECT, sampling.CHOOSE) == JUDGES
    asked = [
        {"phase": p, "llm_input": [{"role": "user", "content": p}], "llm_output": p}
        for p in (*JUDGES, "tool:ask_llm")
    ]
    row = {"id": "t", "task": "t", "session": _session("a", model_calls=asked)}

    def phases(*args: str) -> list[str]:
        return [r["metadata"]["phase"] for r in _exported(tmp_path, "sft", row, args=args)]

    assert phases() == ["action", "tool:ask_llm"]
    assert "dropped: judge" in capsys.readouterr().out
    assert phases("--judges", "keep") == ["action", *JUDGES, "tool:ask_llm"]
    assert phases("--phase", "tool:judge") == ["tool:judge"]
