"""The finished steps of a session as prompts show them: in full, or a short trace of each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ck_pro.agent_settings import AgentSettings
from ck_pro.exceptions import CopiedExample
from ck_pro.language import fenced, message_text
from ck_pro.session import AgentSession
from ck_pro.session.memory import Memory
from ck_pro.session.observed import observation_text
from ck_pro.session.rows import Step

_OF_LAST_ACTION = ("action_string", "error_message")
_MAX_PERIOD = 3
_REPEAT_CHARS = 1500
_TRACE_SHARE, _MIN_TRACE = 8, 4000  # characters for traces: a part of `history_chars`
_END_SHARE = 3  # the end phase shows all steps up to this multiple of `history_chars`
_MEMORY_SHARE = 2  # characters for the memory of earlier runs: a part of `history_chars`
_MEMORY = "# Memory of earlier runs"
_OF_ONE_STEP = re.compile(r"0x[0-9a-f]{6,}|(?<=File \"<step )\d+(?=>\")")
"""Parts of an observation that differ between equal steps: addresses, and numbers in tracebacks."""
OMITTED = "(Earlier steps omitted.)"
_PARTS, _PART_CHARS, _MIN_CHARS = 3, 120, 20
_RESULT_CHARS = 200
_CODE_LINES = 2
_UNINFORMATIVE = re.compile(r"\s*(?:#|import\s|from\s+\S+\s+import\s|$)")


class History:
    """The finished steps of one run, as prompts show them.

    A finished step never changes, so it is rendered once. The cost of a step therefore does not
    grow with their number. Steps before the window leave a short trace each.

    Args:
        agent: has the settings `language`, `recent_steps`, `history_chars`, `observation_chars`.
        session: the session of the run.
    """

    def __init__(self, agent: AgentSettings, session: AgentSession):
        self._agent, self._session = agent, session
        self._shown: list[list[dict[str, Any]]] = []
        self._texts: list[str] = []
        self._traces: list[StepTrace] = []
        self._trace_text = (0, "")
        self._signatures: list[tuple[str, ...]] = []
        self._window = Window(agent.history_chars)
        self._memory = _memory_text(session.info.get("memory"), agent.history_chars)

    def prompt_values(self) -> dict[str, Any]:
        """Return the template values: the steps (`shown_steps`), and what is notable about them.

        `notices` has lines about repeated or failed steps, `repeats` is whether the last steps form
        a cycle, `copied_example` is whether the model copied the example of the prompt in any step,
        and `omits_steps` is whether only traces of some steps are there.
        """
        cycle = self._cycle()
        return {
            **self.shown_steps(cycle),
            "notices": self._notices(cycle),
            "repeats": cycle.repeats >= 2,
            "copied_example": self._copied_example(),
            "omits_steps": self._first > 0,
        }

    def shown_steps(self, cycle: Cycle | None = None) -> dict[str, Any]:
        """Return the steps inside the window: as data, as chat messages, and as one text.

        A cycle of equal steps at the end is not in the messages: a weak model would continue the
        pattern. A notice shows it once.
        """
        end = self._end_of_messages(cycle or self._cycle())
        first = self._first
        before, after = self._around(first)
        messages, starts = _as_messages(before), {}
        for number in range(first, max(first, end)):
            starts[number] = len(messages)
            messages += self._shown[number]
        return {
            "recent_steps": self._session.steps[first : len(self._shown)],
            "history": [*messages, *_as_messages(after)],
            "history_starts": starts,
            "recent_steps_str": "\n\n".join([*before, *self._texts[first:], *after]),
        }

    def _end_of_messages(self, cycle: Cycle) -> int:
        """Return the index after the last step to show as messages, before a cycle."""
        if cycle.repeats < 2:
            return len(self._shown)
        # the first step of a turn has the user's message
        return max(len(self._shown) - cycle.steps, cycle.turn_start + bool(self._session.turns))

    def _around(self, first: int) -> tuple[list[str], list[str]]:
        """Return the texts before and after the steps from `first` on: memory, traces, message."""
        before = [self._memory] if self._memory else []
        if first:
            before.append(self._trace(first))
        turns = self._session.turns
        turn = turns[-1] if turns else None
        if turn is not None and turn["step"] < first:  # the current request must stay visible
            before.append(_user_message(turn["text"]))
        waits = turn is not None and turn["step"] >= len(self._shown)
        return before, [_user_message(turn["text"])] if turn is not None and waits else []

    def show_all(self, limit: int | None) -> bool:
        """Show all steps again, until `condense`, if they fit; return whether some were omitted.

        A fixed number of steps (`recent_steps`) stays.

        Args:
            limit: characters for the steps in the model's prompt, if known.
        """
        self._catch_up()
        if not self._first or self._agent.recent_steps is not None:
            return False
        most = _END_SHARE * self._agent.history_chars
        return self._window.show_all(most if limit is None else min(most, limit))

    def _trace(self, first: int) -> str:
        """Return the text for the steps before `first`; equal until the window moves.

        With `recent_steps` it would grow at every step, so it has no traces.
        """
        if self._agent.recent_steps is not None:
            return OMITTED
        if self._trace_text[0] != first:
            limit = max(_MIN_TRACE, self._agent.history_chars // _TRACE_SHARE)
            self._trace_text = (first, trace_message(self._traces[:first], limit))
        return self._trace_text[1]

    @property
    def _first(self) -> int:
        """The index of the first step inside the window."""
        recent = self._agent.recent_steps
        return self._window.first if recent is None else max(0, len(self._shown) - recent)

    def is_full(self) -> bool:
        """Whether the next prompt omits steps that the last one showed; see `Window`."""
        self._catch_up()
        return self._agent.recent_steps is None and self._window.is_full()

    def condense(self) -> bool:
        """Omit old steps from now on if the window is full; return whether it was."""
        full = self.is_full()
        self._window.condense()
        return full

    def repeats(self) -> int:
        """Return how often the last steps repeat, in a cycle of up to three steps.

        Steps are equal if code, environment and observation are equal. 1 means no repetition; 0
        means no steps.
        """
        return self._cycle().repeats

    def _cycle(self) -> Cycle:
        self._catch_up()
        turn_start = self._session.turn_start
        return Cycle.at_end(self._signatures[turn_start:], turn_start)

    def _notices(self, cycle: Cycle) -> list[str]:
        """Return notices about repeated or failed steps for the next prompt."""
        if cycle.repeats >= 2:
            return [self._repeated(cycle)]
        if (count := self._same_code()) >= 4:
            return [f"The last {count} steps ran the same code. Check that they make progress."]
        if (count := self._failed_in_a_row()) >= 3:
            return [f"The last {count} steps failed. Try a smaller step or another approach."]
        return []

    def _repeated(self, cycle: Cycle) -> str:
        """Return the notice about a cycle of equal steps, with one pass of it."""
        same, period = cycle.repeats, cycle.period
        names = self._agent.functions().terminal
        how = f"call {' or '.join(names)} with it" if names else "answer with it"
        steps = [s["action"] for s in self._session.steps[len(self._shown) - period :][:period]]
        shown = "\n".join(
            f"{action['code'] or action['thought']}\n-> {observation_text(action['observation'])}"
            for action in steps
        )
        return (
            f"You repeated the same {'step' if period == 1 else f'{period} steps'} {same} times "
            f"with the same result:\n{fenced(shortened(shown, _REPEAT_CHARS))}\n"
            f"If a result answers the task, {how}. Else do something different."
        )

    def _copied_example(self) -> bool:
        """Whether the model copied the example of the prompt in any step."""
        return any(s["action"].get("error") == CopiedExample.__name__ for s in self._session.steps)

    def _catch_up(self) -> None:
        """Render the steps that finished since the last call."""
        new, agent = self._session.steps[len(self._shown) :], self._agent
        if new and not new[-1]["action"]["observation"]:
            del new[-1]  # the step in progress
        if not new:
            return
        messages = {turn["step"]: turn["text"] for turn in self._session.turns}
        for step in new:
            text = observation_text(step["action"]["observation"])
            shown = agent.language.history(step, shortened(text, agent.observation_chars))
            if (number := len(self._shown)) in messages:
                text_shown = _user_message(messages[number])
                shown = [{"role": "user", "content": text_shown}, *shown]
            texts = [*map(message_text, shown)]
            self._shown.append(shown)
            self._texts.append("\n\n".join(texts))
            self._traces.append(StepTrace.of(step, text))
            self._window.add(sum(map(len, texts)))
            self._signatures.append(_signature(step["action"], text))

    def _same_code(self) -> int:
        """Return the number of last steps with the same code; 0 if the last one has no code."""
        codes = [code for code, *_ in reversed(self._signatures)]
        if not codes or not codes[0]:
            return 0
        return sum(1 for _ in itertools.takewhile(lambda code: code == codes[0], codes))

    def _failed_in_a_row(self) -> int:
        count = 0
        for step in reversed(self._session.steps):
            if step["action"]["observation"] and "error" not in step["action"]:
                break
            count += "error" in step["action"]
        return count


class Cycle(NamedTuple):
    """The equal steps at the end of a turn.

    Attributes:
        repeats: how often the last steps repeat; 1 means no repetition, 0 no steps.
        period: the number of steps that repeat, up to three.
        steps: the number of steps from the start of the cycle to the end.
        turn_start: index of the first step of the turn.
    """

    repeats: int
    period: int
    steps: int
    turn_start: int

    @classmethod
    def at_end(cls, done: Sequence[tuple[str, ...]], turn_start: int) -> Cycle:
        """Return the cycle with the most repeats, of these the shortest one.

        Args:
            done: the signatures of the turn's finished steps.
            turn_start: index of the first of them.
        """
        if not done:
            return cls(0, 1, 0, turn_start)
        found = []
        for period in range(1, _MAX_PERIOD + 1):
            steps = _in_cycle(done, period) + period
            found.append(cls(steps // period, period, steps, turn_start))
        return max(found, key=lambda cycle: cycle.repeats)


class Window:
    """The range of steps that prompts show, unless their number is fixed.

    It grows past `budget` characters; `condense` then drops its older half at once. Between these
    rare jumps each prompt is a prefix of the next one.

    Attributes:
        first: index of the first step in the window.
    """

    def __init__(self, budget: int):
        self.first = 0
        self._budget, self._size = budget, 0
        self._sizes: list[int] = []

    def show_all(self, limit: int) -> bool:
        """Show all steps again if they have at most `limit` characters; return whether they do."""
        whole = sum(self._sizes)
        if whole <= limit:
            self.first, self._size = 0, whole
        return whole <= limit

    def add(self, size: int) -> None:
        """Add a step of `size` characters; the newest step is always in the window."""
        self.condense()
        self._sizes.append(size)
        self._size += size

    def is_full(self) -> bool:
        """Whether the steps exceed the budget, and some can be dropped."""
        return self._size > self._budget and self.first < len(self._sizes) - 1

    def condense(self) -> None:
        """Drop the older half if the window is full."""
        if self.is_full():
            while self._size > self._budget // 2 and self.first < len(self._sizes) - 1:
                self._size -= self._sizes[self.first]
                self.first += 1


def _memory_text(entries: Any, limit: int) -> str:
    """Return the memory of earlier runs for prompts; "" if there is none."""
    memory = Memory(entries).text(limit // _MEMORY_SHARE) if entries else ""
    return f"{_MEMORY}\n{fenced(memory)}" if memory else ""


def _user_message(text: str) -> str:
    """Return a message that the user sent after the task, as text for prompts."""
    return f"# Message from the user\n{text}"


def shortened(text: str, limit: int) -> str:
    """Return a text; replace its middle by a note if it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters omitted ...]\n{text[-half:]}"


