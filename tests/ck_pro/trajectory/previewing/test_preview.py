"""What a preview shows: the trained part of each format, token counts, long rows."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import Samples, read_lines

from ck_pro.exceptions import InputError
from ck_pro.trajectory.export import FORMATS
from ck_pro.trajectory.export import main as export
from ck_pro.trajectory.labels import Label, LabelFile
from ck_pro.trajectory.preview import main
from ck_pro.trajectory.previewing.preview import distribution, histogram
from ck_pro.trajectory.previewing.segments import segments_of
from ck_pro.trajectory.previewing.token_counter import token_counter

pytestmark = pytest.mark.integration
PER_CALL = [name for name, form in FORMATS.items() if not form.whole_runs]


def preview(capsys: pytest.CaptureFixture[str], *args: Any, code: int = 0) -> Any:
    assert main([*map(str, args), "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("format_", PER_CALL)
def test_a_preview_has_the_rows_of_the_export(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    inputs = ("-f", format_, "-i", samples.good, samples.wrong)
    found = preview(capsys, *inputs, "-n", 1000)
    suffix = "parquet" if format_ in ("verl", "parquet") else "jsonl"
    out = tmp_path / f"o.{suffix}"
    assert export([str(a) for a in (*inputs, "-o", out)]) == 0
    if suffix == "jsonl":
        rows = read_lines(out)
        assert [s["metadata"] for s in found["shown"]] == [r["metadata"] for r in rows]
        assert found["rows"] == len(rows)
    assert found["tokens"]["sum"] == sum(s["tokens"] for s in found["shown"])
    uses = Counter(s["use"] for row in found["shown"] for s in row["segments"])
    assert set(uses) == {
        "dpo": {"context", "chosen", "rejected"},
        "kto": {"context", "chosen", "rejected"},
    }.get(format_, {"context", "trained"})
    shown = json.dumps(found["shown"])
    assert "[image]" in shown or "<image>" in shown or format_ == "dpo"
    for row in found["shown"]:
        assert row["segments"][-1]["use"] != "context"
        assert row["segments"][0]["use"] == "context" and row["segments"][0]["role"] == "system"
    assert list(tmp_path.iterdir()).__len__() <= 3  # no other files than the export's


@pytest.mark.parametrize(
    ("format_", "row", "uses"),
    [
        ("sft", {"messages": [("user", None), ("assistant", None)]}, ["trained", "trained"]),
        ("verl", {"messages": [("user", None), ("assistant", None)]}, ["context", "trained"]),
        (
            "axolotl",
            {"messages": [("assistant", False), ("user", False), ("assistant", True)]},
            ["context", "context", "trained"],
        ),
    ],
)
def test_the_trained_turns_are_those_of_the_trainer(
    format_: str, row: dict[str, Any], uses: list[str]
) -> None:
    messages = [
        {"role": role, "content": "x", **({} if mark is None else {"training": mark})}
        for role, mark in row["messages"]
    ]
    found = segments_of({"messages": messages}, FORMATS[format_])
    assert [s.use for s in found] == uses


def test_labels_appear_in_the_preview(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = LabelFile(tmp_path / "l.jsonl")
    labels.append(Label.of({"label": "exclude", "id": "capital"}))
    where = {"session": session_of(samples.plain, "sum"), "step": 1, "call": 0}
    labels.append(Label.of({"target": {"id": "sum", **where}, "reply": "It is 42."}))
    args = ("-i", samples.plain, "--labels", labels.path)
    found = preview(capsys, "-f", "sft", *args)
    assert {s["metadata"]["task_id"] for s in found["shown"]} == {"sum"}
    assert found["shown"][-1]["segments"][-1] == {
        "role": "assistant", "use": "trained", "text": "It is 42."}  # fmt: skip
    assert found["labelled"] == {"replies corrected": 1}
    assert found["dropped"]["excluded by label"] > 0
    assert main(["-f", "dpo", *map(str, args)]) == 0
    shown = capsys.readouterr().out
    assert "+ It is 42." in shown and "- 42" in shown and "label: corrected" in shown


def session_of(path: Path, task: str) -> str:
    return str(next(r["session"]["id"] for r in read_lines(path) if r["id"] == task))


def test_long_rows_are_counted_not_dropped(
    samples: Samples, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("-f", "sft", "-i", samples.plain)
    every = preview(capsys, *args, "-n", 100)
    lengths = sorted(s["tokens"] for s in every["shown"])
    limit = lengths[-2]
    found = preview(capsys, *args, "--max-tokens", limit, "--longest", "-n", 2)
    assert found["rows"] == every["rows"]
    assert found["over"] == {"limit": limit, "rows": sum(n > limit for n in lengths)}
    assert [s["tokens"] for s in found["shown"]] == lengths[:-3:-1]
    assert [s["tokens"] for s in found["longest"]] == lengths[::-1][:5]
    skipped = preview(capsys, *args, "-n", 2, "--skip", 1)
    assert [s["row"] for s in skipped["shown"]] == [1, 2]
    assert main([*map(str, args), "--max-tokens", str(limit)]) == 0
    assert f"exceeds {limit:,} tokens" in capsys.readouterr().out


def test_the_terminal_shows_texts_without_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompt = [{"role": "user", "content": "a\x1b]0;owned\x07b\n" + "line\n" * 100}]
    steps = [{"action": {"llm_input": prompt, "llm_output": "[bold]reply[/bold]\x9b"}}]
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"id": "t", "session": {"steps": steps}}) + "\n")
    assert main(["-f", "sft", "-i", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\x9b" not in shown and "\x07" not in shown
    assert "[bold]reply[/bold]" in shown
    assert re.search(r"\[\.\.\. 84 lines, 336 characters \.\.\.\]", shown)
    assert main(["-f", "sft", "-i", str(path), "--full"]) == 0
    assert capsys.readouterr().out.count("line\n") == 100


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-f", "atif"], "exports whole runs; preview another format"),
        (["-f", "sft", "--tokenizer", "/nowhere/x"], "cannot load the tokenizer /nowhere/x: "),
        (["-f", "sft", "--tokenizer", "tiktoken:x"], "--tokenizer needs tiktoken: pip install"),
        (["-f", "sft", "--label", "good"], "need --labels FILE"),
    ],
)
def test_what_cannot_be_previewed_is_one_line(
    samples: Samples,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    message: str,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert main([*args, "-i", str(samples.plain)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and message in said and said.count("\n") == 1


# --- tokens --------------------------------------------------------------------------------------

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content }} </s> {% endfor %}"
    "{% if messages[0].role != 'system' %}{{ raise_exception('no system message') }}{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer of words and a chat template."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    folder = tmp_path_factory.mktemp("tokenizer")
    made = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    made.chat_template = TEMPLATE
    made.save_pretrained(folder)
    return folder


def test_a_tokenizer_counts_with_its_chat_template(
    samples: Samples, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("-f", "sft", "-i", samples.plain, "-n", 100)
    found = preview(capsys, *args, "--tokenizer", tokenizer)
    plain = preview(capsys, *args, "--tokenizer", tokenizer / "tokenizer.json")
    assert found["tokenizer"] == str(tokenizer) and found["refused"]["rows"] == 0
    for one, other in zip(found["shown"], plain["shown"], strict=True):
        words = [len(s["text"].split()) for s in one["segments"]]
        assert other["tokens"] == sum(words)
        assert one["tokens"] == sum(words) + 2 * len(words)
        assert one["trained"] == other["trained"] == words[-1]


def test_rows_that_the_chat_template_refuses_are_counted(
    tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.jsonl"
    steps = [{"action": {"llm_input": [{"role": "user", "content": "a b"}], "llm_output": "c"}}]
    path.write_text(json.dumps({"id": "t", "session": {"steps": steps}}) + "\n")
    found = preview(capsys, "-f", "sft", "-i", path, "--tokenizer", tokenizer)
    assert found["refused"] == {
        "rows": 1,
        "reason": "the chat template refuses the row: no system message",
    }
    assert found["tokens"]["max"] == 3


def test_tiktoken_counts_by_encoding_or_model(monkeypatch: pytest.MonkeyPatch) -> None:
    encoding = SimpleNamespace(encode=lambda text, disallowed_special: text.split())

    def of_model(name: str) -> Any:
        if name != "gpt-4o":
            raise KeyError("Could not map the model")
        return encoding

    fake = SimpleNamespace(
        list_encoding_names=lambda: ["o200k_base"],
        get_encoding=lambda name: encoding,
        encoding_for_model=of_model,
    )
    monkeypatch.setitem(sys.modules, "tiktoken", fake)
    for name in ("tiktoken:o200k_base", "tiktoken:gpt-4o"):
        assert token_counter(name).count("a b <|endoftext|>") == 3
    with pytest.raises(InputError, match=r"cannot load tiktoken:x: .*\(encodings: o200k_base\)"):
        token_counter("tiktoken:x")


@given(values=st.lists(st.integers(0, 10**9)))
def test_distributions_agree_with_their_values(values: list[int]) -> None:
    found = distribution(values)
    buckets = histogram(values)
    assert sum(count for _, _, count in buckets) == len(values)
    for low, high, count in buckets:
        assert count == sum(low <= v < high for v in values)
    if values:
        assert (found["min"], found["max"], found["sum"]) == (
            min(values), max(values), sum(values))  # fmt: skip
        assert found["min"] <= found["median"] <= found["p90"] <= found["p99"] <= found["max"]
    else:
        assert found == {} and buckets == []
