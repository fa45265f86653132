"""The same runner on Ray: tasks as Ray tasks on any number of nodes, one output.

`RayRunner` stands where `TaskRunner` does. Each task is one Ray task that runs a `TaskRunner` of
its own on some node; Ray starts it again elsewhere when its node or its process dies, and it then
goes on where its journal ends. All nodes see the folder of the output, with the journals. Rows are
appended in one place, the `Desk` beside the driver, which takes a task's row once. The tasks of a
node share one browser server, held by a `NodeBrowser` on that node.

Only the room `ck_main.cluster` knows Ray (the extra `ray`); Ray is imported when a run begins.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from ck_main.cluster.node import Desk, Ended, Order, work_on
from ck_main.cluster.process import answer, only_on
from ck_main.cluster.ray_cluster import check_ray, joined, last_line
from ck_main.runner.limits import RunLimits
from ck_main.runner.runner import TaskRunner
from ck_main.tasks.dataset import Task
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import EnvironmentFailure
from ck_pro.model import Budget, Usage

_log = logging.getLogger(__name__)
CPUS_PER_TASK = 0.25
"""Of a node's processors: a task mostly waits for its model."""
NODE_RETRIES = 3
"""How often Ray starts a task again whose node or process died."""
_POLL_SECONDS = 0.2
_AGAIN_SECONDS = 5.0
_LEFT_SECONDS = 90.0
"""How long a task that somebody else holds is asked for: a killed run's processes end in time."""


class RayRunner(TaskRunner):
    """`TaskRunner` with its tasks on Ray; `options.workers` is how many are under way at once.

    Args:
        address: "local" starts Ray here, for this run; "auto" or "HOST:PORT" joins a cluster.
        args, kwargs: as for `TaskRunner`.

    Raises:
        ConfigError: Ray is not installed.
    """

    def __init__(self, *args: Any, address: str, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.address = address
        self._lost: list[str] = []
        self._left: list[tuple[Task, float]] = []
        """Tasks that somebody else holds, and when to ask for them again."""
        self._left_since: dict[str, float] = {}
        check_ray()

    def run(self, tasks: Iterable[Task]) -> None:
        """See `TaskRunner.run`.

        Raises:
            EnvironmentFailure: the cluster cannot be joined; or, when all others have ended,
                tasks were lost with their nodes again and again.
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
                f"or process {NODE_RETRIES + 1} times; the same command runs them again"
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
                    task = task or self._asked_again()
                    if task is None:
                        break
                    self.begins(task)
                    running[work.remote(shared, self._limits_left(), task, desk)] = task
                if not running:
                    if not self._left or not self._may_start():
                        return
                    self.stop.wait(_POLL_SECONDS)
                    continue
                if self.stop.is_set() and not cancelled.is_set():
                    cancelled.set()
                    for reference in running:
                        ray.cancel(reference)
                for reference in ray.wait(list(running), timeout=_POLL_SECONDS)[0]:
                    self._take(reference, running.pop(reference))
        except KeyboardInterrupt:
            self.stop.set()
            for reference in running:
                ray.cancel(reference, force=True)
            raise

    def _asked_again(self) -> Task | None:
        """A task that somebody else held some time ago, if it still has no row."""
        self._left = [(t, due) for t, due in self._left if not self.rows.has(t.id)]
        for n, (task, due) in enumerate(self._left):
            if time.monotonic() >= due:
                del self._left[n]
                return task
        return None

    def _limits_left(self) -> RunLimits:
        """What the run may still use."""
        limits, used = self.options.run, self.budget.snapshot()
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

    def _take(self, reference: Any, task: Task) -> None:
        """Take note of a task that ended, somewhere and somehow."""
        from ray.exceptions import RayError, RayTaskError, TaskCancelledError

        try:
            ended: Ended = answer(reference)
        except TaskCancelledError:
            self.say_stopped(task)
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
        if not self._is_left(task, ended):
            for text in ended.notes:
                self.watcher.note(text)
        if outcome is not None:
            outcome = replace(outcome, earlier=False, money=ended.used.get("money"))
            self.outcomes[task.id] = outcome
            self.watcher.ended(outcome)

    def _is_left(self, task: Task, ended: Ended) -> bool:
        """Whether a task is asked for again, since it has no row and nothing went wrong: somebody
        else holds it, perhaps a process of a killed run, which ends soon."""
        if ended.failure or ended.limit or self.stop.is_set() or task.id in self.rows.done:
            return False
        now = time.monotonic()
        if task.id not in self._left_since:
            self._left_since[task.id] = now
            self.watcher.note(
                f"{task.id}: another run is at it, or was until it was killed; it is asked for "
                f"again for {_LEFT_SECONDS:g} s"
            )
        if now - self._left_since[task.id] > _LEFT_SECONDS:
            return False
        self._left.append((task, now + _AGAIN_SECONDS))
        return True

    def _charge(self, used: dict[str, Any]) -> None:
        usage = Usage(prompt_tokens=int(used.get("tokens", 0)))
        # the seconds of a run are those of its own clock
        Budget.carry(self.budget, int(used.get("steps", 0)), 0.0, [(usage, used.get("money"))])