def _as_messages(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def _in_cycle(done: Sequence[tuple[str, ...]], period: int) -> int:
    """Return how many of the last entries equal the entry `period` places earlier."""
    count = 0
    while count + period < len(done) and done[-1 - count] == done[-1 - count - period]:
        count += 1
    return count


def _signature(action: Mapping[str, Any], seen: str) -> tuple[str, ...]:
    """Return what equal steps have in common: code, observation, state of the environment."""
    found = [v for k, v in sorted(action.items()) if k.endswith("state_before")]
    states = [_without_last_action(state) for state in found]
    return (" ".join(action["code"].split()), _OF_ONE_STEP.sub("", seen), *map(str, states))


def _without_last_action(state: Any) -> Any:
    """Return the state of an environment without the facts about the action before it."""
    if not isinstance(state, Mapping):
        return state
    return {k: v for k, v in state.items() if k not in _OF_LAST_ACTION}


@dataclass(frozen=True)
class StepTrace:
    """What is left of a step: its thought, the first lines of its code, and its result."""

    number: int
    thought: str
    code: str
    result: str

    @classmethod
    def of(cls, step: Step, observation: str) -> StepTrace:
        """Return the trace of a finished step.

        Args:
            step: the step.
            observation: its observation as text.
        """
        action = step["action"]
        lines = [line for line in action["code"].splitlines() if not _UNINFORMATIVE.match(line)]
        result = observation
        if "error" in action:  # the last line of a traceback names the error
            result = observation.rstrip().rpartition("\n")[2]
        return cls(
            step["step_idx"],
            _one_line(action["thought"], _PART_CHARS),
            _one_line("; ".join(map(str.strip, lines[:_CODE_LINES])), _PART_CHARS),
            _one_line(result, _RESULT_CHARS),
        )

    def text(self, chars: int, same_code: bool = False) -> str:
        """Return the trace in up to three lines; the result uses what the other parts leave.

        Args:
            chars: characters of a part, on average.
            same_code: whether the code is that of the step before.
        """
        thought, code = _one_line(self.thought, chars), _one_line(self.code, chars)
        if same_code:
            code = ""
        parts = [f"Step {self.number}: {thought}{' (same code)' if same_code else ''}"]
        if code:
            parts.append(f"  code: {code}")
        left = _PARTS * chars - len(thought) - len(code)
        parts.append(f"  result: {_one_line(self.result, min(left, _RESULT_CHARS))}")
        return "\n".join(parts)


def trace_message(traces: Sequence[StepTrace], limit: int) -> str:
    """Return the text that replaces omitted steps in a prompt.

    Args:
        traces: of the omitted steps, oldest first.
        limit: maximum characters. The parts of each trace get shorter, then the oldest traces are
            left out.
    """
    share = limit // max(1, len(traces)) // _PARTS
    chars = min(_PART_CHARS, max(_MIN_CHARS, share))
    kept = traces[-max(1, limit // (_PARTS * _MIN_CHARS)) :]
    codes = ["", *(trace.code for trace in kept)]
    lines = [
        trace.text(chars, same_code=bool(trace.code) and trace.code == before)
        for trace, before in zip(kept, codes, strict=False)
    ]
    if len(kept) < len(traces):
        lines.insert(0, f"Steps 0 to {kept[0].number - 1}: omitted.")
    return f"{OMITTED} Their traces:\n{fenced(chr(10).join(lines))}"


def _one_line(text: str, limit: int) -> str:
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
