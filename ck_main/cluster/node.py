"""What runs on the nodes of a Ray cluster: tasks, the desk, a browser server."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from ck_main.cluster.process import answer, end_with_parent, only_on, sendable
from ck_main.output.row_file import Outcome, RowFile, folder_of, tries_path
from ck_main.runner.limits import RunLimits
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.runner.service_checks import is_idle, probe_services
from ck_main.tasks.dataset import Task
from ck_main.ui.logs import LOG_NAME, logging_to
from ck_pro.config import KwargsInitializable, iter_nested
from ck_pro.exceptions import BrowserServerError, CKError, OutputError
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.server_process import BrowserServer, ServerOptions
from ck_web.browser.shared_servers import acquire_server

_BROWSER_ATTEMPTS = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Order:
    """What every task of a run needs on its node.

    Args:
        agent: works on the task.
        output: absolute, in a folder that all nodes share.
        options: of the runner, without `probe`.
        target_url: see `TaskRunner`.
    """

    agent: KwargsInitializable
    output: Path
    options: RunOptions
    target_url: str | None


@dataclass
class Ended:
    """What a node tells of a task that ended, with its row committed or without one."""

    notes: list[str] = field(default_factory=list)
    failure: CKError | None = None
    limit: str | None = None
    used: dict[str, Any] = field(default_factory=dict)


class Desk:
    """A Ray actor beside the driver: the one place where rows are appended.

    Args:
        output: the file of rows.
    """

    def __init__(self, output: Path):
        self._rows = RowFile(output)
        self._tries: RowFile | None = None
        self._browsers: dict[str, Any] = {}

    def has(self, task_id: str) -> bool:
        """Whether a task has its row."""
        return self._rows.has(task_id)

    def commit(self, row: dict[str, Any]) -> None:
        """Append the row of a task, unless it has one: a task that Ray ran twice counts once."""
        _append_once(self._rows, row)

    def keep_try(self, row: dict[str, Any]) -> None:
        """Append the row of a try that was not chosen."""
        if self._tries is None:
            self._tries = RowFile(tries_path(self._rows.path))
        _append_once(self._tries, row)

    def browser(self, node: str) -> Any:
        """The `NodeBrowser` of a node, made when first asked for; it goes when the run ends."""
        import ray

        if node not in self._browsers:
            options = ray.remote(NodeBrowser).options(
                num_cpus=0, max_restarts=-1, max_task_retries=3, scheduling_strategy=only_on(node)
            )
            self._browsers[node] = options.remote()
        return self._browsers[node]


class NodeBrowser:
    """A Ray actor: holds the browser servers of one node, which its tasks share."""

    def __init__(self) -> None:
        self._servers: dict[ServerOptions, BrowserServer] = {}
        end_with_parent()

    def address(self, options: ServerOptions) -> tuple[str, str]:
        """Address and token of a server that runs with these options, started if there is none.

        Raises:
            BrowserServerError: it cannot be started.
        """
        server = self._servers.get(options)
        if server is None or not server.alive:
            server = self._servers[options] = acquire_server(options)
        return server.url, server.token


class DeskRows:
    """The output as a node's runner sees it: `RowFile`, by the desk."""

    def __init__(self, path: Path, desk: Any):
        self.path, self.folder, self.done = path, folder_of(path), dict[str, Outcome]()
        self._desk = desk

    def has(self, task_id: str) -> bool:
        """See `RowFile.has`."""
        return bool(answer(self._desk.has.remote(task_id)))

    def append(self, row: dict[str, Any]) -> None:
        """See `RowFile.append`; returns when the row is on the disk."""
        answer(self._desk.commit.remote(row))


class NodeRunner(TaskRunner):
    """A runner of one task on a node: rows go to the desk."""

    def __init__(self, desk: Any, *args: Any, **kwargs: Any):
        self._desk = desk
        super().__init__(*args, **kwargs)

    def keep_try(self, row: dict[str, Any]) -> None:
        """See `TaskRunner.keep_try`."""
        answer(self._desk.keep_try.remote(row))


class NodeWatcher:
    """Keeps the lines for a person; the rest is seen when the task has ended.

    Args:
        notes: takes the lines.
        renew: called when an agent begins, before it opens a browser.
    """

    def __init__(self, notes: list[str], renew: Callable[[], None]):
        self._notes, self._renew = notes, renew

    def started(self, task: Task) -> None:
        """See `Watcher`."""

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        """See `Watcher`."""
        if event["kind"] == "run_started":
            try:
                self._renew()
            except CKError as e:  # the agent that needs it will fail, and say so
                _log.warning("task %s: %s", task_id, e)

    def ended(self, outcome: Outcome) -> None:
        """See `Watcher`."""

    def note(self, text: str) -> None:
        """See `Watcher`."""
        self._notes.append(text)


def work_on(order: Order, limits: RunLimits, task: Task, desk: Any) -> Ended:
    """Run one task on this node: the Ray task.

    A browser server that was lost is started again once, and the task goes on with it.
    """
    end_with_parent()
    ended = Ended()
    host = socket.gethostname()
    if not folder_of(order.output).is_dir():
        where = f"the folder {folder_of(order.output)} is not there on the node {host}"
        ended.failure = OutputError(f"{where}; --output must be in a folder that all nodes share")
        return ended
    rows = cast(RowFile, DeskRows(order.output, desk))
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
    order: Order, limits: RunLimits, task: Task, rows: RowFile, desk: Any, ended: Ended
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
        ended.limit, ended.used = runner.limit, runner.budget.snapshot()


class NodeBrowsers:
    """The browser servers of this node in an agent's settings, wherever those name none.

    Args:
        agent: of the order.
        desk: knows the holders of the servers.

    Attributes:
        agent: the same with the addresses.

    Raises:
        BrowserServerError: a server cannot be started.
    """

    def __init__(self, agent: KwargsInitializable, desk: Any):
        import ray

        node = ray.get_runtime_context().get_node_id()
        paths = [
            path
            for path, config in iter_nested(agent, WebEnvConfig, skip=is_idle)
            if not config.given_server()
        ]
        self._lock = threading.Lock()
        self._holder: Any = answer(desk.browser.remote(node)) if paths else None
        self.agent: Any = agent.updated({}) if paths else agent  # a copy: it is written in
        known = dict(iter_nested(self.agent, WebEnvConfig))
        self._settings = [(known[path], known[path].server_options()) for path in paths]
        self.renew()

    def renew(self) -> None:
        """Put the servers that run now into the settings: one that died has been replaced."""
        with self._lock:
            for config, options in self._settings:
                url, token = self._asked(options)
                if url != config.server_url:
                    config.server_url, config.token = url, SecretStr(token)

    def _asked(self, options: ServerOptions) -> tuple[str, str]:
        from ray.exceptions import RayError

        try:
            return cast(tuple[str, str], answer(self._holder.address.remote(options)))
        except RayError as e:  # the holder has died, and is not there again yet
            said = " ".join(str(e).split())[:300]
            raise BrowserServerError(f"this node's browser server is not told: {said}") from None


def _append_once(rows: RowFile, row: dict[str, Any]) -> None:
    if not rows.has(row["id"]):
        rows.append(row)
