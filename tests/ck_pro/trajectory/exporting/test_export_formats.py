"""Load each format with the library that it is for, as far as possible without a GPU stack.

`datasets`, `transformers` (without PyTorch), `atif`, `pyarrow` and `pandas` come with the extra
`test`. TRL and LLaMA-Factory cannot be among its packages, because they require PyTorch: they are
installed with `pip install --no-deps trl llamafactory`, and skipped where they are not.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loaders import export, probed
from loaders import loaded as loaded_by_its_own
from sample_runs import Samples, png, read_lines

pytestmark = pytest.mark.slow
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for p in m.content %}{% if p.type == 'image' %}[image]{% else %}{{ p.text }}"
    "{% endif %}{% endfor %}{% endif %}{% for c in m.tool_calls or [] %}"
    "[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}</{{ m.role }}>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module", autouse=True)
def _offline() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_OFFLINE", "1")
        patch.setenv("TRANSFORMERS_VERBOSITY", "error")
        yield


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A tokenizer with one word and a chat template that shows all parts."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    made.chat_template = TEMPLATE
    return made


def loaded(path: Path, cache: Path) -> Any:
    """Load a file as trainers do."""
    import datasets

    datasets.disable_progress_bars()
    kind = "parquet" if path.suffix == ".parquet" else "json"
    return datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=str(cache))


def trl() -> Any:
    return pytest.importorskip("trl.data_utils", reason="pip install --no-deps trl")


# --- TRL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("format_", ["sft", "dpo", "kto"])
def test_trl_applies_its_chat_template(
    samples: Samples, tmp_path: Path, tokenizer: Any, format_: str, ending: str
) -> None:
    tools = trl()
    paths = (samples.plain, samples.wrong)
    path = export(format_, tmp_path / f"o.{ending}", "-i", *paths, "--images", "drop")
    rows = loaded(path, tmp_path / "cache")
    replies = {"sft": ["completion"], "dpo": ["chosen", "rejected"], "kto": ["completion"]}
    shown = []
    for row in rows:
        assert tools.is_conversational(row)
        made = tools.maybe_apply_chat_template(row, tokenizer, tools=json.loads(row["tools"]))
        assert made["prompt"].startswith("<system>") and made["prompt"].endswith("<assistant>")
        shown += [made[k] for k in replies[format_]]
        if format_ == "kto":
            assert isinstance(row["label"], bool)
    assert '[add {"a": 20, "b": 22}]</assistant>' in shown
    assert all(s.endswith("</assistant>") for s in shown)


def test_trl_separates_messages_and_pairs(samples: Samples, tmp_path: Path, tokenizer: Any) -> None:
    tools = trl()
    path = export("sft", tmp_path / "m.jsonl", "-i", samples.plain, "--columns", "messages")
    for row in loaded(path, tmp_path / "cache"):
        assert "</assistant>" in tools.maybe_apply_chat_template(row, tokenizer)["text"]
    path = export("dpo", tmp_path / "d.jsonl", "-i", samples.plain, samples.wrong)
    pairs = loaded(path, tmp_path / "cache")
    apart = tools.maybe_unpair_preference_dataset(pairs.remove_columns(["metadata", "tools"]))
    assert sorted(apart["label"]) == [False] * len(pairs) + [True] * len(pairs)
    row = {"chosen": pairs[0]["prompt"] + pairs[0]["chosen"],
           "rejected": pairs[0]["prompt"] + pairs[0]["rejected"]}  # fmt: skip
    assert tools.maybe_extract_prompt(row)["chosen"] == pairs[0]["chosen"]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_pairs_of_text_have_no_image_column(
    samples: Samples, tmp_path: Path, tokenizer: Any, ending: str
) -> None:
    """Only the web agent's calls have screenshots, and their equal replies make no pairs."""
    tools = trl()
    path = export("dpo", tmp_path / f"o.{ending}", "-i", samples.good, samples.wrong)
    rows = loaded(path, tmp_path / "cache")
    assert len(rows) and "images" not in rows.column_names
    for row in rows:
        assert all(isinstance(m["content"], str) for m in row["prompt"])
        made = tools.maybe_apply_chat_template(row, tokenizer, tools=json.loads(row["tools"]))
        assert made["prompt"].startswith("<system>")
    assert not (tmp_path / "o_images").exists()


