"""What programs see of a run: the status file, metrics over HTTP, the log as JSON lines."""

import json
import logging
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from fake_agent import Call, FakeAgent, Watching, make_task
from hypothesis import given
from hypothesis import strategies as st

from ck_main.output.row_file import RowFile
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.ui.logs import JsonLines, logging_to
from ck_main.ui.metrics import MetricsServer, metrics_text
from ck_main.ui.status import RunStatus, StatusFile
from ck_pro import MultiStepAgent
from ck_pro.exceptions import ConfigError
from ck_pro.session import StopReason
from ck_pro.testing import ScriptedLLM


class Observed:
    """A runner whose status is watched."""

    def __init__(self, folder: Path, behaviour: Any = None, **options: Any):
        self.now = 1000.0
        self.rows, self.inner = RowFile(folder / "out.jsonl"), Watching()
        now = lambda: self.now  # noqa: E731
        self.status = RunStatus(self.inner, self.rows.path, total=4, clock=now, timer=now)
        agent = FakeAgent(behaviour=behaviour)
        self.runner = TaskRunner(agent, self.rows, RunOptions(**options), self.status)
        self.status.start(lambda: len(self.rows.done), self.runner.budget)

    def run(self) -> None:
        with self.rows:
            self.runner.run(
                make_task(n, n, answer=a) for n, a in (("a", "A"), ("b", "x"), ("c", None))
            )


def test_the_status_counts(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def behaviour(call: Call) -> Any:
        observed.now += 30
        seen.append(observed.status.snapshot())
        return StopReason.STEPS if call.task == "c" else call.task.upper()

    observed = Observed(tmp_path, behaviour)
    observed.run()
    first, last = seen[0], seen[-1]
    assert first["running"][0]["task"] == "a" and first["running"][0]["steps"] == 1
    assert first["running"][0]["seconds"] == 30.0 and first["eta_seconds"] is None
    assert (last["done"], last["right"], last["wrong"], last["left"]) == (2, 1, 1, 2)
    assert last["tasks_per_minute"] == pytest.approx(2 / 1.5, abs=0.01)
    assert last["eta_seconds"] == pytest.approx(90, abs=0.1)
    assert (last["elsewhere"], first["tasks_per_minute"]) == (0, None)
    with RowFile(observed.rows.path) as rows:  # another run
        row = json.loads(rows.path.read_text().splitlines()[0])
        rows.append({**row, "id": "d"})
        observed.rows.done = rows.done
    status = observed.status.snapshot()
    assert (status["done"], status["elsewhere"], status["left"]) == (3, 1, 0)
    observed.status.over("problem")
    end = observed.status.snapshot()
    assert (end["state"], end["failed"], end["unscored"], end["running"]) == ("problem", 1, 1, [])
    assert (end["steps"], end["tokens"], end["money"], end["llm_call"]) == (3, 21, 0.75, 3)
    assert len(observed.inner.outcomes) == 3  # forwarded


def test_unreadable_replies_are_counted_by_phase(tmp_path: Path) -> None:
    agent = MultiStepAgent(
        name="ck_agent",
        model=ScriptedLLM({"plan": ["?"] * 3, "action": ["?"] * 2, "end": ["?"] * 2}),
        templates={"plan": "agent_plan", "action": "agent_action", "end": "agent_end"},
        planning="separate",
        max_steps=2,
    )
    observed = Observed(tmp_path)
    observed.runner.agent = agent
    with observed.rows:
        observed.runner.run([make_task("a", "a", answer="x")])
    status = observed.status.snapshot()
    assert status["unreadable"] == {"plan": 2, "action": 2, "end": 2}
    assert 'ck_unreadable_replies_total{phase="plan"} 2\n' in metrics_text(status)
    (outcome,) = observed.inner.outcomes
    assert outcome.unreadable == status["unreadable"]
    row = json.loads(observed.rows.path.read_text())
    assert row["session"]["info"]["unreadable"] == status["unreadable"]
    with (tmp_path / "out" / "a" / "events.jsonl").open() as journal:
        events = [json.loads(line) for line in journal]
    found = [e["phase"] for e in events if e["kind"] == "unreadable"]
    assert found == ["plan", "action", "plan", "action", "end", "end"]


def test_the_file_is_whole_at_any_moment_and_up_to_date_at_the_end(tmp_path: Path) -> None:
    observed = Observed(tmp_path)
    with StatusFile(observed.status, tmp_path, seconds=0.0005) as file:
        for _ in range(50):
            assert json.loads(file.path.read_text())["state"] == "running"
        with StatusFile(observed.status, tmp_path) as second:  # another run of this output
            assert second.path != file.path and second.path.exists()
        observed.run()
        observed.status.over("done")
    assert json.loads((tmp_path / "status.json").read_text())["done"] == 3
    assert not list(tmp_path.glob(".*.partial"))


def test_an_internal_error_is_in_the_status(tmp_path: Path) -> None:
    observed = Observed(tmp_path)
    with pytest.raises(ValueError, match="internal"), StatusFile(observed.status, tmp_path):
        raise ValueError("internal")
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "internal"


@pytest.mark.integration
def test_a_status_file_that_cannot_be_written_does_not_stop_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    observed = Observed(tmp_path)
    with StatusFile(observed.status, tmp_path / "gone", seconds=0.001):
        observed.run()
    assert len([r for r in caplog.records if "the run is not affected" in r.getMessage()]) == 1


@pytest.mark.integration
def test_metrics_over_http(tmp_path: Path) -> None:
    observed = Observed(tmp_path)
    observed.run()
    with MetricsServer(observed.status, 0) as server:
        text = urllib.request.urlopen(server.url, timeout=30).read().decode()
        assert 'ck_tasks_ended_total{score="right"} 1\n' in text
        assert "ck_tokens_total 21\n" in text and "ck_tasks_left 1\n" in text
        where = server.url.replace("/metrics", "/status?x=1")
        assert json.loads(urllib.request.urlopen(where, timeout=30).read())["done"] == 3
        for path, host, code in (("/no", None, 404), ("/status", "evil.example:80", 403)):
            request = urllib.request.Request(server.url.replace("/metrics", path))
            if host:
                request.add_header("Host", host)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=30)
            assert refused.value.code == code
            refused.value.close()
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        with pytest.raises(ConfigError, match=f"--metrics {port}: .*; name another port"):
            MetricsServer(observed.status, port).__enter__()


