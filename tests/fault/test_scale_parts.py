"""The runner on Ray: the parts that work without Ray."""

from __future__ import annotations

import json
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_agent import FakeAgent, make_task

from ck_main.cluster import node as scale_node
from ck_main.cluster import process as scale_process
from ck_main.cluster import ray_cluster as scale_cluster
from ck_main.cluster import scale
from ck_main.cluster.node import (
    Desk,
    Ended,
    NodeWatcher,
    Order,
    work_on,
)
from ck_main.cluster.process import end_with_parent, sendable
from ck_main.cluster.ray_cluster import check_ray
from ck_main.cluster.scale import RayRunner
from ck_main.output.output_files import folder_of, tries_path
from ck_main.output.row_file import RowFile
from ck_main.runner.limits import RunLimits
from ck_main.runner.run_options import RunOptions
from ck_main.tasks.dataset import Task
from ck_pro.agent import MultiStepAgent
from ck_pro.exceptions import (
    BrowserServerError,
    CKError,
    ConfigError,
    EnvironmentFailure,
    LimitReached,
    OutputError,
)


def row(name: str) -> dict[str, Any]:
    info = {"status": "done", "call_stat": {"__ALL__": {"total_tokens": 1}}}
    scored = {"pred": "a", "gold": None, "corr": None}
    return {"id": name, "task": "q", "session": {"info": info, "steps": []}, "eval": scored}


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def test_the_desk_takes_a_row_once(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    desk = Desk(output)
    for name in ("a", "b", "a"):
        desk.commit(row(name))
    assert desk.has("a") and not desk.has("c")
    assert ids(output) == ["a", "b"]
    assert not tries_path(output).exists()
    desk.write_try(row("a"))
    desk.write_try(row("a"))
    assert ids(tries_path(output)) == ["a"]


class LocalActor:
    """A desk in this process, called as through Ray."""

    def __init__(self, desk: Desk):
        for name in ("has", "commit", "write_try"):
            setattr(self, name, SimpleNamespace(remote=getattr(desk, name)))


@pytest.mark.parametrize("lost", [False, True])
def test_a_node_runs_a_task_and_the_desk_writes_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    monkeypatch.setattr(scale_node, "result_of", lambda value: value)
    monkeypatch.setattr(scale_node, "end_with_parent", lambda: None)
    monkeypatch.setattr(
        scale_node, "NodeBrowsers", lambda agent, desk: SimpleNamespace(agent=agent, renew=None)
    )
    output, calls = tmp_path / "out.jsonl", []
    agent = FakeAgent(behaviour=lambda call: calls.append(call.task) or "42")
    desk = LocalActor(Desk(output))
    folder_of(output).mkdir()
    order = Order(agent, output, RunOptions(), None)
    task = make_task("a")
    ended = work_on(order, RunLimits(), task, desk)
    assert ended.failure is None and ids(output) == ["a"]
    if lost:  # the row is rebuilt from the journal, without a run
        output.write_text("")
        desk = LocalActor(Desk(output))
        ended = work_on(replace(order, lost=frozenset({"a"})), RunLimits(), task, desk)
        assert ended.failure is None and ids(output) == ["a"]
    assert calls == ["q"]


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r'pip install "ck-pro\[ray\]"'):
        check_ray()


def test_a_node_without_the_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_node, "end_with_parent", lambda: None)
    order = Order(MultiStepAgent(), tmp_path / "none" / "out.jsonl", RunOptions(), None)
    ended = work_on(order, RunLimits(), None, None)  # type: ignore[arg-type]
    assert isinstance(ended.failure, OutputError)
    assert "all nodes share" in str(ended.failure)


def test_a_task_gets_the_unused_part_of_the_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ck_main.cluster.scale.check_ray", lambda: None)
    options = RunOptions(run=RunLimits(max_steps=10, max_tokens=100))
    with RowFile(tmp_path / "out.jsonl") as rows:
        watcher = NodeWatcher([], lambda: None)
        runner = RayRunner(MultiStepAgent(), rows, options, watcher, address="local")
        assert runner._limits_left() == RunLimits(max_steps=10, max_tokens=100)
        runner._charge({"steps": 4, "tokens": 130, "money": 0.5, "seconds": 9.0})
        assert runner._limits_left() == RunLimits(max_steps=6, max_tokens=0)
        assert "130 tokens" in (runner.budget.used_up() or "")


