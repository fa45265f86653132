"""The viewer's server over real HTTP: table, runs, search, comparison, hostile data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from viewer_client import ViewerClient
from viewer_runs import PNG, RunWriter, output_with, small_run

pytestmark = pytest.mark.integration


def test_an_output_and_its_folder_are_one_source(tmp_path: Path, viewers: Any) -> None:
    rows = output_with(tmp_path, "one", "two")
    client = viewers(rows, tmp_path / "a", rows)
    [source] = client.get("info")["sources"]
    assert (source["kind"], source["runs"]) == ("rows", 2)
    table = client.read()
    assert [row["id"] for row in table] == ["one", "two"]
    assert table[0]["score"] == 1 and table[0]["status"] == "done"
    assert (table[0]["steps"], table[0]["calls"], table[0]["tokens"]) == (3, 2, 220)
    assert (table[0]["cached_tokens"], table[0]["money"], table[0]["level"]) == (100, 1.0, 2)
    assert (table[0]["tags"], table[0]["agent"]) == (["numbers"], "ck_agent")


@pytest.mark.parametrize("journals", [True, False])
def test_a_run_opens_down_to_its_prompts(tmp_path: Path, viewers: Any, journals: bool) -> None:
    client = viewers(output_with(tmp_path, "one", journals=journals))
    [row] = client.read()
    run = client.get(f"run/{row['key']}")
    assert (run["journal"] is not None) is journals
    assert [session["agent"] for session in run["sessions"]] == ["ck_agent", "web_agent"]
    assert run["tries"] == [{"key": row["key"], "try": "1", "score": 1}]
    for session in run["sessions"]:
        for step in session["steps"]:
            path = f"{session['sid']}/{step['i']}"
            assert client.get(f"run/{row['key']}/step/{path}")["i"] == step["i"]
            for n in range(step["model_calls"]):
                call = client.get(f"run/{row['key']}/call/{path}/{n}")
                assert call["messages"][0] == {"role": "system", "content": "Rules."}


def test_keys_stay_the_same_with_and_without_the_row(tmp_path: Path, viewers: Any) -> None:
    rows = output_with(tmp_path, "one")
    [with_row] = viewers(rows).read()
    text = rows.read_text()
    rows.unlink()
    [without] = viewers(tmp_path / "a").read()
    rows.write_text(text)
    assert without["key"] == with_row["key"]


def test_the_search_finds_every_kind_of_text(tmp_path: Path, viewers: Any) -> None:
    client = viewers(output_with(tmp_path, "one"))
    client.read()
    for text, where in (
        ("zebra", "thought"),
        ("web_agent", "code"),
        ("Shop", "page"),
        ("look", "task"),
        ("rules", "prompt"),
        ("found", "output"),
        ("got seen", "observation"),
    ):
        hits = client.search(text)
        assert where in {hit["where"] for hit in hits}, text
    [hit] = client.search('"zebra crossing"')
    assert [part for part, match in hit["snippet"] if match] == ["zebra crossing"]
    assert (hit["sid"], hit["step"]) == ("main-one", 1)
    assert client.search("zeb") == [hit | {"snippet": hit_of(client, "zeb")}]
    assert client.search("zebra -crossing") == []
    assert client.search("zebra", key=hit["key"]) and not client.search("zebra", key="0" * 12)


def hit_of(client: ViewerClient, text: str) -> Any:
    return client.search(text)[0]["snippet"]


@pytest.mark.parametrize("text", ["", '"', "*", "NEAR(", "a AND", "-x", "(", "\0", "'; DROP", "☃"])
def test_no_search_text_is_an_error(tmp_path: Path, viewers: Any, text: str) -> None:
    client = viewers(output_with(tmp_path, "one"))
    client.read()
    assert client.search(text) is not None


def test_images_are_served_inert_and_nothing_else_is(tmp_path: Path, viewers: Any) -> None:
    client = viewers(output_with(tmp_path, "one"))
    [row] = client.read()
    call = client.get(f"run/{row['key']}/call/web-one/0/0")
    name = call["messages"][1]["content"][1]["image"]
    blob = f"/api/run/{row['key']}/blob"
    status, headers, body = client.ask(f"{blob}/{name}")
    assert (status, headers["content-type"], body) == (200, "image/png", PNG)
    assert "sandbox" in headers["content-security-policy"]
    blobs = tmp_path / "a" / "one" / "blobs"
    (blobs / f"{'a' * 64}.svg").write_text("<svg/>")
    for bad in ("..%2fevents.jsonl", "events.jsonl", f"{'a' * 64}.svg", f"{'b' * 64}.png", "%00"):
        assert client.ask(f"{blob}/{bad}")[0] == 404
    (blobs / name).write_bytes(b"<script>")
    assert client.ask(f"{blob}/{name}")[0] == 404


def test_what_is_missing_is_one_line(tmp_path: Path, viewers: Any) -> None:
    client = viewers(output_with(tmp_path, "one"))
    [row] = client.read()
    key = row["key"]
    for path in ("run/none", f"run/{key}/step/x/0", f"run/{key}/step/main-one/99"):
        assert "there is no" in client.get(path, 404)["error"]
    assert "there is no" in client.get(f"run/{key}/call/main-one/0/9", 404)["error"]
    assert "error" in client.get(f"run/{key}/step/main-one/-1", 404)


def test_hostile_rows_are_shown_or_reported_and_never_break_the_table(
    tmp_path: Path, viewers: Any
) -> None:
    row = small_run(tmp_path / "run")
    session = row["session"]
    evil = "../../etc/<script>alert(1)</script>\ud800\u202e"
    lines = [
        json.dumps({**row, "id": evil, "task": evil}),
        json.dumps({**row, "id": "nan", "eval": {"corr": float("nan")}}),
        json.dumps({**row, "id": 7, "answer": ["a", {"b": 1}], "_orig": [1], "eval": "x"}),
        json.dumps({"session": {"steps": []}, "id": None}),
        json.dumps(
            {"id": "other", "session": {"steps": [None, 3, {"action": {"observation": 1}}]}}
        ),
        json.dumps(
            {"eval": row["eval"], "session": {"steps": session["steps"], "id": ""}, "id": "turned"}
        ),
        "{broken",
        "[1, 2]",
        '{"id": "none"}',
        "[" * 100_000,
    ]
    path = tmp_path / "b.jsonl"
    path.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n" + b'{"id": "torn", "sess')
    client = viewers(path)
    table = client.read()
    assert len(table) == 6
    assert [r["id"] for r in table][2:] == [7, "line 4", "other", "turned"]
    problems = client.get("info")["problems"]
    assert len(problems) == 6
    assert any("line 12: incomplete (a torn last line?)" in problem for problem in problems)
    for shown in table:
        run = client.get(f"run/{shown['key']}")
        for found in run["sessions"]:
            for step in found["steps"]:
                client.get(f"run/{shown['key']}/step/{found['sid']}/{step['i']}")


def test_a_session_id_with_slashes_can_be_opened(tmp_path: Path, viewers: Any) -> None:
    row = small_run(tmp_path / "run")
    row["session"]["id"] = "a/../b?c#d"
    (tmp_path / "b.jsonl").write_text(json.dumps(row) + "\n")
    client = viewers(tmp_path / "b.jsonl")
    [shown] = client.read()
    run = client.get(f"run/{shown['key']}")
    sid = run["sessions"][0]["sid"]
    assert sid == "a/../b?c#d"
    assert client.get(f"run/{shown['key']}/step/a%2F..%2Fb%3Fc%23d/0")["sid"] == sid


def test_tries_and_old_attempts_are_found_from_the_run(tmp_path: Path, viewers: Any) -> None:
    rows = output_with(tmp_path, "one")
    old = RunWriter(tmp_path / "a" / "one" / "attempt-1", "one")
    old.step(0)
    old.journal.close()
    client = viewers(rows)
    [row] = client.read()
    tries = client.get(f"run/{row['key']}")["tries"]
    assert [t["try"] for t in tries] == ["1", "attempt-1"]
    assert len(client.get(f"run/{tries[1]['key']}")["sessions"][0]["steps"]) == 1
    assert len(client.rows()) == 1
    later = viewers(rows)
    later.read()
    assert later.get(f"run/{tries[1]['key']}")["try"] == "attempt-1"


def test_the_earlier_tries_of_a_row_can_be_opened(tmp_path: Path, viewers: Any) -> None:
    first, last = small_run(tmp_path / "x", "one", "wrong"), small_run(tmp_path / "y", "one")
    last["session"]["info"]["try"] = {"number": 2}
    failed = {"session": first["session"], "eval": first["eval"]}
    row = {**last, "previous_failed_sessions": [failed]}
    (tmp_path / "b.jsonl").write_text(json.dumps(row) + "\n")
    client = viewers(tmp_path / "b.jsonl")
    [shown] = client.read()
    tries = client.get(f"run/{shown['key']}")["tries"]
    assert [(t["try"], t["score"]) for t in tries] == [("1", 0), ("2", 1)]
    assert client.get(f"run/{tries[0]['key']}")["output"] == "wrong"
    assert client.get(f"run/{shown['key']}")["output"] == "42"
    again = viewers(tmp_path / "b.jsonl")
    again.read()
    assert again.get(f"run/{tries[0]['key']}")["output"] == "wrong"