def test_every_line_of_the_metrics_is_one(tmp_path: Path) -> None:
    for line in metrics_text(Observed(tmp_path).status.snapshot()).splitlines():
        name, _, value = line.rpartition(" ")
        assert line.startswith("# ") or (name.startswith("ck_") and float(value) >= 0)


def test_the_log_as_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_TEST_API_KEY", 'very "secret" key')

    def behaviour(call: Call) -> Any:
        if call.task == "b":
            raise RuntimeError('no very "secret" key')
        return call.task.upper()

    with logging_to(tmp_path / "run.log", json_lines=True):
        observed = Observed(tmp_path, behaviour)
        observed.run()
        observed.status.over("done")
    lines = [json.loads(line) for line in (tmp_path / "run.log.jsonl").read_text().splitlines()]
    ended = [line for line in lines if line["message"] == "task ended"]
    assert [(x["task"], x["score"], x["level"]) for x in ended] == [
        ("a", "right", "INFO"),
        ("b", "wrong", "INFO"),
        ("c", "unscored", "INFO"),
    ]
    (raised,) = [line for line in lines if line["level"] == "ERROR"]
    assert (
        "RuntimeError: no ***" in raised["error"] and raised["logger"] == "ck_main.runner.attempt"
    )
    assert lines[-1]["message"] == "run ended" and lines[-1]["tokens"] == 21
    assert "secret" not in (tmp_path / "run.log.jsonl").read_text()
    assert logging.getLogger("ck_main.events").level == logging.NOTSET


def test_without_it_the_log_has_no_events(tmp_path: Path) -> None:
    with logging_to(tmp_path / "run.log"):
        Observed(tmp_path).run()
    assert not (tmp_path / "run.log").exists()


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_any_record_is_one_line(message: str, facts: dict[str, str]) -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s", (message,), None)
    record.facts = facts
    line = JsonLines().format(record)
    assert "\n" not in line and isinstance(json.loads(line), dict)


def test_many_threads_report_at_the_same_time(tmp_path: Path) -> None:
    meeting = threading.Barrier(3)

    def behaviour(call: Call) -> str:
        meeting.wait(60)
        return call.task

    observed = Observed(tmp_path, behaviour, workers=3)
    observed.run()
    assert observed.status.snapshot()["done"] == 3