def test_a_node_looks_for_its_browser_server_whenever_an_agent_begins() -> None:
    asked: list[str] = []

    def renew() -> None:
        asked.append("renew")
        raise BrowserServerError("it cannot be started")

    watcher = NodeWatcher([], renew)
    for kind in ("run_started", "step_started", "run_started"):
        watcher.event("a", {"kind": kind})
    assert asked == ["renew", "renew"]


def test_errors_are_sent_as_far_as_they_can_be() -> None:
    assert type(sendable(OutputError("full"))) is OutputError
    cut = sendable(LimitReached("steps", "too many"))
    assert isinstance(cut, CKError) and "too many" in str(cut)


def test_a_ray_that_comes_up_slowly_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    notes: list[str] = []

    def init(address: str, note: Any, **settings: Any) -> None:
        tried.append(address)
        if len(tried) < 3:
            raise EnvironmentFailure(f"--ray {address}: the node timed out")

    monkeypatch.setattr(scale_cluster, "_init_ray", init)
    scale_cluster._start_ray(notes.append, threading.Event())
    assert tried == ["local"] * 3
    assert notes == [
        "--ray local: the node timed out; starting it again (2 of 6)",
        "--ray local: the node timed out; starting it again (3 of 6)",
    ]
    stopped = threading.Event()
    stopped.set()
    tried[:] = []
    scale_cluster._start_ray(notes.append, stopped)  # stopped meanwhile: no further attempt
    assert len(tried) == 1


def test_a_ray_that_never_comes_up_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(address: str, note: Any, **settings: Any) -> None:
        raise EnvironmentFailure("no room")

    monkeypatch.setattr(scale_cluster, "_init_ray", init)
    with pytest.raises(EnvironmentFailure, match="no room; try again when this machine"):
        scale_cluster._start_ray(lambda text: None, threading.Event())


def test_a_cluster_that_comes_up_slowly_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt finds no cluster; the callback then starts it."""
    monkeypatch.setattr(scale_cluster, "_POLL_SECONDS", 0.001)
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{head.getsockname()[1]}"
        notes: list[str] = []

        def note(text: str) -> None:
            notes.append(text)
            head.listen()

        scale_cluster._await_listener(address, note, threading.Event())
        scale_cluster._await_listener(address, note, threading.Event())
    assert notes == [f"waiting for Ray at {address} (30 s at most)"]


def test_where_no_cluster_is_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_cluster, "_JOIN_SECONDS", 0.0)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(EnvironmentFailure, match="no cluster responds"):
            scale_cluster._await_listener(address, lambda text: None, threading.Event())


def test_a_task_that_another_run_has_locked_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "check_ray", lambda: None)
    monkeypatch.setattr(scale, "_RETRY_SECONDS", 0.0)
    held = Task("a", "q", "a", original={})
    notes: list[str] = []
    with RowFile(tmp_path / "out.jsonl") as rows:
        watcher = NodeWatcher(notes, lambda: None)
        runner = RayRunner(MultiStepAgent(), rows, RunOptions(), watcher, address="local")
        assert runner._unlocked() is None
        for _ in range(2):  # a killed run is still ending
            assert runner._is_locked(held, Ended())
            assert runner._unlocked() is held and runner._unlocked() is None
        assert len(notes) == 1 and "retrying for 90 s" in notes[0]
        assert not runner._is_locked(held, Ended(failure=OutputError("full")))
        assert not runner._is_locked(held, Ended(limit="tokens"))
        assert runner._is_locked(held, Ended())
        rows.append(row("a"))  # another run has done the task
        assert runner._unlocked() is None and not runner._is_locked(held, Ended())
        monkeypatch.setattr(scale, "_LOCKED_SECONDS", -1.0)
        assert not runner._is_locked(Task("b", "q", "b", original={}), Ended())


def test_one_thread_watches_whether_ray_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(scale_process, "_end_with", lambda parent: over.wait())
    end_with_parent()
    end_with_parent()
    watches = [t for t in threading.enumerate() if t.name == "ck-parent-watch"]
    over.set()
    assert len(watches) == 1
    watches[0].join()
