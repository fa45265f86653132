"""Exports of runs with computer-use items, screenshots, tool calls and chosen tries.

Each format is loaded by the library that it is for.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from computer_runs import FORMS, write_runs
from loaders import LIGHT_AND_LONG, ending, export, loaded
from sample_runs import png, read_lines

pytestmark = pytest.mark.integration
SCREENS = {png(101), png(102), png(103)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Files of rows, a right and a wrong run, by the form of the computer tool."""
    folder = tmp_path_factory.mktemp("computer")
    return {form: write_runs(folder, form) for form in FORMS}


@pytest.mark.slow
@pytest.mark.parametrize("format_", LIGHT_AND_LONG)
def test_every_format_is_loaded_by_its_own_library(
    runs: dict[str, list[Path]], tmp_path: Path, format_: str
) -> None:
    inputs = [path for form in FORMS for path in runs[form]]
    path = export(format_, tmp_path / f"o.{ending(format_)}", "-i", *inputs)
    rows = loaded(format_, path)
    _CHECKS.get(format_, _has_screens)(rows)


def _has_screens(rows: list[Any]) -> None:
    """Each form of the computer gives prompts with all screenshots, and the function as a tool."""
    most = [r for r in rows if len(r["images"]) == 3]
    assert most and {len(r["images"]) for r in rows} <= {0, 1, 3}
    for row in most:
        [tool] = json.loads(row["tools"])
        assert tool["function"]["name"] == "computer"
        assert tool["function"]["parameters"]["properties"]["keys"]
        parts = [p for m in row["prompt"] for p in m["content"] if p["type"] == "image"]
        assert len(parts) == 3


def _is_a_pair(rows: list[Any]) -> None:
    [row] = rows
    assert row["chosen"][0]["content"] == "42"
    assert row["rejected"][0]["content"] == "no idea"


def _of_llama_factory(rows: list[Any]) -> None:
    assert all(r["_prompt"] and len(r["_response"]) == 1 for r in rows)
    tags = [sum(m["content"].count("<image>") for m in r["_prompt"]) for r in rows]
    assert tags == [len(r["_images"] or ()) for r in rows] and max(tags) == 3


def _of_axolotl(rows: list[Any]) -> None:
    assert max(r["thread"].count("tool") for r in rows) == 3  # it reads only texts
    acts = [r["trained"] for r in rows if '[computer {"action": "type"' in r["trained"]]
    assert acts and all('[computer {"action": "screenshot"}]' in a for a in acts)


def _of_verl(rows: list[Any]) -> None:
    shown = [[p for m in r["built"] for p in m["content"] if p["type"] == "image"] for r in rows]
    assert max(len(s) for s in shown) == 3


def _of_atif(rows: list[Any]) -> None:
    assert [t.extra["reward"] for t in rows] == [1, 0] * len(FORMS)
    for trajectory in rows:
        refs = trajectory.steps[2].observation.results[0].subagent_trajectory_ref
        assert [r.trajectory_id for r in refs] == [
            t.trajectory_id for t in trajectory.subagent_trajectories
        ]
        assert len(refs) == 3


def _of_rows(rows: list[Any]) -> None:
    for row in rows:
        seen = row["session"]["steps"][0]["action"]["observation"]
        assert (seen["sel_aggr"], seen["sel_idx"], len(seen["sel_cands"])) == ("vote", 0, 3)


_CHECKS = {
    "dpo": _is_a_pair,
    "kto": lambda rows: _has_labels(rows),
    "sharegpt": _of_llama_factory,
    "axolotl": _of_axolotl,
    "verl": _of_verl,
    "atif": _of_atif,
    "ckpro": _of_rows,
}


def _has_labels(rows: list[Any]) -> None:
    assert {(r["completion"][0]["content"][0]["text"], r["label"]) for r in rows} == {
        ("42", True),
        ("no idea", False),
    }


@pytest.mark.parametrize("form", FORMS[1:])
def test_screens_of_items_are_images(
    runs: dict[str, list[Path]], tmp_path: Path, form: str
) -> None:
    export("sft", tmp_path / "o.jsonl", "-i", runs[form][0])
    assert {p.read_bytes() for p in (tmp_path / "o_images").iterdir()} == SCREENS


def test_tries_that_were_not_chosen_are_dropped(
    runs: dict[str, list[Path]], tmp_path: Path
) -> None:
    """The score of a run says nothing about an answer that the caller did not choose."""

    def scored_answers(source: Path, *options: str) -> Counter[tuple[str, bool]]:
        path = export("sft", tmp_path / "o.jsonl", "--force", "-i", source, *options)
        rows = read_lines(path)
        said = [r["completion"][0]["content"][0]["text"] for r in rows]
        facts = [(s, r["metadata"]["scored"]) for s, r in zip(said, rows, strict=True)]
        agents = [r["metadata"]["agent"] for r in rows]
        return Counter(f for f, a in zip(facts, agents, strict=True) if a != "ck_agent" and f[0])

    for source in (runs["computer"][0], runs["computer"][0].with_suffix("")):  # rows and journals
        assert scored_answers(source) == {("42", True): 1}
        kept = scored_answers(source, "--not-chosen", "keep")
        assert kept == {("42", True): 1, ("43", False): 1, ("42", False): 1}
