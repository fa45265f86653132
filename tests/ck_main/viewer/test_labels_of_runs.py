"""Labels over HTTP: what the routes write, read and refuse, for rows and journals alike."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import make_agent, run_tasks

from ck_main.viewer.app import create_app
from ck_main.viewer.run_labels import numbers_in_row
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.session import sessions_from_events
from ck_pro.trajectory.export import main as export
from ck_pro.trajectory.labels import LabelFile
from ck_pro.trajectory.reading.model_calls import step_calls

pytestmark = pytest.mark.integration


class Browser:
    """A browser as far as the server sees it."""

    def __init__(self, url: str):
        self.base, self.jar = url.partition("/?")[0], CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        self.opener.open(url).close()

    def get(self, path: str) -> Any:
        with self.opener.open(self.base + path, timeout=60) as answer:
            return json.load(answer)

    def refused(self, path: str) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.get(path)
        with caught.value as answer:
            return answer.code, json.load(answer)["error"]

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", "X-CK": "1"}
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), headers)
        try:
            with self.opener.open(request, timeout=60) as answer:
                return 200, json.load(answer)
        except urllib.error.HTTPError as e:
            with e:
                return e.code, json.load(e)["error"]

    def rows(self) -> list[dict[str, Any]]:
        found = self.get("/api/runs")
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    return run_tasks(make_agent(images=False), folder / "a.jsonl", ["capital", "sum"])


@pytest.fixture(params=["rows", "journals"])
def source(request: pytest.FixtureRequest, runs: Path, tmp_path: Path) -> Path:
    """The same runs: rows without journals, or journals without rows."""
    if request.param == "rows":
        path = tmp_path / "b.jsonl"
        path.write_bytes(runs.read_bytes())
        return path
    path = tmp_path / "b"
    path.symlink_to(runs.with_suffix(""))
    return path


@pytest.fixture
def browser(source: Path) -> Iterator[Browser]:
    app = create_app(Library(sources_of([source])))
    app.start()
    yield Browser(app.url)
    app.stop()


def key_of(browser: Browser, task: str) -> str:
    def found() -> list[str]:
        return [r["key"] for r in browser.rows() if r["id"] == task]

    while not (keys := found()):
        browser.get("/api/changes?since=0")
    return keys[0]


def test_labels_are_in_the_file_and_in_the_answers(
    browser: Browser, source: Path, tmp_path: Path
) -> None:
    key = key_of(browser, "sum")
    path = f"/api/labels/{key}"
    empty = browser.get(path)
    assert (empty["run"], empty["sessions"], empty["steps"], empty["calls"]) == (None, {}, {}, {})
    sid = browser.get(f"/api/run/{key}")["sessions"][0]["sid"]
    assert browser.post(path, {"target": {}, "label": "good"})[0] == 200
    step = {"sid": sid, "step": 0}
    assert browser.post(path, {"target": step, "label": "bad", "comment": "slow"})[0] == 200
    call = {"sid": sid, "step": 1, "call": 0}
    assert browser.post(path, {"target": call, "label": None, "reply": "42!"})[0] == 200
    status, found = browser.post(path, {"target": call, "label": "good"})
    assert status == 200 and found == browser.get(path)
    assert found["run"]["label"] == "good" and found["steps"][f"{sid}/0"]["comment"] == "slow"
    one = found["calls"][f"{sid}/1/0"]
    assert (one["label"], one["reply"], one["outdated"]) == ("good", "42!", False)
    assert sorted(browser.rows()[-1]["labels"]) == ["bad", "corrected", "good"]
    labels = tmp_path / "b.labels.jsonl"
    assert found["path"] == str(labels) and len(LabelFile(labels).current()) == 3
    out = tmp_path / "o.jsonl"
    assert export(["-f", "sft", "-i", str(source), "-o", str(out), "--labels", str(labels)]) == 0
    rows = [json.loads(line)["metadata"] for line in out.read_text().splitlines()]
    mine = [(m["step"], m["label"], m["corrected"]) for m in rows if m["task_id"] == "sum"]
    assert mine == [(1, "good", True)]
    for target in ({}, step):
        browser.post(path, {"target": target, "label": None, "comment": None})
    browser.post(path, {"target": call, "label": None, "reply": None})
    assert LabelFile(labels).current() == {} and browser.rows()[-1]["labels"] == []


def test_wrong_requests_are_refused_in_one_line(browser: Browser, tmp_path: Path) -> None:
    key = key_of(browser, "sum")
    sid = browser.get(f"/api/run/{key}")["sessions"][0]["sid"]
    call = {"sid": sid, "step": 0, "call": 0}

    def reply(**body: Any) -> dict[str, Any]:
        return {"target": call, "reply": {"content": "", "tool_calls": [body]}}

    wrong: list[tuple[Any, str]] = [
        ([], "not a JSON object"),
        ({"target": {"step": 1}}, "a target is {}, {sid}, {sid, step} or {sid, step, call}"),
        ({"target": {"sid": "x"}, "label": "good"}, "no such session or step"),
        ({"target": {"sid": sid, "step": 9}, "label": "good"}, "no such session or step"),
        ({"target": {**call, "call": 9}, "label": "good"}, "no such model call"),
        ({"target": {}, "label": "great"}, "a label is good, bad, exclude or null"),
        ({"target": {}, "reply": "x"}, "a corrected reply needs"),
        ({"target": {}, "comment": 7}, "'comment' must be text"),
        (reply(name="ad", arguments={}), "no such function; did you mean 'add'?"),
        (reply(name="add", arguments={"a": 1}), "add: the argument 'b' is missing"),
        (reply(name="add", arguments="x"), "'tool_calls' of the reply must be a list of calls"),
    ]
    for body, message in wrong:
        status, error = browser.post(f"/api/labels/{key}", body)
        assert status == 400 and message in error and "\n" not in error
    assert not (tmp_path / "b.labels.jsonl").exists()
    assert browser.post("/api/labels/none", {"target": {}})[0] == 404


def test_labels_of_another_program_appear(browser: Browser, tmp_path: Path) -> None:
    key = key_of(browser, "capital")
    with (tmp_path / "b.labels.jsonl").open("w") as file:
        file.write('{"label": "exclude", "id": "capital"}\n{"label": "exc')
    found = browser.get(f"/api/labels/{key}")
    assert found["run"]["label"] == "exclude"
    assert found["problems"] == [f"{tmp_path}/b.labels.jsonl, line 2: incomplete last line"]
    assert browser.rows()[0]["labels"] == ["exclude"]


def test_the_preview_obeys_the_labels(browser: Browser) -> None:
    key = key_of(browser, "sum")
    before = browser.get("/api/preview?format=sft&rows=50")
    assert browser.post(f"/api/labels/{key}", {"target": {}, "label": "exclude"})[0] == 200
    after = browser.get("/api/preview?format=sft&rows=50")
    tasks = [{row["metadata"]["task_id"] for row in p["shown"]} for p in (before, after)]
    assert tasks == [{"capital", "sum"}, {"capital"}]
    assert after["dropped"]["excluded by label"] == before["rows"] - after["rows"] == 2
    assert after["labels"].endswith("b.labels.jsonl") and before["labels"] is None
    without = browser.get("/api/preview?format=sft&labels=no&rows=1&skip=1")
    assert without["rows"] == before["rows"] and without["shown"] == before["shown"][1:2]
    for query, message in (("format=x", "no format x"), ("source=9", "no source 9"),
                           ("format=atif", "whole runs")):  # fmt: skip
        status, error = browser.refused(f"/api/preview?{query}")
        assert status == 400 and message in error


_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["plan", "action", "end", "tool:ask_llm", "tool:judge", "resumed"]),
        st.booleans(),
    ),
    max_size=8,
)


@given(given_events=_EVENTS)
def test_calls_have_the_numbers_of_their_row(given_events: list[tuple[str, bool]]) -> None:
    """Whatever the calls of a step, the number of a call is that of `step_calls`."""
    base = {"sid": "s", "parent": None, "time": 0.0}
    events: list[Any] = [
        {**base, "kind": "session", "i": None, "phase": None, "data": {"task": "t", "agent": "a"}},
        {**base, "kind": "step", "i": 0, "phase": None, "data": {}},
    ]
    for n, (phase, stored) in enumerate(given_events):
        if phase == "resumed":
            events.append({**base, "kind": "resumed", "i": 0, "phase": None, "data": {}})
            continue
        messages = {"messages": [{"role": "user", "content": "p"}]} if stored else {}
        data = {**messages, "output": f"reply {n}"}
        events.append({**base, "kind": "model_call", "i": 0, "phase": phase, "data": data})
    session = sessions_from_events(iter(events))["s"]
    [step] = session.to_dict()["steps"]
    in_row = {part["llm_output"]: number for number, _, part in step_calls(step)}
    replies = [e["data"]["output"] for e in events if e["kind"] == "model_call"]
    numbers = numbers_in_row(events[2:])
    assert {replies[n]: number for n, number in numbers.items()} == in_row


def test_label_files_among_the_inputs_are_not_runs(runs: Path, tmp_path: Path) -> None:
    """`ck-pro view runs/*.jsonl` also names them."""
    labels = tmp_path / "a.labels.jsonl"
    labels.write_text('{"label": "good", "id": "sum"}\n')
    assert [s.path for s in sources_of([runs, labels])] == [runs]
