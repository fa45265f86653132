"""Episodes of the conformance suite: run, and told as a table.

A scripted policy for each task sees our observation text and the task's text, and acts by action
strings alone, through `WebEnv` and a real Chromium. The page itself says the reward, to this
program and not to the policy. An episode counts when that reward is the full one.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import miniwob_choices  # noqa: F401  (registers policies, as the next ones do)
import miniwob_forms  # noqa: F401
import miniwob_mail  # noqa: F401
import miniwob_mouse  # noqa: F401
import miniwob_options  # noqa: F401
import miniwob_reading  # noqa: F401
import miniwob_values  # noqa: F401
from miniwob_pages import Pages
from miniwob_world import POLICIES, GaveUp, Over, World

from ck_pro.exceptions import CKError
from ck_web.env import WebEnv

FULL = 1.0


@dataclass
class Episode:
    """How one episode went.

    Attributes:
        seed: of the page's random numbers.
        reward: the page's raw reward, None if it said none.
        actions: how many action strings the policy wrote.
        seconds: of the policy, looking included.
        problem: why there is no full reward, as far as the policy or the page says.
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
        """How many episodes had the full reward."""
        return sum(episode.success for episode in self.episodes)


def play(env: WebEnv, pages: Pages, task: str, seed: int, say: Callable[[str], None]) -> Episode:
    """One episode: open the page, press its START, let the policy act."""
    episode = Episode(seed)
    pages.forget(task, seed)
    told = pages.begin(task, seed)
    env.step_state(f"goto {pages.url(task, seed)}")
    text = env.observe().text
    start = re.search(r"\[(\d+)\] [A-Za-z]+ 'START'", text)
    if start is None:
        say(text)
        episode.problem = "the page has no START to click"
        return episode
    env.step_state(f"click [{start[1]}]")
    if told.utterance is None:
        episode.problem = "the episode did not begin"
        return episode
    world = World(env, told, say)
    say(f"{task} {seed}: {world.task}")
    begun = time.monotonic()
    try:
        POLICIES[task](world)
        episode.problem = "the policy ended before the page did"
    except Over:
        episode.problem = "" if told.reward and told.reward >= FULL else told.reason or "wrong"
    except GaveUp as e:
        episode.problem = str(e)
    except CKError:
        raise
    except Exception as e:  # noqa: BLE001  (a policy's own fault is the result of its episode)
        episode.problem = f"fault of the policy: {type(e).__name__}: {e}"
    episode.seconds = time.monotonic() - begun
    episode.reward, episode.actions = told.reward, world.actions
    if not episode.success:
        say(env.observe().text)
    say(f"{task} {seed}: reward {episode.reward} {episode.problem}")
    return episode


def run(
    tasks: list[str],
    seeds: range,
    *,
    at_once: int = 2,
    say: Callable[[str], None] = lambda line: None,
    finished: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """All episodes, a browser for each task, `at_once` of them at a time."""
    with Pages() as pages:
        settings = {"allow": [pages.host], "keep_server_seconds": 1}

        def of_task(task: str) -> Result:
            result = Result(task)
            env = WebEnv(settings)
            try:
                for seed in seeds:
                    result.episodes.append(play(env, pages, task, seed, say))
            except CKError as e:
                result.episodes.append(Episode(seeds.stop, problem=f"failed: {e}"))
            finally:
                env.close()
            finished(result)
            return result

        holding = WebEnv(settings)  # so that the one server stays between the tasks
        try:
            with ThreadPoolExecutor(at_once) as workers:
                return list(workers.map(of_task, tasks))
        finally:
            holding.close()


def table(results: list[Result]) -> str:
    """The table that is printed: one line per task, and the total."""
    width = max(len(result.task) for result in results)
    lines = [f"{'task':{width}}  full reward  mean reward  actions  problems"]
    for result in results:
        count = len(result.episodes)
        mean = sum(e.reward or 0 for e in result.episodes) / count
        actions = sum(e.actions for e in result.episodes) / count
        problems = {e.problem: e.seed for e in result.episodes if not e.success}
        told = "; ".join(f"{problem} (seed {seed})" for problem, seed in problems.items())
        lines.append(
            f"{result.task:{width}}  {result.successes:5}/{count:<5}  {mean:11.2f}"
            f"  {actions:7.1f}  {told}".rstrip()
        )
    episodes = sum(len(result.episodes) for result in results)
    successes = sum(result.successes for result in results)
    perfect = sum(result.successes == len(result.episodes) for result in results)
    lines.append(
        f"{successes}/{episodes} episodes ({successes / episodes:.1%}), "
        f"{perfect}/{len(results)} tasks without a failure"
    )
    return "\n".join(lines)