@pytest.mark.parametrize("format_", ["dpo", "kto"])
def test_preferences_with_images_have_the_column_in_every_row(
    samples: Samples, tmp_path: Path, format_: str
) -> None:
    rows = read_lines(samples.wrong)
    for row in rows:
        for step in row["session"]["steps"]:
            for sub in step["action"].get("sub_sessions", ()):
                sub["steps"][-1]["action"]["llm_output"] = "It is Rome."
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = export(format_, tmp_path / "o.jsonl", "-i", samples.good, wrong)
    found = read_lines(path)
    assert all("images" in row for row in found) and found[0]["images"]
    assert any(not row["images"] for row in found)


@pytest.mark.parametrize("output", ["sft.jsonl", "sft.parquet", "parquet.parquet"])
def test_trl_puts_images_into_the_prompt(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    import datasets

    tools = trl()
    path = export(output.partition(".")[0], tmp_path / output, "-i", samples.good)
    rows = loaded(path, tmp_path / "cache")
    if path.suffix == ".jsonl":
        monkeypatch.chdir(tmp_path)  # paths are relative to the file
        rows = rows.cast_column("images", datasets.List(datasets.Image()))
    colours = []
    for row in rows:
        messages = tools.prepare_multimodal_messages(row["prompt"], images=row["images"])
        parts = [p for m in messages for p in m["content"] if p["type"] == "image"]
        colours += [p["image"].convert("RGB").getpixel((0, 0))[0] for p in parts]
    assert sorted(colours) == [1, 2]


def test_columns_of_the_first_rows_fit_the_last(tmp_path: Path, samples: Samples) -> None:
    """Loaders infer types from the first 10 MB, which may lack special calls."""
    long = {"role": "user", "content": "x" * 600_000}
    action = {"llm_input": [long], "llm_output": "y"}
    plain = [
        {"id": n, "task": str(n), "session": {"steps": [{"action": action}] * 2}} for n in range(20)
    ]
    path = tmp_path / "r.jsonl"
    special = samples.good.read_text()
    path.write_text("".join(json.dumps(r) + "\n" for r in plain) + special)
    for format_ in ("sft", "axolotl", "sharegpt"):
        out = export(format_, tmp_path / f"{format_}.jsonl", "-i", path, "--duplicates", "keep")
        rows = loaded(out, tmp_path / "cache")
        assert len(rows) == 40 + 6
        assert rows.filter(lambda r: r["metadata"]["scored"]).num_rows == 6
        calls = [r for r in rows if "Paris" in str(r)]
        assert calls and "find the capital" in str(calls)


# --- Parquet, verl ---------------------------------------------------------------------------


def test_parquet_has_typed_columns(samples: Samples, tmp_path: Path) -> None:
    path = export("parquet", tmp_path / "o.parquet", "-i", samples.good, samples.wrong)
    rows = loaded(path, tmp_path / "cache")
    assert rows.features["metadata"]["reward"].dtype == "float64"
    calls = [c for r in rows for c in r["completion"][0].get("tool_calls") or []]
    assert {"a": 20, "b": 22} in [c["function"]["arguments"] for c in calls]
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(path).num_rows == len(rows)
    export("parquet", path, "-i", samples.plain, "--force", "--shard-rows", 4)
    shards = sorted(tmp_path.glob("o-*.parquet"))
    assert [pyarrow.parquet.read_metadata(p).num_rows for p in shards] == [4, 2]


@pytest.mark.slow
@pytest.mark.parametrize("images", [True, False])
def test_verl_builds_every_row(samples: Samples, tmp_path: Path, images: bool) -> None:
    source = samples.good if images else samples.plain
    rows = probed("verl", "", export("verl", tmp_path / "v.parquet", "-i", source))
    assert len(rows) == 6
    parts = [p for r in rows for m in r["built"] if images for p in m["content"]]
    assert [p["image"] for p in parts if p["type"] == "image"] == [[1, 1]] * 2 * images
    assert all(r["messages"][-1]["role"] == "assistant" for r in rows)


@pytest.mark.slow
@pytest.mark.parametrize("images", [True, False])
def test_axolotl_trains_only_on_the_reply(samples: Samples, tmp_path: Path, images: bool) -> None:
    source = samples.good if images else samples.plain
    path = export("axolotl", tmp_path / "x.jsonl", "-i", source)
    rows = probed("axolotl", "colorama addict", path)
    expected = []
    for row in read_lines(path):
        reply = row["messages"][-1]
        calls = [c["function"] for c in reply.get("tool_calls", ())]
        said = reply["content"] if isinstance(reply["content"], str) else ""
        said = said or "".join(p["text"] for p in reply["content"] if isinstance(p, dict))
        expected.append(said + "".join(f"[{c['name']} {c['arguments']}]" for c in calls) + "</s>")
    assert [r["trained"] for r in rows] == expected
    assert '[add {"a": 20, "b": 22}]</s>' in expected and "Paris</s>" in expected
    assert all(r["text"].startswith("<system>") for r in rows)


def test_verl_finds_an_image_for_each_tag(samples: Samples, tmp_path: Path) -> None:
    """Read like verl's SFT data set: pandas on Arrow, then compare numbers of tags and images."""
    import pandas

    path = export("verl", tmp_path / "v.parquet", "-i", samples.good)
    frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    assert list(frame.columns) == ["messages", "metadata", "images"]
    seen = []
    for row in frame.to_dict("records"):
        messages, images = list(row["messages"]), list(row["images"])
        assert all(isinstance(m["content"], str) for m in messages)
        assert sum(m["content"].count("<image>") for m in messages) == len(images)
        assert messages[-1]["role"] == "assistant"
        seen += [i["bytes"] for i in images]
    assert sorted(seen) == sorted([png(1), png(2)])
    texts = [m["content"] for row in frame["messages"] for m in row]
    assert any('<tool_call>\n{"name": "add"' in t for t in texts)
    assert any("says &lt;image&gt; and" in t for t in texts)
    plain = export("verl", tmp_path / "p.parquet", "-i", samples.plain)
    assert "images" not in pandas.read_parquet(plain).columns


# --- axolotl -----------------------------------------------------------------------------------


@pytest.mark.parametrize("images", ["folder", "embed"])
def test_axolotl_rows_have_image_parts_and_text_arguments(
    samples: Samples, tmp_path: Path, tokenizer: Any, images: str
) -> None:
    """Read like axolotl's chat_template strategy: JSON text for tools and arguments."""
    import base64

    path = export("axolotl", tmp_path / "x.jsonl", "-i", samples.good, "--images", images)
    shown, found = [], []
    for row in loaded(path, tmp_path / "cache"):
        messages = row["messages"]
        assert [m["training"] for m in messages] == [False] * (len(messages) - 1) + [True]
        for message in messages:
            for made in message.get("tool_calls") or ():
                made["function"]["arguments"] = json.loads(made["function"]["arguments"])
            for part in message["content"]:
                if part["type"] == "image":
                    kept = {k: v for k, v in part.items() if v is not None}
                    assert set(kept) == {"type", "path" if images == "folder" else "base64"}
                    found.append(
                        (tmp_path / part["path"]).read_bytes()
                        if images == "folder"
                        else base64.b64decode(part["base64"])
                    )
        tools = json.loads(row["tools"])
        shown.append(tokenizer.apply_chat_template(messages, tools=tools, tokenize=False))
    assert sorted(found) == sorted([png(1), png(2)])
    assert any('[add {"a": 20, "b": 22}]</assistant>' in s for s in shown)


# --- LLaMA-Factory -----------------------------------------------------------------------------


def test_llama_factory_converts_every_row(samples: Samples, tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text('{"other": {"file_name": "x"}}')
    path = export("sharegpt", tmp_path / "lf.jsonl", "-i", samples.good, samples.wrong)
    assert set(json.loads((tmp_path / "dataset_info.json").read_text())) == {"other", "lf"}
    rows = loaded_by_its_own("sharegpt", path)
    assert len(rows) == len(read_lines(path)) == 9
    for row in rows:
        messages = row["_prompt"] + row["_response"]
        assert row["_prompt"] and len(row["_response"]) == 1  # skipped rows are empty
        tags = sum(m["content"].count("<image>") for m in messages)
        assert tags == len(row["_images"] or [])
        assert row["_system"] and json.loads(row["_tools"])[0]["name"]
        if row["_response"][0]["role"] == "function":
            assert json.loads(row["_response"][0]["content"])
    assert {p for r in rows for p in r["_images"] or []} == {
        str(p) for p in (tmp_path / "lf_images").iterdir()
    }


# --- ATIF --------------------------------------------------------------------------------------


def test_atif_is_valid_for_its_own_models(samples: Samples, tmp_path: Path) -> None:
    from atif import Trajectory
    from PIL import Image

    folder = export("atif", tmp_path / "atif", "-i", samples.good, samples.wrong)
    files = sorted(folder.iterdir())
    assert [f.name for f in files] == [
        f"{n:05d}-{t}.json" for n, t in enumerate(["capital", "sum"] * 2)
    ]
    made = [Trajectory.model_validate_json(f.read_text()) for f in files]
    assert [t.extra["reward"] for t in made] == [1, 1, 0, 0]
    capital = made[0]
    assert [s.source for s in capital.steps] == ["system", "user", "agent", "agent"]
    asked = capital.steps[2]
    assert [c.function_name for c in asked.tool_calls] == ["web_agent", "web_agent"]
    refs = [r.subagent_trajectory_ref[0].trajectory_id for r in asked.observation.results]
    assert refs == [t.trajectory_id for t in capital.subagent_trajectories]
    assert [t.extra["status"] for t in capital.subagent_trajectories] == ["done", "problem"]
    web = capital.subagent_trajectories[0]
    assert [s.source for s in web.steps] == ["system", "user", "user", "agent", "user", "agent"]
    assert web.steps[-1].message == "It is Paris." and web.has_multimodal_content()
    assert web.steps[3].reasoning_content == "I should look."
    assert capital.final_metrics.total_prompt_tokens > 0
    for step in (web.steps[2], web.steps[4]):
        path = folder / step.message[0].source.path
        assert Image.open(io.BytesIO(path.read_bytes())).size == (1, 1)
    lines = export("atif", tmp_path / "a.jsonl", "-i", samples.plain)
    for line in lines.read_text().splitlines():
        Trajectory.model_validate_json(line)


# --- CK-Pro ------------------------------------------------------------------------------------


def test_exporting_ckpro_rows_again_gives_the_same(samples: Samples, tmp_path: Path) -> None:
    """Cleaned rows are valid input; exporting them again changes nothing."""
    path = export("ckpro", tmp_path / "c.jsonl", "-i", samples.good)
    for row, given in zip(read_lines(path), read_lines(samples.good), strict=True):
        assert row["eval"] == given["eval"]
        phases, before = _phases(row["session"]), _phases(given["session"])
        assert [p["llm_input"] for p in phases] == [p["llm_input"] for p in before]
        for phase, original in zip(phases, before, strict=True):
            if not original["llm_info"].get("tool_calls"):
                assert phase["llm_output"] == original["llm_output"]
    again = export("ckpro", tmp_path / "d.jsonl", "-i", path)
    assert again.read_bytes() == path.read_bytes()


def _phases(session: dict[str, Any]) -> list[dict[str, Any]]:
    """All phases of all steps, as a conversion script iterates over them."""
    return [step[p] for step in session["steps"] for p in ("plan", "action", "end") if p in step]


@pytest.mark.parametrize("older", [False, True])
def test_a_script_that_converts_every_phase_makes_no_empty_sample(
    samples: Samples, tmp_path: Path, older: bool
) -> None:
    rows = read_lines(samples.good)
    if older:  # rows of older versions have phases without a call
        none: dict[str, Any] = {"thought": "", "code": "", "llm_input": [], "llm_output": ""}
        for row in rows:
            row["session"]["steps"][0]["plan"] = {**none, "state": {}}
            results = row["session"]["info"].pop("final_results")
            row["session"]["steps"][-1]["end"] = {**none, "final_results": results}
    given = tmp_path / "given.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    exported = read_lines(export("ckpro", tmp_path / "c.jsonl", "-i", given))
    assert len(exported) == len(rows)
    for row in exported if older else [*rows, *exported]:
        converted = _phases(row["session"])
        assert converted and all(phase["llm_input"] for phase in converted)
        assert row["session"]["info"]["final_results"]["output"]
    for row in exported:
        assert all(phase["llm_output"].strip() for phase in _phases(row["session"]))


def test_the_score_of_a_task_without_a_known_answer_is_a_number(
    samples: Samples, tmp_path: Path
) -> None:
    rows = read_lines(samples.good)
    rows[0]["eval"].update(gold=None, corr=None)
    del rows[1]["eval"]
    given = tmp_path / "given.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = export("ckpro", tmp_path / "c.jsonl", "-i", given)
    for row, out in zip(rows, read_lines(path), strict=True):
        answer = row["session"]["info"]["final_results"]["output"]
        assert out["eval"] == {"pred": answer, "gold": "UNK", "corr": 0}
    again = read_lines(export("sft", tmp_path / "s.jsonl", "-i", path))
    assert not any(row["metadata"]["scored"] for row in again)
