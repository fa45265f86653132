"""Exports obey labels: calls leave, replies change, judgements become preferences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loaders import LIGHT_AND_LONG, ending, export, loaded
from sample_runs import Samples, read_lines

from ck_pro.trajectory.export import FORMATS, main
from ck_pro.trajectory.exporting.filters import FilterSettings
from ck_pro.trajectory.exporting.job import ExportSettings, Report
from ck_pro.trajectory.exporting.pipeline import export as export_in_python
from ck_pro.trajectory.labels import Label, LabelFile, label_file_of
from ck_pro.trajectory.reading.attempts import tries_of
from ck_pro.trajectory.reading.model_calls import Call, calls_of
from ck_pro.trajectory.reading.sources import Record, read_records

pytestmark = pytest.mark.integration


def calls(path: Path) -> list[Call]:
    """The calls of the main agent in a file of rows or a run directory."""
    found = [r for r in read_records([path]) if isinstance(r, Record)]
    tries = [t for r in found for t in tries_of(r.where, r.row)]
    made = [c for t in tries for c in calls_of(t) if isinstance(c, Call)]
    return [c for c in made if len(c.agent_path) == 1]


def call_of(path: Path, task: str, step: int) -> Call:
    return next(c for c in calls(path) if (c.attempt.task_id, c.step) == (task, step))


def target(call: Call, *, level: str = "call") -> dict[str, Any]:
    """The target of a call, its step, session or run, as the viewer writes it."""
    run = call.attempt
    out = {"id": run.task_id, "try": run.number, "run": str(run.session["id"])}
    if level != "run":
        out["session"] = call.session_id
    if level in ("step", "call"):
        out["step"] = call.step
    return {**out, "call": call.number} if level == "call" else out


def labelled(path: Path, *lines: Mapping[str, Any]) -> Path:
    """Write the label file of an input."""
    file = LabelFile(label_file_of(path))
    for line in lines:
        file.append(Label.of(line))
    return file.path


@pytest.fixture
def plain(samples: Samples, tmp_path: Path) -> Path:
    """A copy of the rows without images, so that its label file is its own."""
    path = tmp_path / "plain.jsonl"
    path.write_bytes(samples.plain.read_bytes())
    return path


@pytest.fixture
def wrong(samples: Samples, tmp_path: Path) -> Path:
    path = tmp_path / "wrong.jsonl"
    path.write_bytes(samples.wrong.read_bytes())
    return path


def rows_of(format_: str, tmp_path: Path, *args: Any) -> list[dict[str, Any]]:
    out = tmp_path / f"out.{format_}.jsonl"
    assert main([str(a) for a in ("-f", format_, "-o", out, "--force", *args)]) in (0, 1)
    return [json.loads(line) for line in out.read_bytes().split(b"\n") if line]


def places(rows: list[dict[str, Any]]) -> set[tuple[str, str, int]]:
    facts = [r["metadata"] for r in rows]
    return {(m["task_id"], m["agent"], m["step"]) for m in facts}


def text(messages: list[dict[str, Any]]) -> str:
    return str(messages[0]["content"])


# --- who leaves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["exclude", "bad"])
@pytest.mark.parametrize(
    ("level", "left"),
    [
        ("call", {("sum", "ck_agent", 1)}),
        ("step", {("sum", "ck_agent", 1)}),
        ("session", set()),
        ("run", set()),
    ],
)
def test_excluded_and_bad_calls_leave(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: str, level: str,
    left: set[Any],
) -> None:  # fmt: skip
    before = places(rows_of("sft", tmp_path, "-i", plain))
    labels = labelled(
        plain, {"target": target(call_of(plain, "sum", 0), level=level), "label": verdict}
    )
    capsys.readouterr()
    rows = rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    assert places(rows) == {p for p in before if p[0] != "sum"} | left
    shown = "excluded by label" if verdict == "exclude" else "bad by label"
    assert f"dropped: {shown}" in capsys.readouterr().out


def test_an_excluded_session_of_the_main_agent_leaves_its_sub_agents(
    plain: Path, tmp_path: Path
) -> None:
    where = target(call_of(plain, "capital", 0), level="session")
    labels = labelled(plain, {"target": where, "label": "exclude"})
    rows = rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    assert {p[:2] for p in places(rows)} == {("sum", "ck_agent"), ("capital", "web_agent")}


def test_the_smallest_part_judges_and_exclusion_always_counts(plain: Path, tmp_path: Path) -> None:
    first, second = (call_of(plain, "sum", n) for n in (0, 1))
    labels = labelled(
        plain,
        {"target": target(second), "label": "good"},
        {"target": target(second, level="run"), "label": "bad"},
        {"target": {"id": "capital"}, "label": "good"},
        {"target": {"id": "capital", "agent": "ck_agent"}, "label": "exclude"},
    )
    rows = rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    assert places(rows) == {("sum", "ck_agent", 1), ("capital", "web_agent", 0),
                            ("capital", "web_agent", 1)}  # fmt: skip
    assert {r["metadata"]["label"] for r in rows} == {"good"}
    labelled(plain, {"target": target(second), "label": None})
    assert ("sum", "ck_agent", 1) not in places(
        rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    )
    assert first.number == 0


@pytest.mark.parametrize("source", ["rows", "journals"])
def test_labels_name_calls_alike_in_rows_and_journals(
    samples: Samples, tmp_path: Path, source: str
) -> None:
    """A label made from one selects the same call in the other."""
    rows, journals = samples.plain, samples.journals(samples.plain)
    made_from, used_on = (rows, journals) if source == "rows" else (journals, rows)
    labels = LabelFile(tmp_path / "l.labels.jsonl")
    call = call_of(made_from, "capital", 1)
    labels.append(
        Label.of({"target": target(call), "label": "exclude", "recorded": call.recorded_mark})
    )
    made = rows_of("sft", tmp_path, "-i", used_on, "--labels", labels.path)
    every = rows_of("sft", tmp_path, "-i", used_on)
    assert places(every) - places(made) == {("capital", "ck_agent", 1)}
    assert label_file_of(rows) == label_file_of(journals) == label_file_of(journals / "capital")


def test_a_label_of_an_earlier_reply_does_not_apply(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resumed run repeats its last step, with a new reply."""
    line = {"target": target(call_of(plain, "sum", 1)), "label": "exclude", "recorded": "0" * 12}
    labels = labelled(plain, line)
    rows = rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    assert ("sum", "ck_agent", 1) in places(rows)
    said = capsys.readouterr()
    assert f"warning: {labels}, line 1: the reply of its call has changed since" in said.err
    assert "labels without a call" in said.out


