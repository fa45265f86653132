"""Code that runs on the nodes of a Ray cluster: tasks, the desk, browser servers."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from ck_main.cluster.process import end_with_parent, only_on, result_of, sendable
from ck_main.output.output_files import folder_of, tries_path
from ck_main.output.row import Outcome
from ck_main.output.row_file import RowFile
from ck_main.output.row_schema import OutputRow
from ck_main.runner.limits import RunLimits
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.runner.service_checks import probe_services
from ck_main.tasks.dataset import Task
from ck_main.ui.logs import LOG_NAME, logging_to
from ck_pro.config import KwargsInitializable, iter_nested
from ck_pro.events.progress_events import ProgressEvent, ProgressKind
from ck_pro.exceptions import BrowserServerError, CKError, OutputError
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.server_process import BrowserServer, ServerOptions
from ck_web.browser.shared_servers import acquire_server

_BROWSER_ATTEMPTS = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Order:
    """The settings of a run that every node needs.

    Args:
        agent: agent for the tasks.
        output: absolute path of the output, in a folder that all nodes share.
        options: options of the runner, without `probe`.
        target_url: see `TaskRunner`.
        lost: ids of rows that the output lost; their tasks are not run again if a journal has them.
    """

    agent: KwargsInitializable
    output: Path
    options: RunOptions
    target_url: str | None
    lost: frozenset[str] = frozenset()


@dataclass
class Ended:
    """A node's report about a task that ended, with or without a row.

    Args:
        notes: lines to display.
        failure: error that stops the run.
        limit: the limit of the run that was reached.
        used: usage, as `Budget.snapshot` returns it.
    """

    notes: list[str] = field(default_factory=list)
    failure: CKError | None = None
    limit: str | None = None
    used: dict[str, Any] = field(default_factory=dict)


class Desk:
    """A Ray actor on the driver's node: the only writer of the output.

    Args:
        output: file of rows.
    """

    def __init__(self, output: Path):
        self._rows = RowFile(output)
        self._tries: RowFile | None = None
        self._browsers: dict[str, Any] = {}

    def has(self, task_id: str) -> bool:
        """Whether a task has a row."""
        return self._rows.has(task_id)

    def commit(self, row: OutputRow) -> None:
        """Append the row of a task, unless it has one; Ray may run a task twice."""
        _append_once(self._rows, row)

    def write_try(self, row: OutputRow) -> None:
        """Append the row of a try that was not chosen, unless it exists."""
        if self._tries is None:
            self._tries = RowFile(tries_path(self._rows.path))
        _append_once(self._tries, row)

    def browser(self, node: str) -> Any:
        """Return the `NodeBrowser` of a node; create it on first use. It ends with the run."""
        import ray

        if node not in self._browsers:
            options = ray.remote(NodeBrowser).options(
                num_cpus=0, max_restarts=-1, max_task_retries=3, scheduling_strategy=only_on(node)
            )
            self._browsers[node] = options.remote()
        return self._browsers[node]


class NodeBrowser:
    """A Ray actor that owns the browser servers of one node; all tasks there share them."""

    def __init__(self) -> None:
        self._servers: dict[ServerOptions, BrowserServer] = {}
        end_with_parent()

    def address(self, options: ServerOptions) -> tuple[str, str]:
        """Return address and token of a running server with these options; start one if needed.

        Raises:
            BrowserServerError: the server cannot start.
        """
        server = self._servers.get(options)
        if server is None or not server.alive:
            server = self._servers[options] = acquire_server(options)
        return server.url, server.token


class DeskRows:
    """The `RowStore` of a node's runner: forwards to the desk.

    The driver restores lost rows, so `lost` is empty and `torn` has the ids of the order.

    Args:
        order: order of the run.
        desk: the desk.
    """

    def __init__(self, order: Order, desk: Any):
        self.path, self.folder = order.output, folder_of(order.output)
        self.done: dict[str, Outcome] = {}
        self.lost: frozenset[str] = frozenset()
        self.torn = order.lost
        self._desk = desk

    def has(self, task_id: str) -> bool:
        """See `RowFile.has`."""
        return bool(result_of(self._desk.has.remote(task_id)))

    def append(self, row: OutputRow) -> None:
        """See `RowFile.append`; return when the row is on the disk."""
        result_of(self._desk.commit.remote(row))

    def restore(self, row: OutputRow) -> bool:
        """Return False: the driver restores rows."""
        return False


class NodeRunner(TaskRunner):
    """A `TaskRunner` for one task on a node; the desk writes its rows."""

    def __init__(self, desk: Any, *args: Any, **kwargs: Any):
        self._desk = desk
        super().__init__(*args, **kwargs)

    def write_try(self, row: OutputRow) -> None:
        """See `TaskRunner.write_try`."""
        result_of(self._desk.write_try.remote(row))


class NodeWatcher:
    """A watcher that collects lines for the driver.

    Args:
        notes: list to add the lines to.
        renew: called when an agent starts, before it opens a browser.
    """

    def __init__(self, notes: list[str], renew: Callable[[], None]):
        self._notes, self._renew = notes, renew

    def started(self, task: Task) -> None:
        """See `Watcher`."""

    def event(self, task_id: str, event: ProgressEvent) -> None:
        """See `Watcher`."""
        if event["kind"] == ProgressKind.RUN_STARTED:
            try:
                self._renew()
            except CKError as e:  # the agent that needs a browser will report the error
                _log.warning("task %s: %s", task_id, e)

    def ended(self, outcome: Outcome) -> None:
        """See `Watcher`."""

    def note(self, text: str) -> None:
        """See `Watcher`."""
        self._notes.append(text)


def work_on(order: Order, limits: RunLimits, task: Task, desk: Any) -> Ended:
    """Run one task on this node (the body of a Ray task).

    If the browser server is lost, start it again once and resume the task.
    """
    end_with_parent()
    ended = Ended()
    host = socket.gethostname()
    if not folder_of(order.output).is_dir():
        folder = folder_of(order.output)
        ended.failure = OutputError(
            f"the node {host} has no folder {folder}; put --output in a folder that all nodes share"
        )
        return ended
    rows = DeskRows(order, desk)
    log = rows.folder / f"{host}.{LOG_NAME}"
    with logging_to(log):
        for _ in range(_BROWSER_ATTEMPTS):
            ended.failure = None
            try:
                _run_here(order, limits, task, rows, desk, ended)
            except CKError as e:
                ended.failure = sendable(e)
            if not isinstance(ended.failure, BrowserServerError):
                break
    return ended


def _run_here(
    order: Order, limits: RunLimits, task: Task, rows: DeskRows, desk: Any, ended: Ended
) -> None:
    browsers = NodeBrowsers(order.agent, desk)
    agent = browsers.agent
    money, judge = order.options.limits_money, order.options.judge
    options = replace(
        order.options,
        workers=1,  # on this thread, so that a cancelled Ray task is interrupted
        run=limits,
        probe=lambda: probe_services(agent, money_limit=money, judge=judge),
    )
    watcher = NodeWatcher(ended.notes, browsers.renew)
    runner = NodeRunner(desk, agent, rows, options, watcher, target_url=order.target_url)
    try:
        runner.run([task])
    finally:
        ended.limit, ended.used = runner.limit, dict(runner.budget.snapshot())


class NodeBrowsers:
    """Put the addresses of this node's browser servers into the settings of an agent.

    Args:
        agent: agent of the order.
        desk: actor that knows the `NodeBrowser` of each node.

    Attributes:
        agent: copy of the agent with addresses wherever the settings name no server.

    Raises:
        BrowserServerError: a server cannot start.
    """

    def __init__(self, agent: KwargsInitializable, desk: Any):
        import ray

        node = ray.get_runtime_context().get_node_id()
        paths = [
            path
            for path, config in iter_nested(agent, WebEnvConfig, used=True)
            if not config.given_server()
        ]
        self._lock = threading.Lock()
        self._actor: Any = result_of(desk.browser.remote(node)) if paths else None
        self.agent: KwargsInitializable = (
            agent.updated({}) if paths else agent
        )  # a copy that `renew` changes
        known = dict(iter_nested(self.agent, WebEnvConfig))
        self._settings = [(known[path], known[path].server_options()) for path in paths]
        self.renew()

    def renew(self) -> None:
        """Update the addresses, because a server that died has a successor."""
        with self._lock:
            for config, options in self._settings:
                url, token = self._address(options)
                if url != config.server_url:
                    config.server_url, config.token = url, SecretStr(token)

    def _address(self, options: ServerOptions) -> tuple[str, str]:
        from ray.exceptions import RayError

        try:
            return cast(tuple[str, str], result_of(self._actor.address.remote(options)))
        except RayError as e:  # the actor died, and Ray has not restarted it yet
            reason = " ".join(str(e).split())[:300]
            raise BrowserServerError(f"this node has no browser server now: {reason}") from None


def _append_once(rows: RowFile, row: OutputRow) -> None:
    if not rows.has(row["id"]):
        rows.append(row)
