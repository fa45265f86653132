"""The runner on Ray: tasks on any number of nodes, one output.

`RayRunner` replaces `TaskRunner`. Each task is one Ray task, which runs a `TaskRunner` on some
node. If the node or the process dies, Ray starts the task on another node, where it resumes from
its journal. All nodes share the folder of the output. The `Desk`, an actor on the driver's node,
appends the rows, at most one per task. A `NodeBrowser` on each node owns the browser server that
the tasks of the node share.

Only the room `ck_main.cluster` uses Ray (the extra `ray`). It imports Ray when a run starts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from ck_main.cluster.node import Desk, Ended, Order, work_on
from ck_main.cluster.process import only_on, result_of
from ck_main.cluster.ray_cluster import check_ray, joined, last_line
from ck_main.output.row_file import RowFile
from ck_main.runner.limits import RunLimits
from ck_main.runner.runner import TaskRunner
from ck_main.tasks.dataset import Task
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import EnvironmentFailure
from ck_pro.model import Budget, Usage

_log = logging.getLogger(__name__)
CPUS_PER_TASK = 0.25
"""Processors that a task reserves; it mostly waits for its model."""
NODE_RETRIES = 3
"""How often Ray restarts a task whose node or process died."""
_POLL_SECONDS = 0.2
_RETRY_SECONDS = 5.0
_LOCKED_SECONDS = 90.0
"""How long to retry a locked task; within this time the processes of a killed run end."""


class RayRunner(TaskRunner):
    """A `TaskRunner` with its tasks on Ray; `options.workers` of them run at the same time.

    Args:
        address: "local" starts Ray on this machine; "auto" or "HOST:PORT" joins a cluster.
        args, kwargs: as for `TaskRunner`.

    Raises:
        ConfigError: Ray is not installed.
    """

    rows: RowFile

    def __init__(self, *args: Any, address: str, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.address = address
        self._lost: list[str] = []
        self._locked: list[tuple[Task, float]] = []
        """Tasks that another run has locked, and when to retry them."""
        self._locked_since: dict[str, float] = {}
        check_ray()

    def run(self, tasks: Iterable[Task]) -> None:
        """See `TaskRunner.run`.

        Raises:
            EnvironmentFailure: the cluster cannot be joined; or tasks were lost with their nodes
                too often (raised after all other tasks ended).
        """
        cluster = joined(self.address, self.watcher.note, self.stop)
        with cluster, self.budget.stopping(self.stop):
            if not self.stop.is_set():
                self._drive(iter(tasks))
                self._restore()
        if self.stop.is_set():
            self.limit = self.limit or self.budget.used_up()
        if self.failure is None and self._lost:
            raise EnvironmentFailure(
                f"{len(self._lost)} tasks ({', '.join(self._lost[:5])}) were lost with their node "
                f"or process {NODE_RETRIES + 1} times; repeat the command to resume them"
            )
        if self.failure is not None:
            raise self.failure

    def _drive(self, queue: Iterator[Task]) -> None:
        import ray

        order = Order(
            cast(KwargsInitializable, self.agent),
            self.rows.path.resolve(),
            replace(self.options, probe=None),
            self.target_url,
            frozenset(self.rows.lost | self.rows.torn),
        )
        here = only_on(ray.get_runtime_context().get_node_id())
        desk = ray.remote(Desk).options(num_cpus=0, scheduling_strategy=here).remote(order.output)
        shared = ray.put(order)
        work = ray.remote(work_on).options(
            num_cpus=CPUS_PER_TASK, max_retries=NODE_RETRIES, scheduling_strategy="SPREAD"
        )
        running: dict[Any, Task] = {}
        cancelled = threading.Event()
        try:
            while True:
                while len(running) < self.options.workers and self._may_start():
                    task = next((t for t in queue if t.id not in self.rows.done), None)
                    task = task or self._unlocked()
                    if task is None:
                        break
                    self.report_start(task)
                    running[work.remote(shared, self._limits_left(), task, desk)] = task
                if not running:
                    if not self._locked or not self._may_start():
                        return
                    self.stop.wait(_POLL_SECONDS)
                    continue
                if self.stop.is_set() and not cancelled.is_set():
                    cancelled.set()
                    for reference in running:
                        ray.cancel(reference)
                for reference in ray.wait(list(running), timeout=_POLL_SECONDS)[0]:
                    self._finish(reference, running.pop(reference))
        except KeyboardInterrupt:
            self.stop.set()
            for reference in running:
                ray.cancel(reference, force=True)
            raise

    def _unlocked(self) -> Task | None:
        """Return a locked task that is due for a retry and still has no row."""
        self._locked = [(t, due) for t, due in self._locked if not self.rows.has(t.id)]
        for n, (task, due) in enumerate(self._locked):
            if time.monotonic() >= due:
                del self._locked[n]
                return task
        return None

    def _limits_left(self) -> RunLimits:
        """Return the unused part of the run's limits."""
        limits, used = self.options.run, dict[str, Any](self.budget.snapshot())
        left = {
            name: None if limit is None else max(0, limit - used[name])
            for name, limit in (
                ("steps", limits.max_steps),
                ("seconds", limits.max_seconds),
                ("tokens", limits.max_tokens),
                ("money", limits.max_money),
            )
        }
        return RunLimits(**{f"max_{name}": value for name, value in left.items()})

    def _finish(self, reference: Any, task: Task) -> None:
        """Process the result of a Ray task."""
        from ray.exceptions import RayError, RayTaskError, TaskCancelledError

        try:
            ended: Ended = result_of(reference)
        except TaskCancelledError:
            self.report_stopped(task)
            return
        except RayTaskError as e:
            _log.error("task %s: %s", task.id, e)
            self._fail(EnvironmentFailure(f"{task.id}: its runner failed: {last_line(e)}"))
            return
        except RayError as e:
            self._lost.append(task.id)
            self.watcher.note(f"{task.id}: lost with its node or process: {last_line(e)}")
            return
        self._charge(ended.used)
        self.limit = self.limit or ended.limit
        if ended.failure is not None:
            self._fail(ended.failure)
        self.rows.refresh()
        outcome = self.rows.done.get(task.id)
        if not self._is_locked(task, ended):
            for text in ended.notes:
                self.watcher.note(text)
        if outcome is not None:
            outcome = replace(outcome, earlier=False, money=ended.used.get("money"))
            self.outcomes[task.id] = outcome
            self.watcher.ended(outcome)

    def _is_locked(self, task: Task, ended: Ended) -> bool:
        """Whether another run has locked a task, so that it is retried later.

        Such a task has no row and no error. The lock may belong to a process of a killed run,
        which ends soon.
        """
        if ended.failure or ended.limit or self.stop.is_set() or task.id in self.rows.done:
            return False
        now = time.monotonic()
        if task.id not in self._locked_since:
            self._locked_since[task.id] = now
            self.watcher.note(
                f"{task.id}: locked by another run, or by one that was just killed; retrying for "
                f"{_LOCKED_SECONDS:g} s"
            )
        if now - self._locked_since[task.id] > _LOCKED_SECONDS:
            return False
        self._locked.append((task, now + _RETRY_SECONDS))
        return True

    def _charge(self, used: dict[str, Any]) -> None:
        usage = Usage(prompt_tokens=int(used.get("tokens", 0)))
        # zero seconds: the run has its own clock
        Budget.carry(self.budget, int(used.get("steps", 0)), 0.0, [(usage, used.get("money"))])
