"""Which model calls become training rows."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT
from sample_runs import Samples, data_url, png, read_lines

from ck_pro.trajectory.export import main

pytestmark = pytest.mark.integration


def export(*args: Any, code: int = 0) -> None:
    assert main([str(a) for a in args]) == code


def sft(output: Path, *args: Any, code: int = 0) -> list[dict[str, Any]]:
    export("-f", "sft", "-o", output, "--force", *args, code=code)
    return read_lines(output) if output.exists() else []


def facts(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(r["metadata"][n] for n in names) for r in rows]


def text(message: dict[str, Any]) -> str:
    """Return the text of a message; its content is text or parts."""
    given = message["content"]
    return given if isinstance(given, str) else "".join(p.get("text", "") for p in given)


def call_row(text: str = "hi", reply: str = "ok", **more: Any) -> dict[str, Any]:
    """Return a phase with a model call, as any program with CK-Pro's schema writes it."""
    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": text}]
    return {"thought": "", "code": "", "llm_input": prompt, "llm_output": reply, **more}


def foreign(task: str, *actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a row without the keys that this project added."""
    steps: list[dict[str, Any]] = [
        {"step_idx": n, "plan": {"llm_input": [], "llm_output": ""}, "action": a}
        for n, a in enumerate(actions)
    ]
    steps[-1]["end"] = {"final_results": {"output": "x", "log": ""}}
    return {"id": task, "task": task, "session": {"task": task, "steps": steps}, **more}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


# --- rows --------------------------------------------------------------------------------------


def test_a_row_per_call_at_every_depth(samples: Samples, tmp_path: Path) -> None:
    rows = sft(tmp_path / "o.jsonl", "-i", samples.plain, "--failed-subs", "keep")
    where = Counter(facts(rows, "task_id", "agent_path", "depth", "phase", "step", "status"))
    web = "ck_agent/web_agent"
    assert where == {
        ("capital", "ck_agent", 0, "action", 0, "done"): 1,
        ("capital", "ck_agent", 0, "action", 1, "done"): 1,
        ("capital", web, 1, "action", 0, "done"): 1,
        ("capital", web, 1, "action", 1, "done"): 1,
        ("capital", web, 1, "action", 0, "problem"): 1,
        ("capital", web, 1, "action", 1, "problem"): 1,
        ("sum", "ck_agent", 0, "action", 0, "done"): 1,
        ("sum", "ck_agent", 0, "action", 1, "done"): 1,
    }
    assert set(facts(rows, "model", "scored", "try")) == {("scripted", True, 0)}
    first = next(r for r in rows if r["metadata"]["task_id"] == "sum")
    assert list(first) == ["prompt", "completion", "tools", "metadata"]
    assert [m["role"] for m in first["prompt"]] == ["system", "user"]
    (made,) = first["completion"][0]["tool_calls"]
    assert made["function"] == {"name": "add", "arguments": {"a": 20, "b": 22}}
    assert {t["function"]["name"] for t in json.loads(first["tools"])} == {"add", "web_agent"}


def test_failed_sub_sessions_are_dropped_and_good_ones_kept(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = sft(tmp_path / "o.jsonl", "-i", samples.good)
    assert Counter(facts(rows, "agent", "status")) == {
        ("ck_agent", "done"): 4,
        ("web_agent", "done"): 2,
    }
    table = capsys.readouterr().out
    assert "dropped: failed sub-session" in table and "tokens, estimated" in table


@pytest.mark.parametrize("format_", ["sft", "sharegpt", "axolotl", "atif", "ckpro"])
def test_rows_and_journals_give_the_same(samples: Samples, tmp_path: Path, format_: str) -> None:
    one, two = tmp_path / "1" / "o.jsonl", tmp_path / "2" / "o.jsonl"
    export("-f", format_, "-i", samples.good, "-o", one)
    export("-f", format_, "-i", samples.journals(samples.good), "-o", two)
    assert one.read_bytes() == two.read_bytes() != b""
    assert sorted(p.name for p in one.parent.rglob("*")) == sorted(
        p.name for p in two.parent.rglob("*")
    )


def test_one_journal_is_an_input(samples: Samples, tmp_path: Path) -> None:
    rows = sft(tmp_path / "o.jsonl", "-i", samples.journals(samples.good) / "sum")
    assert facts(rows, "task_id", "step", "reward") == [("sum", 0, 1.0), ("sum", 1, 1.0)]


def test_a_session_in_observation_and_sub_sessions_counts_once(tmp_path: Path) -> None:
    sub = {"id": "s1", "task": "deep", "steps": [{"action": call_row("deep")}]}
    shown = {"output": "o", "log": "", "task": "deep", "repr": "r", "session": sub}
    unprinted = {"id": "s2", "task": "deep", "steps": [{"action": call_row("deeper", "yes")}]}
    first = call_row("top", observation=["text", shown], sub_sessions=[sub, unprinted])
    later = call_row("top 2", observation=shown)
    path = write(tmp_path / "r.jsonl", foreign("t", first, later))
    sub["steps"][0]["end"] = {"final_results": {"output": "o", "log": ""}}  # type: ignore[index]
    rows = sft(tmp_path / "o.jsonl", "-i", path, "--failed-subs", "keep", "--duplicates", "keep")
    assert [r["prompt"][1]["content"] for r in rows] == ["top", "deep", "deeper", "top 2"]


def test_rows_of_other_programs_are_exported(tmp_path: Path) -> None:
    web = {"steps": [{"action": call_row("w", web_state_before={"url": "u"})}]}
    candidates = [{"output": n, "session": {**web, "id": n}} for n in "ab"]
    shown = candidates[0]["session"]
    several = {"output": "a", "sel_cands": candidates, "sel_idx": 0, "session": shown}
    ask = {"phase": "tool:ask_llm", **call_row("q", "a")}
    action = call_row("t", observation=several, model_calls=[ask])
    row = foreign("t", action, eval={"corr": "Correct"})
    path = write(tmp_path / "r.jsonl", row)
    rows = sft(tmp_path / "o.jsonl", "-i", path, "--failed-subs", "keep")
    assert facts(rows, "agent_path", "phase", "reward", "model") == [
        ("ck_agent", "action", 1.0, ""),
        ("ck_agent", "tool:ask_llm", 1.0, ""),
        ("ck_agent/web_agent", "action", 0.0, ""),
    ]  # equal calls of the candidates count once


def test_previous_failed_sessions_are_tries(tmp_path: Path) -> None:
    row = foreign("t", call_row("p", "good"), eval={"corr": 1})
    row["previous_failed_sessions"] = [foreign("t", call_row("p", "bad"))["session"]]
    path = write(tmp_path / "r.jsonl", row)
    assert facts(sft(tmp_path / "o.jsonl", "-i", path), "try", "reward") == [(0, 0.0), (1, 1.0)]
    export("-f", "dpo", "-i", path, "-o", tmp_path / "d.jsonl")
    (pair,) = read_lines(tmp_path / "d.jsonl")
    said = pair["chosen"][0]["content"], pair["rejected"][0]["content"]
    assert said == ("good", "bad")


def test_each_image_is_stored_once(samples: Samples, tmp_path: Path) -> None:
    rows = sft(tmp_path / "o.jsonl", "-i", samples.good, samples.wrong, "--failed-subs", "keep")
    named = {i for r in rows for i in r["images"]}
    assert {(tmp_path / n).read_bytes() for n in named} == {png(1), png(2)}
    assert len(list((tmp_path / "o_images").iterdir())) == 2
    for row in rows:
        parts = [p for m in row["prompt"] for p in m["content"]]
        assert sum(p["type"] == "image" for p in parts) == len(row["images"])
    assert len(rows[0]["images"]) == 1 or len(rows[1]["images"]) == 1
    plain = sft(tmp_path / "p.jsonl", "-i", samples.good, "--images", "drop")
    assert all(isinstance(m["content"], str) for r in plain for m in r["prompt"])
    assert not (tmp_path / "p_images").exists()


def test_reasoning_is_dropped_a_field_or_inline(samples: Samples, tmp_path: Path) -> None:
    args = ("-i", samples.plain, "--agent", "ck_agent")
    field = sft(tmp_path / "o.jsonl", *args, "--reasoning", "field")
    assert [r["completion"][0].get("reasoning_content") for r in field].count("I should look.") == 2
    inline = sft(tmp_path / "o.jsonl", *args, "--reasoning", "inline")
    assert inline[0]["completion"][0]["content"].startswith("<think>\nI should look.\n</think>")


def test_sft_rows_can_have_one_list_of_messages(samples: Samples, tmp_path: Path) -> None:
    rows = sft(tmp_path / "o.jsonl", "-i", samples.plain, "--columns", "messages")
    assert {r["messages"][-1]["role"] for r in rows} == {"assistant"}


# --- preferences -------------------------------------------------------------------------------


def test_pairs_come_from_several_tries(samples: Samples, tmp_path: Path) -> None:
    export("-f", "dpo", "-i", samples.good, samples.wrong, "-o", tmp_path / "d.jsonl")
    pairs = {r["metadata"]["task_id"]: r for r in read_lines(tmp_path / "d.jsonl")}
    assert set(pairs) == {"capital", "sum"}
    added = [pairs["sum"][k][0]["tool_calls"][0] for k in ("chosen", "rejected")]
    assert [c["function"]["arguments"]["b"] for c in added] == [22, 23]
    assert text(pairs["capital"]["chosen"][0]) == "Paris"
    assert pairs["capital"]["metadata"]["chosen_reward"] == 1.0


def test_kto_labels_replies_by_score(samples: Samples, tmp_path: Path) -> None:
    export("-f", "kto", "-i", samples.good, samples.wrong, "-o", tmp_path / "k.jsonl")
    rows = read_lines(tmp_path / "k.jsonl")
    said = {(text(r["completion"][0]), r["label"]) for r in rows}
    assert ("Paris", True) in said and ("London", False) in said
    # a failed sub-session in a good run is a negative example
    assert {r["label"] for r in rows if r["metadata"]["status"] == "problem"} == {False}


def test_max_pairs_limits_the_pairs_of_a_prompt(tmp_path: Path) -> None:
    rows = [foreign("t", call_row("p", f"r{n}"), eval={"corr": n / 4}) for n in range(5)]
    path = write(tmp_path / "r.jsonl", *rows)
    for limit, good, expected in ((1, 1, [("r4", "r0")]), (9, 0.7, [("r4", "r0"), ("r3", "r1")])):
        export("-f", "dpo", "-i", path, "-o", tmp_path / "d.jsonl", "--force",
               "--max-pairs", limit, "--good-score", good)  # fmt: skip
        pairs = read_lines(tmp_path / "d.jsonl")
        assert [(p["chosen"][0]["content"], p["rejected"][0]["content"]) for p in pairs] == expected


# --- filters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        (["--min-score", "1"], {"good"}),
        (["--max-score", "0.5"], {"bad"}),
        (["--status", "done"], {"good", "bad"}),
        (["--status", "problem"], set()),
        (["--where", "feedback~SLOW"], {"bad"}),
        (["--where", "feedback!~slow"], {"good", "unscored"}),
        (["--where", "_orig.Level>=2", "--where", "eval.corr==1"], {"good"}),
        (["--where", "judge.vote==yes"], {"bad"}),
        (["--score-from", "judge.vote", "--min-score", "1"], {"bad"}),
        (["--best", "1"], {"good"}),
        (["--best", "2"], {"good", "bad"}),
        (["--min-chars", "100"], {"bad"}),
        (["--max-chars", "99"], {"good", "unscored"}),
        (["--max-tokens", "20"], {"good", "unscored"}),
        (["--agent", "ck_agent"], {"good", "bad", "unscored"}),
        (["--agent", "web_agent"], set()),
        (["--phase", "plan"], set()),
        (["--errors", "drop"], {"good", "bad"}),
    ],
)
def test_each_filter_drops_calls(tmp_path: Path, args: list[str], kept: set[str]) -> None:
    rows = [
        foreign("t", call_row("p", "good"), eval={"corr": 1}, _orig={"Level": 2}),
        foreign(
            "t",
            call_row("p" * 100, "bad"),
            eval={"corr": 0},
            feedback="too slow",
            judge={"vote": "yes"},
        ),
        foreign("t", call_row("p", "unscored", error={"error": "NameError"})),
    ]
    rows[2]["session"]["info"] = {"status": "ambiguity"}
    path = write(tmp_path / "r.jsonl", *rows)
    found = sft(tmp_path / "o.jsonl", "-i", path, *args, code=0 if kept else 1)
    assert {r["completion"][0]["content"] for r in found} == kept


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--phase", "actoin"], "'actoin' is not plan, action, end or tool:NAME; did you mean 'ac"),
        (["--phase", "tool:"], "'tool:' is not plan, action, end or tool:NAME"),
        (["--status", "don"], "'don' is not one of 'in_progress', 'done', "),
    ],
)
def test_a_mistyped_value_of_a_filter_is_a_usage_error(
    tmp_path: Path, args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "r.jsonl", foreign("t", call_row("p", "r")))
    export("-f", "sft", "-i", path, "-o", tmp_path / "o.jsonl", *args, code=2)
    assert said in capsys.readouterr().err and not (tmp_path / "o.jsonl").exists()


@pytest.mark.parametrize(
    ("form", "args", "said"),
    [
        ("sft", ["--where", "feedbak!~slow"], "--where feedbak: no row has it\n"),
        ("ckpro", ["--where", "eval.corrr==1"], "--where eval.corrr: no row has it\n"),
        ("sft", ["--score-from", "jugde", "--min-score", "1"], "--score-from jugde: no row"),
        ("sft", ["--agent", "ck_agnt"], "--agent ck_agnt: no model call has it; did you mean 'ck_"),
        ("sft", ["--phase", "tool:x"], "--phase tool:x: no model call has it\n"),
    ],
)
def test_a_filter_that_matches_nothing_in_the_input_is_reported(
    tmp_path: Path, form: str, args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "r.jsonl", foreign("t", call_row("p", "r"), eval={"corr": 1}))
    code = 0 if "feedbak" in args[1] else 1
    export("-f", form, "-i", path, "-o", tmp_path / "o.jsonl", *args, code=code)
    assert f"warning: {said}" in capsys.readouterr().err
    good = ["--where", "eval.corr==1", *(["--agent", "ck_agent"] if form == "sft" else [])]
    export("-f", form, "-i", path, "-o", tmp_path / "p.jsonl", *good)
    assert capsys.readouterr().err == ""


def test_an_export_without_rows_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = write(tmp_path / "r.jsonl")
    export("-f", "sft", "-i", empty, "-o", tmp_path / "o.jsonl", code=1)
    assert "no rows: the input has no model calls\n" in capsys.readouterr().out
    some = write(tmp_path / "s.jsonl", foreign("t", call_row("p", "r")))
    export("-f", "sft", "-i", some, "-o", tmp_path / "p.jsonl", "--min-score", "1", code=1)
    assert "no rows: the table shows what was dropped\n" in capsys.readouterr().out


def test_both_replies_of_an_end_phase_are_calls(tmp_path: Path) -> None:
    row = foreign("a", call_row("p", "act"))
    unusable = {"phase": "end", **call_row("r", "no end", unreadable="no dict")}
    row["session"]["steps"][0]["end"] = call_row("r", "an end", model_calls=[unusable])
    path = write(tmp_path / "rows.jsonl", row)
    kept = [r["completion"][0]["content"] for r in sft(tmp_path / "a.jsonl", "-i", path)]
    assert kept == ["act", "an end"]
    found = sft(tmp_path / "b.jsonl", "-i", path, "--unreadable", "keep")
    assert [r["completion"][0]["content"] for r in found] == ["act", "no end", "an end"]


def test_unreadable_replies_are_dropped_by_default(tmp_path: Path) -> None:
    rows = [
        foreign("a", call_row("p", "whole"), eval={"corr": 1}),
        foreign("b", call_row("p", "half", unreadable="an invented observation"), eval={"corr": 1}),
        foreign("c", call_row("p", "none", error={"error": "ParseError"}), eval={"corr": 1}),
        foreign("d", call_row("p", "failed", error={"error": "NameError"}), eval={"corr": 1}),
    ]
    steps = rows[0]["session"]["steps"]
    steps[0]["plan"] = call_row("q", "no plan", unreadable="holds no dict")
    steps[0]["end"] = call_row("r", "no end", unreadable="holds no dict")
    path = write(tmp_path / "r.jsonl", *rows)
    said = [r["completion"][0]["content"] for r in sft(tmp_path / "o.jsonl", "-i", path)]
    assert said == ["whole", "failed"]
    found = sft(tmp_path / "p.jsonl", "-i", path, "--unreadable", "keep")
    rewards = {r["completion"][0]["content"]: r["metadata"]["reward"] for r in found}
    assert rewards.pop("whole") == rewards.pop("failed") == 1.0
    assert rewards == dict.fromkeys(("half", "none", "no plan", "no end"), 0.0)


def test_the_best_of_several_tries_is_the_shortest_of_the_right_ones(tmp_path: Path) -> None:
    long = foreign("t", call_row("p", "long"), call_row("p", "long 2"), eval={"corr": 1})
    short = foreign("t", call_row("p", "short"), eval={"corr": 1})
    other = foreign("other task", call_row("p", "other"), eval={"corr": 1})
    paths = [write(tmp_path / "a.jsonl", long, other), write(tmp_path / "b.jsonl", short)]
    rows = sft(tmp_path / "o.jsonl", "-i", *paths, "--best", 1)
    assert [r["completion"][0]["content"] for r in rows] == ["other", "short"]


def test_labels_select_steps(samples: Samples, tmp_path: Path) -> None:
    labels = write(
        tmp_path / "labels.jsonl",
        {"label": "exclude", "id": "capital"},
        {"label": "include", "id": "capital", "agent_path": "ck_agent", "step": 1},
    )
    with labels.open("a", encoding="utf-8") as file:
        file.write('{"label": "exclude", "id": "no\u2028line ends here"}\n')
    args = ("-i", samples.plain, "--labels", labels)
    rows = sft(tmp_path / "o.jsonl", *args)
    assert set(facts(rows, "task_id", "step")) == {("sum", 0), ("capital", 1), ("sum", 1)}
    rows = sft(tmp_path / "o.jsonl", *args, "--unlabelled", "drop")
    assert facts(rows, "task_id", "step") == [("capital", 1)]


def test_duplicates_are_dropped_by_default(samples: Samples, tmp_path: Path) -> None:
    once = sft(tmp_path / "o.jsonl", "-i", samples.plain, samples.plain)
    twice = sft(tmp_path / "o.jsonl", "-i", samples.plain, samples.plain, "--duplicates", "keep")
    assert len(twice) == 2 * len(once)
    for format_ in ("atif", "ckpro"):
        out = tmp_path / "w.jsonl"
        export("-f", format_, "-i", samples.plain, samples.plain, "-o", out, "--force")
        assert len(read_lines(out)) == 2


def test_calls_that_no_format_supports_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(part: Any) -> dict[str, Any]:
        return {**call_row(), "llm_input": [{"role": "user", "content": [part]}]}

    svg = data_url(1).replace("image/png", "image/svg+xml")
    actions = [
        call_row("p", ""),
        call_row(
            "p", "x", llm_info={"tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}
        ),
        {**call_row(), "llm_input": [{"role": "wizard", "content": "x"}]},
        shown({"type": "audio", "audio": "x"}),
        shown({"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}),
        shown({"type": "image_url", "image_url": svg}),
        shown({"type": "image_url", "image_url": "data:image/png;base64,***"}),
        call_row("p", "fine"),
    ]
    rows = sft(tmp_path / "o.jsonl", "-i", write(tmp_path / "r.jsonl", foreign("t", *actions)))
    assert [r["completion"][0]["content"] for r in rows] == [[{"type": "text", "text": "fine"}]]
    table = capsys.readouterr().out
    for reason in ("empty reply", "unreadable tool call", "unknown role", "neither text nor image",
                   "not in the row", "do not load", "unreadable image"):  # fmt: skip
        assert reason in table


# --- bad input, exit codes ---------------------------------------------------------------------


def test_broken_lines_are_reported_and_the_rest_exported(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = samples.plain.read_bytes().splitlines(keepends=True)
    path = tmp_path / "r.jsonl"
    bad_step = json.dumps(foreign("t", call_row())).replace('"action"', '"action": 3, "x"', 1)
    bad_score = json.dumps(foreign("t", call_row(), eval={"corr": [1]}))
    lines = [b"\xef\xbb\xbf" + good[0][:-1] + b"\r\n", b"\n", b'{"id": 1\n', b"[]\n", b"\xff\n",
             b"[" * 100_000 + b"\n", bad_step.encode() + b"\n", bad_score.encode() + b"\n",
             good[1], good[0][:50]]  # fmt: skip
    path.write_bytes(b"".join(lines))
    rows = sft(tmp_path / "o.jsonl", "-i", path, code=3)
    assert {r["metadata"]["task_id"] for r in rows} == {"capital", "sum"}
    said = capsys.readouterr().err.splitlines()
    assert [s.split(": ")[0].rpartition(" ")[2] for s in said] == [
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "10",
    ]
    assert said[1] == f"{path}, line 4: not an output row: it has no session with steps (skipped)"
    assert "eval.corr is [1]" in said[5] and "torn" in said[6]


def test_unfinished_and_broken_journals_are_counted(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = (samples.journals(samples.plain) / "sum" / "events.jsonl").read_bytes()
    lines = events.splitlines(keepends=True)
    made = {"whole": events, "cut": b"".join(lines[:6]) + lines[6][:9], "odd": b'{"kind": 1}\n',
            "empty": b"", "other": b'{"kind":"x","data":{}}\n'}  # fmt: skip
    for name, content in made.items():
        (tmp_path / "run" / name).mkdir(parents=True)
        (tmp_path / "run" / name / "events.jsonl").write_bytes(content)
    rows = sft(tmp_path / "o.jsonl", "-i", tmp_path / "run", code=3)
    assert len(rows) == 2
    said = capsys.readouterr()
    assert "unfinished runs, skipped" in said.out
    assert f"{tmp_path}/run/odd: events.jsonl, line 1: not an event (skipped)" in said.err
    assert f"{tmp_path}/run/other: events.jsonl, line 1: not an event: it has no" in said.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-f", "sft", "-o", "o.jsonl"], "give at least one --input"),
        (["-f", "sft", "-i", "nowhere", "-o", "o.jsonl"], "cannot read nowhere"),
        (["-f", "sft", "-i", "empty", "-o", "o.jsonl"], "no journal in it"),
        (["-f", "sft", "-i", "r.jsonl", "-o", "r.jsonl", "--force"], "is also an input"),
        (["-f", "verl", "-i", "r.jsonl", "-o", "o.jsonl"], "name a file ....parquet"),
        (["-f", "axolotl", "-i", "r.jsonl", "-o", "o.parquet"], "name a file ....jsonl"),
        (["-f", "sft", "-i", "r.jsonl", "-o", "o.jsonl", "--images", "embed"], "....parquet"),
        (
            ["-f", "atif", "-i", "r.jsonl", "-o", "o", "--images", "embed"],
            "only folder and drop",
        ),
        (
            ["-f", "parquet", "-i", "r.jsonl", "-o", "o.parquet", "--images", "folder"],
            "Parquet supports only embed and drop",
        ),
        (
            ["-f", "ckpro", "-i", "r.jsonl", "-o", "o.jsonl", "--images", "drop"],
            "supports only embed",
        ),
        (["-f", "dpo", "-i", "r.jsonl", "-o", "o.jsonl", "--columns", "messages"], "own columns"),
        (["-f", "atif", "-i", "r.jsonl", "-o", "o", "--reasoning", "inline"], "supports only drop"),
        (["-f", "sharegpt", "-i", "r.jsonl", "-o", "o.jsonl", "--reasoning", "field"], "inline"),
        (["-f", "atif", "-i", "r.jsonl", "-o", "o", "--phase", "plan"], "do not apply"),
        (["-f", "sft", "-i", "r.jsonl", "-o", "o.jsonl", "--where", "x"], "not a condition"),
        (
            ["-f", "sft", "-i", "r.jsonl", "-o", "o.jsonl", "--min-score", "nan"],
            "nan is not a score",
        ),
        (["-f", "sft", "-i", "r.jsonl", "-o", "o.jsonl", "--where", "x~("], "regular expression"),
        (
            ["-f", "sft", "-i", "r.jsonl", "-o", "o.jsonl", "--labels", "l"],
            "cannot read the labels",
        ),
        (["-f", "sft", "-i", "r.jsonl", "-o", "o.jsonl", "--labels", "r.jsonl"], "line 1: a label"),
        (
            ["-f", "sft", "-i", "r.jsonl", "-o", "o.jsonl", "--labels", "odd"],
            "unknown key 'color'",
        ),
        (["-f", "sft", "-i", "r.gz", "-o", "o.jsonl"], "r.gz is compressed (gzip): unpack it"),
        (["-f", "sft", "-i", "run/t/events.jsonl", "-o", "o.jsonl"], "name its folder, run/t"),
        (["-f", "sft", "-i", "no*.jsonl", "-o", "o.jsonl"], "cannot read no*.jsonl: No such file"),
        (["-f", "sft", "-i", "r.jsonl", "-o", "./r.jsonl", "--force"], "is also an input"),
        (["-f", "nope", "-i", "r.jsonl", "-o", "o.jsonl"], "'nope' is not one of"),
    ],
)
def test_conflicting_options_are_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    args: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "r.jsonl", foreign("t", call_row()))
    write(tmp_path / "odd", {"label": "include", "color": "red"})
    (tmp_path / "r.gz").write_bytes(gzip.compress(b"{}"))
    (tmp_path / "run" / "t").mkdir(parents=True)
    (tmp_path / "run" / "t" / "events.jsonl").write_text("{}")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.iterdir())
    assert main(args) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and message in said and said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_an_existing_output_stays_without_force(samples: Samples, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    out.write_text("mine")
    export("-f", "sft", "-i", samples.plain, "-o", out, code=4)
    assert out.read_text() == "mine" and list(tmp_path.iterdir()) == [out]
    folder = tmp_path / "o"
    folder.mkdir()
    (folder / "letter.txt").write_text("mine")
    export("-f", "atif", "-i", samples.plain, "-o", folder, "--force", code=4)
    for format_ in ("sft", "ckpro"):  # a folder is never replaced by a file
        export("-f", format_, "-i", samples.plain, "-o", folder, "--force", code=4)
    assert (folder / "letter.txt").read_text() == "mine"
    export("-f", "sft", "-i", samples.plain, "-o", out / "x.jsonl", code=4)


def test_no_pipe_or_device_is_replaced_by_a_file(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for output in ("pipe", "-"):
        for format_ in ("sft", "atif"):
            export("-f", format_, "-i", samples.plain, "-o", output, "--force", code=4)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"] and Path("pipe").is_fifo()


def test_long_ids_are_shortened_in_file_names(samples: Samples, tmp_path: Path) -> None:
    row = {**read_lines(samples.plain)[0], "id": "\U00020000" * 200}
    export("-f", "atif", "-i", write(tmp_path / "r.jsonl", row), "-o", tmp_path / "o")
    assert len(list((tmp_path / "o").iterdir())) == 1


def test_a_full_temporary_folder_is_an_output_error(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ck_pro.trajectory.reading.spill.os.pwrite", full)
    journals = samples.journals(samples.plain)
    export("-f", "sft", "-i", journals, "-o", tmp_path / "o.jsonl", code=4)
    said = capsys.readouterr().err
    assert "No space left on device; set TMPDIR" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_leaves_no_files(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for format_, output in (("dpo", "o.jsonl"), ("parquet", "o.parquet"), ("atif", "o")):
        for error, code in (
            (OSError(28, "No space left on device"), 4),
            (KeyboardInterrupt(), 130),
        ):
            with monkeypatch.context() as m:

                def fail(*_: Any, error: BaseException = error) -> None:
                    raise error

                for name in ("JsonLinesWriter", "ParquetWriter", "JsonFolderWriter"):
                    m.setattr(f"ck_pro.trajectory.exporting.writers.{name}._write", fail)
                paths = (samples.plain, samples.wrong)
                export("-f", format_, "-i", *paths, "-o", tmp_path / output, code=code)
            assert [p.name for p in tmp_path.iterdir() if "_images" not in p.name] == []


def test_files_of_a_killed_export_are_replaced(samples: Samples, tmp_path: Path) -> None:
    for name in (".d.jsonl.replies", ".d.jsonl.partial"):
        (tmp_path / name).write_text("torn")
    export("-f", "dpo", "-i", samples.plain, samples.wrong, "-o", tmp_path / "d.jsonl")
    assert [p.name for p in tmp_path.iterdir()] == ["d.jsonl"]


def test_an_internal_error_is_one_line_and_a_log(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    errors = ZeroDivisionError("oh"), sqlite3.OperationalError("disk full")
    for name, error, code in (("tokens_of", errors[0], 6), ("Replies.add", errors[1], 4)):

        def fail(*args: Any, error: Exception = error) -> None:
            raise error

        with monkeypatch.context() as m:
            m.setattr(f"ck_pro.trajectory.exporting.pipeline.{name}", fail)
            paths = (samples.plain, samples.wrong)
            export("-f", "dpo", "-i", *paths, "-o", tmp_path / "o.jsonl", code=code)
        said = capsys.readouterr().err
        assert str(error) in said and said.count("\n") == 1
    (log,) = tmp_path.iterdir()
    assert "ZeroDivisionError: oh" in log.read_text()


def test_shards_are_numbered_files(samples: Samples, tmp_path: Path) -> None:
    args = ("-f", "sft", "-i", samples.plain, "-o", tmp_path / "o.jsonl", "--force")
    whole = sft(tmp_path / "w.jsonl", "-i", samples.plain)
    for size in (2, 4):
        export(*args, "--shard-rows", size)
        names = sorted(p.name for p in tmp_path.glob("o-*"))
        assert names == [f"o-{n:05d}.jsonl" for n in range(-(-len(whole) // size))]
        assert [r for n in names for r in read_lines(tmp_path / n)] == whole


def test_an_export_without_rows_writes_an_empty_file_and_reports_it(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o.jsonl"
    export("-f", "dpo", "-i", samples.plain, "-o", out, code=1)
    assert out.read_text() == ""
    assert "dpo needs tries of one task" in capsys.readouterr().out


def test_missing_pyarrow_is_reported_in_one_line(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    export("-f", "parquet", "-i", samples.plain, "-o", tmp_path / "o.parquet", code=2)
    assert 'pip install "ck-pro[export]"' in capsys.readouterr().err


def test_the_help_has_exit_codes_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "Exit codes:" in text and "rejection sampling" in text


@pytest.mark.parametrize("format_", ["sft", "dpo", "kto", "sharegpt", "axolotl", "atif", "ckpro"])
def test_rows_with_null_for_missing_values_are_exported(tmp_path: Path, format_: str) -> None:
    nothing = dict.fromkeys(("observation", "thought", "code", "sub_sessions", "model_calls"))
    action = {**call_row(), **nothing, "llm_info": None}
    rows = []
    for n in range(2):
        row = foreign(f"t{n}", action, eval={"corr": n, "gold": None, "pred": None}, file=None)
        row.update(task=None, _orig=None)
        row["session"].update(id=None, task=None, info=None)
        row["session"]["steps"][0].update(plan=None, end=None, step_idx=None)
        row["session"]["steps"].append({"plan": {"llm_input": None}, "action": None})
        rows.append(row)
    rows[1]["session"]["steps"][0]["action"] = {**action, "llm_output": "better"}
    out = tmp_path / f"o.{format_}.jsonl"
    export("-f", format_, "-i", write(tmp_path / "in.jsonl", *rows), "-o", out)
    found = read_lines(out)
    assert len(found) == (1 if format_ == "dpo" else 2)
    if format_ == "ckpro":
        assert [r["eval"]["corr"] for r in found] == [0, 1]
        assert [len(r["session"]["steps"]) for r in found] == [1, 1]


@pytest.mark.parametrize(
    ("choice", "reward"), [(None, 0), ("first", 0), ("max", 1), ("min", 0), ("mean", 0.5)]
)
def test_duplicate_reward_sets_the_reward_of_equal_calls(
    tmp_path: Path, choice: str | None, reward: float
) -> None:
    scores = [0, 1, 1, 0, None]
    rows = [foreign(f"t{n}", call_row(), eval={"corr": score}) for n, score in enumerate(scores)]
    path = write(tmp_path / "in.jsonl", *rows, foreign("t9", call_row("other")))
    args = [] if choice is None else ["--duplicate-reward", choice]
    same, other = sft(tmp_path / "o.jsonl", "-i", path, *args)
    assert (same["metadata"]["reward"], same["metadata"]["scored"]) == (reward, True)
    assert (other["metadata"]["reward"], other["metadata"]["scored"]) == (0, False)
    assert same["metadata"]["task_id"] == "t0"
    kept = sft(tmp_path / "k.jsonl", "-i", path, "--duplicates", "keep", *args)
    assert [row["metadata"]["reward"] for row in kept] == [0, 1, 1, 0, 0, 0]


def test_a_first_call_without_a_score_gets_the_score_of_the_others(tmp_path: Path) -> None:
    rows = [foreign(f"t{n}", call_row(), eval={"corr": c}) for n, c in enumerate([None, 1])]
    path = write(tmp_path / "in.jsonl", *rows)
    (row,) = sft(tmp_path / "o.jsonl", "-i", path, "--duplicate-reward", "max")
    assert (row["metadata"]["reward"], row["metadata"]["scored"]) == (1, True)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_the_conversion_script_accepts_old_and_new_options(
    samples: Samples, tmp_path: Path
) -> None:
    script = ROOT / "data" / "convert_sft.py"
    out = tmp_path / "o.jsonl"
    command = [sys.executable, str(script), "-i", str(samples.plain), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert set(read_lines(out)[0]) == {"messages", "tools", "metadata"}
    former = ["--input_file", str(samples.plain), "--output_file", str(out), "--min_score", "1"]
    command = [sys.executable, str(script), *former, "--force"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# --- large rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["sft", "dpo", "kto", "sharegpt", "axolotl", "atif", "ckpro"])
def test_a_large_row_gives_the_same_export(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    paths = (samples.good, samples.wrong)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        export("-f", format_, "-i", *paths, "-o", tmp_path / name / "o.jsonl")
        monkeypatch.setattr("ck_pro.trajectory.reading.sources._LARGE_LINE", 5000)
        monkeypatch.setattr("ck_pro.trajectory.reading.big_json.LARGE", 300)
    a, b = (tmp_path / name / "o.jsonl" for name in ("a", "b"))
    assert a.read_bytes() == b.read_bytes() != b""


def test_a_broken_large_row_is_reported(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("ck_pro.trajectory.reading.sources._LARGE_LINE", 4000)
    monkeypatch.setattr("ck_pro.trajectory.reading.big_json.LARGE", 1000)
    good, other = samples.good.read_text().splitlines()
    path = tmp_path / "r.jsonl"
    inside = other.replace('"llm_output": "42"', '"llm_output": 4x2')
    assert inside != other
    torn, lists = other[:-100], json.dumps([other])
    path.write_text("\n".join([good, inside, lists, torn]))
    for format_ in ("sft", "atif", "ckpro"):
        out = tmp_path / f"{format_}.jsonl"
        export("-f", format_, "-i", path, "-o", out, code=3)
        said = capsys.readouterr().err
        assert f"{path}, line 2: not JSON: " in said
        assert f"{path}, line 3: not an output row" in said
        assert f"{path}, line 4: not JSON: it ends too early" in said
        assert all(json.loads(line) for line in out.read_text().splitlines())
        if format_ != "sft":
            assert len(out.read_text().splitlines()) == 1
