"""Run the episodes of the conformance suite and print a table."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks.miniwob import (  # noqa: F401  (they register policies)
    choices,
    forms,
    mail,
    mouse,
    options,
    reading,
    values,
)
from benchmarks.miniwob.pages import Pages
from benchmarks.miniwob.world import POLICIES, EpisodeOver, PolicyFailed, World
from ck_pro.exceptions import CKError
from ck_web.env import WebEnv

FULL = 1.0


@dataclass
class Episode:
    """The result of an episode.

    Attributes:
        seed: of the random numbers.
        reward: the raw reward; None if the page reported none.
        actions: number of action strings.
        seconds: duration of the policy, including observations.
        problem: why the reward is not the full one.
    """

    seed: int
    reward: float | None = None
    actions: int = 0
    seconds: float = 0.0
    problem: str = ""

    @property
    def success(self) -> bool:
        """Whether the page gave its full reward."""
        return self.reward is not None and self.reward >= FULL


@dataclass
class Result:
    """The episodes of one task."""

    task: str
    episodes: list[Episode] = field(default_factory=list)

    @property
    def successes(self) -> int:
        """Number of episodes with the full reward."""
        return sum(episode.success for episode in self.episodes)


def play(env: WebEnv, pages: Pages, task: str, seed: int, log: Callable[[str], None]) -> Episode:
    """Run an episode: open the page, click START, run the policy."""
    episode = Episode(seed)
    pages.forget(task, seed)
    report = pages.begin(task, seed)
    env.step_state(f"goto {pages.url(task, seed)}")
    text = env.observe().text
    start = re.search(r"\[(\d+)\] [A-Za-z]+ 'START'", text)
    if start is None:
        log(text)
        episode.problem = "the page has no START to click"
        return episode
    env.step_state(f"click [{start[1]}]")
    if report.utterance is None:
        episode.problem = "the episode did not start"
        return episode
    world = World(env, report, log)
    log(f"{task} {seed}: {world.task}")
    start_time = time.monotonic()
    try:
        POLICIES[task](world)
        episode.problem = "the policy ended before the page did"
    except EpisodeOver:
        episode.problem = (
            "" if report.reward and report.reward >= FULL else report.reason or "wrong"
        )
    except PolicyFailed as e:
        episode.problem = str(e)
    except CKError:
        raise
    except Exception as e:  # noqa: BLE001  (the error of a policy is the result of its episode)
        episode.problem = f"error in the policy: {type(e).__name__}: {e}"
    episode.seconds = time.monotonic() - start_time
    episode.reward, episode.actions = report.reward, world.actions
    if not episode.success:
        log(env.observe().text)
    log(f"{task} {seed}: reward {episode.reward} {episode.problem}")
    return episode


def run(
    tasks: list[str],
    seeds: range,
    *,
    at_once: int = 2,
    log: Callable[[str], None] = lambda line: None,
    finished: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run all episodes with one browser for each task, `at_once` tasks at a time."""
    with Pages() as pages:
        settings = {"allow": [pages.host], "keep_server_seconds": 1}

        def run_task(task: str) -> Result:
            result = Result(task)
            env = WebEnv(settings)
            try:
                for seed in seeds:
                    result.episodes.append(play(env, pages, task, seed, log))
            except CKError as e:
                result.episodes.append(Episode(seeds.stop, problem=f"failed: {e}"))
            finally:
                env.close()
            finished(result)
            return result

        keeper = WebEnv(settings)  # keeps the server running between the tasks
        try:
            with ThreadPoolExecutor(at_once) as workers:
                return list(workers.map(run_task, tasks))
        finally:
            keeper.close()


def table(results: list[Result]) -> str:
    """Return a table with one line per task and the total."""
    width = max(len(result.task) for result in results)
    lines = [f"{'task':{width}}  full reward  mean reward  actions  problems"]
    for result in results:
        count = len(result.episodes)
        mean = sum(e.reward or 0 for e in result.episodes) / count
        actions = sum(e.actions for e in result.episodes) / count
        problems = {e.problem: e.seed for e in result.episodes if not e.success}
        listed = "; ".join(f"{problem} (seed {seed})" for problem, seed in problems.items())
        lines.append(
            f"{result.task:{width}}  {result.successes:5}/{count:<5}  {mean:11.2f}"
            f"  {actions:7.1f}  {listed}".rstrip()
        )
    episodes = sum(len(result.episodes) for result in results)
    successes = sum(result.successes for result in results)
    perfect = sum(result.successes == len(result.episodes) for result in results)
    lines.append(
        f"{successes}/{episodes} episodes ({successes / episodes:.1%}), "
        f"{perfect}/{len(results)} tasks without a failure"
    )
    return "\n".join(lines)