def test_labels_without_a_call_are_reported(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = labelled(
        plain,
        {"target": {"id": "sum", "step": 9}, "label": "good"},
        {"target": {"id": "nowhere"}, "comment": "a comment alone changes nothing", "label": None},
        {"target": {"id": "sum", "step": 0}, "label": "good"},
    )
    rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    said = capsys.readouterr().err.splitlines()
    assert said == [f"warning: {labels}, line 1: no call of the input matches its target "
                    "(id sum, step 9)"]  # fmt: skip


def test_broken_lines_are_reported_and_the_others_apply(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = labelled(plain, {"target": {"id": "sum"}, "label": "exclude"})
    with labels.open("a") as file:
        file.write('{"label": "exclude", "target": {"id"')
    out = tmp_path / "o.jsonl"
    assert main(["-f", "sft", "-i", str(plain), "-o", str(out), "--labels", str(labels)]) == 3
    assert {p[0] for p in places(read_lines(out))} == {"capital"}
    assert f"{labels}, line 2: incomplete last line (skipped)" in capsys.readouterr().err


def test_a_label_file_that_is_not_used_is_mentioned(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = labelled(plain, {"target": {"id": "sum"}, "label": "exclude"})
    rows_of("sft", tmp_path, "-i", plain)
    assert f"hint: {labels} has 1 label; to use it, add --labels {labels}" in (
        capsys.readouterr().out
    )
    rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    assert "hint" not in capsys.readouterr().out


def test_a_label_file_among_the_inputs_is_skipped(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-i runs/*.jsonl` also names the label files."""
    labels = labelled(plain, {"target": {"id": "sum"}, "label": "exclude"})
    rows = rows_of("sft", tmp_path, "-i", plain, labels)
    assert {p[0] for p in places(rows)} == {"sum", "capital"}
    said = capsys.readouterr()
    assert said.err == f"{labels} has labels, not runs (skipped); to use it, add --labels\n"
    assert main(["-f", "sft", "-i", str(labels), "-o", str(tmp_path / "x.jsonl")]) == 2
    assert "has labels, not runs; name the output" in capsys.readouterr().err


def test_calls_are_selected_by_label(plain: Path, tmp_path: Path) -> None:
    good, fixed, bad = (call_of(plain, *p) for p in (("sum", 0), ("sum", 1), ("capital", 0)))
    labels = labelled(
        plain,
        {"target": target(good), "label": "good"},
        {"target": target(fixed), "label": None, "reply": "It is 42."},
        {"target": target(bad), "label": "bad"},
    )
    use = ("-i", plain, "--labels", labels)
    only = {name: places(rows_of("sft", tmp_path, *use, "--label", name)) for name in
            ("good", "bad", "corrected")}  # fmt: skip
    one, two = ("sum", "ck_agent", 0), ("sum", "ck_agent", 1)
    assert only == {"good": {one, two}, "bad": set(), "corrected": {two}}
    both = rows_of("sft", tmp_path, *use, "--label", "good", "--label", "corrected")
    assert (
        places(both) == {one, two} == places(rows_of("sft", tmp_path, *use, "--unlabelled", "drop"))
    )
    kto = rows_of("kto", tmp_path, *use, "--label", "bad")
    # the reply before a correction is a bad one
    facts = [(r["label"], *(r["metadata"][k] for k in ("task_id", "step"))) for r in kto]
    assert sorted(facts) == [(False, "capital", 0), (False, "sum", 1)]


def test_a_good_label_keeps_a_call_that_the_defaults_drop(samples: Samples, tmp_path: Path) -> None:
    [failed] = {c.session_id for c in all_calls(samples.plain) if not c.healthy}
    use = ("-i", samples.plain, "--agent", "web_agent")
    before = rows_of("sft", tmp_path, *use)
    labels = tmp_path / "l.jsonl"
    LabelFile(labels).append(Label.of({"label": "good", "target": {"session": failed, "step": 0}}))
    after = rows_of("sft", tmp_path, *use, "--labels", labels)
    assert len(after) == len(before) + 1
    assert [r["metadata"]["reward"] for r in after if r["metadata"]["label"]] == [1.0]


def all_calls(path: Path) -> list[Call]:
    found = [r for r in read_records([path]) if isinstance(r, Record)]
    tries = [t for r in found for t in tries_of(r.where, r.row)]
    return [c for t in tries for c in calls_of(t) if isinstance(c, Call)]


# --- corrected replies ---------------------------------------------------------------------------


def test_a_corrected_reply_is_the_target_of_sft(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = call_of(plain, "sum", 1)
    labels = labelled(plain, {"target": target(call), "label": "bad", "reply": "It is 42.\u2028"})
    rows = rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
    [row] = [r for r in rows if r["metadata"]["corrected"]]
    assert row["completion"] == [{"role": "assistant", "content": "It is 42.\u2028"}]
    assert (row["metadata"]["label"], row["metadata"]["reward"]) == ("good", 1.0)
    assert "│ replies corrected        │     1 │".replace(" ", "") in (
        capsys.readouterr().out.replace(" ", "")
    )


def test_a_correction_with_tool_calls_is_checked_against_the_functions(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = target(call_of(plain, "sum", 0))
    right = {"name": "add", "arguments": {"a": 22, "b": 20}}
    wrong = [
        {"name": "ad", "arguments": {"a": 22, "b": 20}},
        {"name": "add", "arguments": {"a": 22}},
        {"name": "add", "arguments": {"a": 22, "b": 1, "c": 1}},
    ]
    for number, call in enumerate([right, *wrong]):
        line = {"target": where, "label": None, "reply": {"content": "", "tool_calls": [call]}}
        labels = labelled(plain, line)
        rows = rows_of("sft", tmp_path, "-i", plain, "--labels", labels)
        made = [r for r in rows if r["metadata"]["corrected"]]
        said = capsys.readouterr().out
        assert ("dropped: wrong tool call in a corrected reply" in said) == (number > 0)
        if number == 0:
            function = made[0]["completion"][0]["tool_calls"][0]["function"]
            assert function == {"name": "add", "arguments": {"a": 22, "b": 20}}
        else:
            assert ("sum", "ck_agent", 0) not in places(rows)


def test_a_correction_makes_a_pair_for_dpo_and_two_rows_for_kto(
    plain: Path, wrong: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without labels there is no pair: one input has no worse reply."""
    call = call_of(plain, "sum", 1)
    original = str(call.reply["content"])
    labels = labelled(plain, {"target": target(call), "label": None, "reply": "42!"})
    use = ("-i", plain, "--labels", labels, "--agent", "ck_agent")
    assert rows_of("dpo", tmp_path, "-i", plain) == []
    [pair] = rows_of("dpo", tmp_path, *use)
    assert (text(pair["chosen"]), text(pair["rejected"])) == ("42!", original)
    names = ("chosen_label", "rejected_label", "chosen_reward", "rejected_reward")
    assert [pair["metadata"][n] for n in names] == ["corrected", "bad", 1.0, 0.0]
    said = capsys.readouterr().out
    assert "pairs from labels" in said and "added: replies before correction" in said
    rows = rows_of("kto", tmp_path, *use)
    assert {(text(r["completion"]), r["label"]) for r in rows if r["metadata"]["task_id"] == "sum"
            and r["metadata"]["step"] == 1} == {("42!", True), (original, False)}  # fmt: skip
    # the correction has its own pair, also where tries with scores give others
    other = labelled(
        wrong, {"target": target(call_of(wrong, "capital", 1)), "label": None, "reply": "Paris!"}
    )
    both = ("-i", plain, wrong, "--labels", labels, "--labels", other, "--agent", "ck_agent")
    pairs = rows_of("dpo", tmp_path, *both, "--max-pairs", 2)
    found = {(text(r["chosen"]), text(r["rejected"])) for r in pairs}
    assert ("42!", original) in found and ("Paris!", "London") in found


def test_labels_of_runs_and_steps_are_rewards(plain: Path, tmp_path: Path, wrong: Path) -> None:
    """The scores say that `plain` is right; the labels say the opposite."""
    scored = rows_of("dpo", tmp_path, "-i", plain, wrong)
    of_plain = [{"target": target(call_of(plain, t, 0), level="run"), "label": "bad"} for t in
            ("sum", "capital")]  # fmt: skip
    of_wrong = [{"target": target(call_of(wrong, t, s), level="step"), "label": "good"} for t in
              ("sum", "capital") for s in (0, 1)]  # fmt: skip
    labels = [labelled(plain, *of_plain), labelled(wrong, *of_wrong)]
    use = [a for path in labels for a in ("--labels", path)]
    turned = rows_of("dpo", tmp_path, "-i", plain, wrong, *use)
    pairs = [{(str(r["chosen"]), str(r["rejected"])) for r in rows} for rows in (scored, turned)]
    assert pairs[0] and pairs[1] == {(b, a) for a, b in pairs[0]}
    kept = rows_of("sft", tmp_path, "-i", plain, "--labels", labels[0], "--min-score", 1)
    assert kept == []


@pytest.mark.parametrize(("good_score", "values"), [(5, (5.0, 0.0)), (-1, (1.0, -2.0))])
def test_labels_are_good_and_bad_for_any_good_score(
    plain: Path, tmp_path: Path, good_score: int, values: tuple[float, float]
) -> None:
    call = call_of(plain, "sum", 1)
    labels = labelled(plain, {"target": target(call), "reply": "42!"})
    use = ("-i", plain, "--labels", labels, "--good-score", good_score)
    [pair] = rows_of("dpo", tmp_path, *use)
    got = tuple(pair["metadata"][k] for k in ("chosen_reward", "rejected_reward"))
    assert got == values


def test_a_correction_replaces_a_reply_that_no_format_supports(tmp_path: Path) -> None:
    prompt = [{"role": "user", "content": "p"}]
    steps = [{"action": {"llm_input": prompt, "llm_output": ""}}]
    row = {"id": "t", "session": {"id": "s", "task": "t", "steps": steps}}
    source = tmp_path / "r.jsonl"
    source.write_text(json.dumps(row) + "\n")
    labels = labelled(source, {"target": {"id": "t", "session": "s", "step": 0, "call": 0},
                               "label": None, "reply": "fine"})  # fmt: skip
    for format_, count in (("sft", 1), ("kto", 1), ("ckpro", 1)):
        rows = rows_of(format_, tmp_path, "-i", source, "--labels", labels)
        assert len(rows) == count and "fine" in json.dumps(rows)


# --- all formats ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("format_", LIGHT_AND_LONG)
def test_every_format_obeys_and_its_trainer_loads_it(
    samples: Samples, tmp_path: Path, format_: str
) -> None:
    labels = LabelFile(tmp_path / "l.labels.jsonl")
    first, second = (call_of(samples.plain, "sum", n) for n in (0, 1))
    gone = call_of(samples.plain, "capital", 1)
    reply = {"content": "", "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 4711}}]}
    for line in (
        {"target": target(first), "label": "good", "reply": reply},
        {"target": target(second), "label": None, "reply": "CORRECTED"},
        {"target": target(gone), "label": "exclude"},
    ):
        labels.append(Label.of(line))
    use = ("-i", samples.plain, samples.wrong)
    before = shown(format_, tmp_path / "all" / f"o.{ending(format_)}", *use)
    after = shown(format_, tmp_path / f"o.{ending(format_)}", *use, "--labels", labels.path)
    for corrected in ("CORRECTED", "4711"):
        assert corrected not in before and corrected in after
    assert gone.reply["content"] == "Paris" and before.count("Paris") > after.count("Paris")


def shown(format_: str, path: Path, *args: Any) -> str:
    """What the trainer loads, as one text."""

    def plain(value: Any) -> Any:
        return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)

    return json.dumps(loaded(format_, export(format_, path, *args)), default=plain)


@pytest.mark.parametrize("format_", ["atif", "ckpro"])
@pytest.mark.parametrize("verdict", ["exclude", "bad"])
def test_a_run_leaves_formats_of_whole_runs(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str, verdict: str
) -> None:
    labels = labelled(
        plain, {"target": target(call_of(plain, "sum", 0), level="run"), "label": verdict}
    )
    [row] = rows_of(format_, tmp_path, "-i", plain, "--labels", labels)
    assert "capital" in json.dumps(row) and "20 + 22" not in json.dumps(row)
    assert "by label" in capsys.readouterr().out


def test_a_good_run_has_its_score_in_the_row(wrong: Path, tmp_path: Path) -> None:
    labels = labelled(
        wrong, {"target": target(call_of(wrong, "sum", 0), level="run"), "label": "good"}
    )
    rows = rows_of("ckpro", tmp_path, "-i", wrong, "--labels", labels, "--min-score", 1)
    assert [(r["id"], r["eval"]["corr"]) for r in rows] == [("sum", 1.0)]


_LABELS = st.lists(
    st.fixed_dictionaries(
        {
            "target": st.fixed_dictionaries(
                {
                    "session": st.sampled_from(["a", "b"]),
                    "step": st.integers(0, 2),
                    "call": st.integers(0, 2),
                }
            ),
            "label": st.sampled_from([None, "good", "bad", "exclude", "include"]),
        },
        optional={"reply": st.sampled_from(["fixed", "r0", "r1"])},
    )
    | st.fixed_dictionaries(
        {
            "target": st.sampled_from([{}, {"id": "t"}, {"session": "a"}, {"agent": "sub_agent"}]),
            "label": st.sampled_from([None, "good", "bad", "exclude", "include"]),
        }
    ),
    max_size=6,
)


@st.composite
def _runs(draw: st.DrawFn) -> dict[str, Any]:
    def part() -> dict[str, Any]:
        reply = draw(st.sampled_from(["r0", "r1", ""]))
        return {"llm_input": [{"role": "user", "content": draw(st.sampled_from("pq"))}],
                "llm_output": reply}  # fmt: skip

    def session(name: str) -> dict[str, Any]:
        steps = [{"plan": part(), "action": part()} for _ in range(draw(st.integers(1, 3)))]
        return {"id": name, "info": {"status": "done"}, "task": "t", "steps": steps}

    main_session = session("a")
    if draw(st.booleans()):
        main_session["steps"][0]["action"]["sub_sessions"] = [session("b")]
    return {"id": "t", "task": "t", "session": main_session, "eval": {"corr": draw(
        st.sampled_from([None, 0, 1]))}}  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), run=_runs(), lines=_LABELS)
def test_no_excluded_call_is_exported_and_the_sums_agree(
    tmp_path_factory: pytest.TempPathFactory, data: Any, run: dict[str, Any], lines: list[Any]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "labelled"
    folder.mkdir(exist_ok=True)
    source, labels, out = (folder / n for n in ("r.jsonl", "r.labels.jsonl", "o.jsonl"))
    source.write_text(json.dumps(run) + "\n")
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines))
    format_ = FORMATS[data.draw(st.sampled_from(["sft", "dpo", "kto", "sharegpt", "ckpro"]))]
    keep = data.draw(st.sampled_from(["keep", "drop"]))
    filters = FilterSettings(labels=[labels], duplicates=keep)
    report: Report = export_in_python(ExportSettings(format_, [source], out, filters, force=True))
    dropped = sum(report.dropped.values())
    assert report.calls_in + report.originals == report.calls_used + dropped
    last = {json.dumps(line["target"], sort_keys=True): line for line in lines}
    gone = [line["target"] for line in last.values() if line["label"] == "exclude"]
    back = [line["target"] for line in last.values() if line["label"] == "include"]
    if format_.name in ("sft", "kto", "sharegpt") and not back:
        for m in (r["metadata"] for r in read_lines(out)):
            facts = {"id": m["task_id"], "agent": m["agent"], "session": m["session"],
                     "step": m["step"], "call": {"plan": 0, "action": 1}[m["phase"]]}  # fmt: skip
            assert not any(all(facts[k] == v for k, v in t.items()) for t in gone)
            assert format_.name == "kto" or m["label"] != "bad"


def test_a_corrected_action_is_parsed_again_for_whole_runs(plain: Path, tmp_path: Path) -> None:
    call = call_of(plain, "sum", 0)
    code = "Thought: I compute.\n```python\nprint(20 + 22)\n```"
    labels = labelled(plain, {"target": target(call), "reply": code})
    rows = rows_of("ckpro", tmp_path, "-i", plain, "--labels", labels)
    action = next(r for r in rows if r["id"] == "sum")["session"]["steps"][0]["action"]
    assert (action["llm_output"], action["thought"], action["code"]) == (
        code, "I compute.", "print(20 + 22)")  # fmt: skip
    atif = rows_of("atif", tmp_path, "-i", plain, "--labels", labels)
    calls = [s["tool_calls"] for t in atif for s in t["steps"] if s.get("message") == code]
    assert [c[0]["arguments"] for c in calls] == [{"code": "print(20 + 22)"}]
    tools = {"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}
    labelled(plain, {"target": target(call), "reply": tools})
    rows = rows_of("ckpro", tmp_path, "-i", plain, "--labels", labels)
    action = next(r for r in rows if r["id"] == "sum")["session"]["steps"][0]["action"]
    assert action["code"] == "add(a=1, b=2)" and '"add"' in action["llm_output"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whole_runs_stay_valid_under_any_labels(
    samples: Samples, tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("whole")
    found = all_calls(samples.good)
    labels = LabelFile(folder / "l.jsonl")
    for call in data.draw(st.lists(st.sampled_from(found), max_size=5)):
        verdict = data.draw(st.sampled_from([None, "good", "bad", "exclude"]))
        reply = data.draw(st.sampled_from([None, "fixed", "```python\nx = 1\n```"]))
        level = data.draw(st.sampled_from(["call", "step", "session"]))
        more = {"reply": reply} if level == "call" and reply else {}
        labels.append(Label.of({"target": target(call, level=level), "label": verdict, **more}))
    if not labels.path.exists():
        labels.path.touch()
    for format_ in ("atif", "ckpro"):
        out = folder / f"{format_}.jsonl"
        args = ["-f", format_, "-i", str(samples.good), "-o", str(out)]
        assert main([*args, "--labels", str(labels.path)]) in (0, 1)
        if out.read_bytes():
            loaded(format_, out)


def test_an_export_never_replaces_its_labels(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = labelled(plain, {"target": {"id": "sum"}, "label": "exclude"})
    before = labels.read_bytes()
    args = ["-f", "sft", "-i", plain, "--labels", labels, "-o", labels, "--force"]
    assert main([str(a) for a in args]) == 2
    assert "is also an input" in capsys.readouterr().err and labels.read_bytes() == before


def test_rows_without_ids_can_be_labelled(tmp_path: Path) -> None:
    """A session without an id is known by a hash."""
    prompt = [{"role": "user", "content": "p"}]
    steps = [{"action": {"llm_input": prompt, "llm_output": f"r{n}"}} for n in range(2)]
    source = tmp_path / "r.jsonl"
    source.write_text(json.dumps({"task": "t", "session": {"task": "t", "steps": steps}}) + "\n")
    [call] = [c for c in all_calls(source) if c.step == 1]
    where = {"id": "", "session": call.session_id, "run": call.session_id, "step": 1, "call": 0}
    labels = labelled(source, {"target": where, "label": "exclude"})
    rows = rows_of("sft", tmp_path, "-i", source, "--labels", labels)
    assert [text(r["completion"]) for r in rows] == ["r0"]


def three_tries(path: Path) -> list[dict[str, Any]]:
    """Rows of one task with equal prompts: replies r0, r1, r2, with the scores 1, 0, unknown."""
    rows = []
    for n, score in enumerate((1, 0, None)):
        prompt = [{"role": "user", "content": "p"}]
        steps = [{"action": {"llm_input": prompt, "llm_output": f"r{n}"}}]
        session = {"id": f"s{n}", "task": "t", "steps": steps}
        rows.append({"id": f"t{n}", "task": "t", "session": session, "eval": {"corr": score}})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [{"id": f"t{n}", "session": f"s{n}", "step": 0, "call": 0} for n in range(3)]


def pairs(tmp_path: Path, *args: Any) -> list[tuple[str, str]]:
    rows = rows_of("dpo", tmp_path, *args)
    return [(text(r["chosen"]), text(r["rejected"])) for r in rows]


def test_each_correction_has_its_pair_whatever_the_limit(tmp_path: Path) -> None:
    source = tmp_path / "r.jsonl"
    calls = three_tries(source)
    assert pairs(tmp_path, "-i", source) == [("r0", "r1")]
    labels = labelled(
        source, *({"target": calls[n], "label": None, "reply": f"fixed {n}"} for n in (1, 2))
    )
    use = ("-i", source, "--labels", labels)
    corrections = {("fixed 1", "r1"), ("fixed 2", "r2")}
    assert set(pairs(tmp_path, *use)) == corrections
    assert set(pairs(tmp_path, *use, "--label", "corrected")) == corrections
    # r0 is left over: there is no further reply to reject
    assert set(pairs(tmp_path, *use, "--max-pairs", 5)) == corrections


def test_labels_of_calls_replace_scores_of_equal_replies(tmp_path: Path) -> None:
    source = tmp_path / "r.jsonl"
    calls = three_tries(source)
    labels = labelled(
        source, {"target": calls[0], "label": "bad"}, {"target": calls[2], "label": "good"}
    )
    use = ("-i", source, "--labels", labels)
    assert pairs(tmp_path, *use) in ([("r2", "r0")], [("r2", "r1")])
    kto = {text(r["completion"]): r["label"] for r in rows_of("kto", tmp_path, *use)}
    assert kto == {"r0": False, "r1": False, "r2": True}
    sft = [text(r["completion"]) for r in rows_of("sft", tmp_path, *use)]
    assert sft == ["r1", "r2"]


def test_later_label_files_take_precedence(tmp_path: Path) -> None:
    source = tmp_path / "r.jsonl"
    calls = three_tries(source)
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    LabelFile(first).append(Label.of({"target": calls[0], "label": "exclude"}))
    LabelFile(second).append(Label.of({"target": calls[0], "label": "good"}))
    kept = {}
    for name, files in (("12", (first, second)), ("21", (second, first))):
        args = [a for file in files for a in ("--labels", file)]
        rows = rows_of("sft", tmp_path, "-i", source, *args)
        kept[name] = [text(r["completion"]) for r in rows]
    assert kept == {"12": ["r0", "r1", "r2"], "21": ["r1", "r2"]}
