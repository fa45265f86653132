"""The read-only projections of a session's log that prompts show."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.agent_settings import AgentSettings
from ck_pro.language import text_of
from ck_pro.session import AgentSession
from ck_pro.session.observed import observation_text
from ck_pro.session.rows import Step

_MAX_FILES = 50
_MAX_LOOKED_AT = 2000
_MAX_PERIOD = 3
_OMITTED = "(Earlier steps omitted.)"
_OBJECT_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class History:
    """What the prompts of one run show of its finished steps.

    A finished step never changes, so each is rendered once: the cost of a step does not grow with
    their number.

    Args:
        agent: gives `language`, `recent_steps`, `history_chars`, `observation_chars`.
        session: the log.
    """

    def __init__(self, agent: AgentSettings, session: AgentSession):
        self._agent, self._session = agent, session
        self._shown: list[list[dict[str, Any]]] = []
        self._texts: list[str] = []
        self._signatures: list[tuple[str, ...]] = []
        self._window = Window(agent.history_chars)

    def messages(self) -> list[dict[str, Any]]:
        """The finished steps inside the window as chat messages, oldest first."""
        first = self._first()
        window = [*itertools.chain.from_iterable(self._shown[first:])]
        return [{"role": "user", "content": _OMITTED}, *window] if first else window

    def steps(self) -> list[Step]:
        """The finished steps inside the window, oldest first."""
        first = self._first()
        return self._session.steps[first : len(self._shown)]

    def text(self) -> str:
        """The same as one text."""
        first = self._first()
        texts = self._texts[first:]
        return "\n\n".join([_OMITTED, *texts] if first else texts)

    def _first(self) -> int:
        """Index of the first step that is shown."""
        self._catch_up()
        recent = self._agent.recent_steps
        return self._window.first if recent is None else max(0, len(self._shown) - recent)

    def repeats(self) -> int:
        """How often the last steps repeat: the same code, world and observation, in a cycle of up
        to three steps; 1 when they do not, 0 when there are none."""
        self._catch_up()
        done = self._signatures
        if not done:
            return 0
        periods = range(1, _MAX_PERIOD + 1)
        return max((_in_cycle(done, period) + period) // period for period in periods)

    def notices(self) -> list[str]:
        """Return notices about repeated or failed steps for the next prompt."""
        same = self.repeats()
        if same >= 2:
            return [
                f"You repeated the same action {same} times with the same result. "
                "Try something else, or stop and explain why."
            ]
        if (count := self._same_code()) >= 4:
            return [f"The last {count} steps ran the same code. Check that they make progress."]
        if (count := self._failed_in_a_row()) >= 3:
            return [f"The last {count} steps failed. Try a smaller step or another approach."]
        return []

    def _catch_up(self) -> None:
        """Render the steps that have finished since the last time."""
        steps, agent = self._session.steps, self._agent
        finished = len(steps) - (bool(steps) and not steps[-1]["action"]["observation"])
        for step in steps[len(self._shown) : finished]:
            text = observation_text(step["action"]["observation"])
            shown = agent.language.history(step, shortened(text, agent.observation_chars))
            texts = [text_of(m["content"]) for m in shown]
            self._shown.append(shown)
            self._texts.append("\n\n".join(texts))
            self._window.add(sum(map(len, texts)))
            self._signatures.append(_signature(step["action"], text))

    def _same_code(self) -> int:
        done = [(code,) for code, *_ in self._signatures[-1:]]
        if not done or not done[0][0]:
            return 0
        count = 0
        for code, *_ in reversed(self._signatures):
            if code != done[0][0]:
                break
            count += 1
        return count

    def _failed_in_a_row(self) -> int:
        count = 0
        for step in reversed(self._session.steps):
            if step["action"]["observation"] and "error" not in step["action"]:
                break
            count += "error" in step["action"]
        return count


class Window:
    """Which steps are shown, unless their number is fixed.

    It grows to `budget` characters and then drops its older half at once: prompts stay prefixes of
    each other but for that rare jump.

    Attributes:
        first: index of the first step that is shown.
    """

    def __init__(self, budget: int):
        self.first = 0
        self._budget, self._size = budget, 0
        self._sizes: list[int] = []

    def add(self, size: int) -> None:
        """Take one more step into account; the newest one is always shown."""
        self._sizes.append(size)
        self._size += size
        if self._size > self._budget:
            while self._size > self._budget // 2 and self.first < len(self._sizes) - 1:
                self._size -= self._sizes[self.first]
                self.first += 1


def shortened(text: str, limit: int) -> str:
    """`text` with its middle cut out, and said so, if it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters omitted ...]\n{text[-half:]}"


def _in_cycle(done: Sequence[tuple[str, ...]], period: int) -> int:
    """How many of the last entries equal the one `period` before them."""
    count = 0
    while count + period < len(done) and done[-1 - count] == done[-1 - count - period]:
        count += 1
    return count


def _signature(action: Mapping[str, Any], seen: str) -> tuple[str, ...]:
    """What is the same in two steps that did the same: code, observation, world."""
    world = [str(v) for k, v in sorted(action.items()) if k.endswith("state_before")]
    return (" ".join(action["code"].split()), _OBJECT_ADDRESS.sub("0x", seen), *world)


def files_in(folder: Path) -> list[str]:
    """Names of the files in a working directory, relative, sorted; at most 50 are told.

    Looks at no more than 2,000 of them, so that a large tree costs no more than a small one.
    """
    files = _files(folder)
    found = list(itertools.islice(files, _MAX_LOOKED_AT))
    whole = next(files, None) is None
    found.sort()
    extra = len(found) - _MAX_FILES
    if extra <= 0:
        return found
    return [*found[:_MAX_FILES], f"(and {extra}{'' if whole else ' or'} more)"]


def _files(folder: Path) -> Iterator[str]:
    """Paths of the files below a folder, relative; links are not followed."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(folder / inside) as entries:
                for entry in entries:
                    name = f"{inside}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{name}/")
                    elif entry.is_file():
                        yield name
        except OSError:  # gone meanwhile, or closed to us
            continue
