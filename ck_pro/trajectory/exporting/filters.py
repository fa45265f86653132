"""Which tries and model calls become training rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ck_pro.exceptions import InputError
from ck_pro.model import estimate_tokens
from ck_pro.trajectory.formats.chat import text_of
from ck_pro.trajectory.reading.attempts import Try, session_key, value_at
from ck_pro.trajectory.reading.big_json import plain
from ck_pro.trajectory.reading.model_calls import Call

_CONDITION = re.compile(
    r"\s*([\w.\-]+(?: [\w.\-]+)*)\s*(==|!=|>=|<=|>|<|!~|~)\s*(.*?)\s*", re.DOTALL
)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    ">=": lambda a, b: bool(a >= b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    "<": lambda a, b: bool(a < b),
}
JUDGES = ("tool:judge", "tool:reflect", "tool:choose")
"""Phases of the runner's own calls, which ask about a try that ended: no agent makes them."""
_LABEL_KEYS = {"id", "session", "agent", "agent_path", "phase", "step", "try"}


@dataclass(frozen=True)
class Condition:
    """A condition on a row: `PATH OP VALUE`, such as `eval.corr>=1` or `feedback~too slow`.

    `~` and `!~` search a regular expression; the other operators compare numbers with numbers and
    text with text. A row that has nothing at PATH meets only `!=` and `!~`.
    """

    path: str
    op: str
    value: Any

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read one.

        Raises:
            InputError: it has not the form.
        """
        found = _CONDITION.fullmatch(text)
        if found is None or not found[3]:
            raise InputError(f"'{text}' is no condition; write PATH OP VALUE, as in eval.corr>=1")
        path, op, raw = found.groups()
        if op in ("~", "!~"):
            try:
                return cls(path, op, re.compile(raw, re.IGNORECASE))
            except re.error as e:
                raise InputError(f"'{text}': '{raw}' is no regular expression: {e}") from None
        try:
            value = json.loads(raw)
        except ValueError:
            value = raw
        return cls(path, op, value)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row meets it."""
        given = value_at(row, self.path)
        if self.op in ("~", "!~"):
            text = given if isinstance(given, str) else json.dumps(plain(given), ensure_ascii=False)
            found = given is not None and self.value.search(text) is not None
            return found == (self.op == "~")
        if given is None:
            return self.op == "!=" and self.value is not None
        if isinstance(given, str) != isinstance(self.value, str):
            given, wanted = _as_number(given), _as_number(self.value)
        else:
            wanted = self.value
        try:
            return _COMPARE[self.op](given, wanted)
        except TypeError:
            return False


def _as_number(value: Any) -> Any:
    """A text as the number that it writes down, if it does."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


@dataclass(frozen=True)
class Label:
    """A line of a labels file: which calls it names, and whether they are wanted."""

    include: bool
    keys: Mapping[str, Any]

    def names(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a call with this metadata is among those named."""
        return all(metadata[k] == v for k, v in self.keys.items())


class Labels:
    """Labels of single steps, made by a person or a program.

    Each line of the file is an object: `"label"`: "include" or "exclude", and what names the
    calls: any of `id` (of the task), `session`, `agent`, `agent_path`, `phase`, `step`, `try`. Of
    several lines that name a call the last counts.
    """

    def __init__(self, lines: Sequence[Label]):
        self._by_id: dict[Any, list[tuple[int, Label]]] = {}
        for n, label in enumerate(lines):
            self._by_id.setdefault(label.keys.get("id"), []).append((n, label))

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Read a labels file.

        Raises:
            InputError: it cannot be read, or a line of it is no label.
        """
        try:
            lines = path.read_text("utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as e:
            said = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
            raise InputError(f"cannot read the labels {path}: {said}") from None
        found = enumerate(lines, 1)
        return cls([_label(f"{path}, line {n}", line) for n, line in found if line.strip()])

    def verdict(self, metadata: Mapping[str, Any]) -> bool | None:
        """True: include; False: exclude; None: no line names the call."""
        facts = {**metadata, "id": metadata["task_id"]}
        lines = sorted(
            (*self._by_id.get(facts["id"], ()), *self._by_id.get(None, ())),
            key=lambda line: -line[0],
        )
        return next((label.include for _, label in lines if label.names(facts)), None)


def _label(where: str, line: str) -> Label:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or given.get("label") not in ("include", "exclude"):
        raise InputError(f'{where}: a label is an object with "label": "include" or "exclude"')
    keys = {k: v for k, v in given.items() if k != "label"}
    unknown = sorted(set(keys) - _LABEL_KEYS)
    if unknown:
        known = ", ".join(sorted(_LABEL_KEYS))
        raise InputError(f"{where}: '{unknown[0]}' names no call; known are: {known}")
    if "id" in keys:
        keys["id"] = str(keys["id"])
    return Label(given["label"] == "include", keys)


@dataclass(frozen=True)
class FilterSettings:
    """What to keep; the defaults keep everything but duplicates, judges, replies that the agent
    could not read, and sub-sessions that failed or were not chosen.

    Args:
        score_from: path of the score in a row.
        status: of the try's main session; any when empty.
        min_score, max_score: of the try; one without a score is dropped by either.
        where: conditions that the row must meet, all of them.
        best: keep so many tries of each task: the highest scores, of equal ones the fewest steps.
        agents: names of agents, or paths such as "ck_agent/web_agent"; any when empty.
        phases: "plan", "action", "end", "tool:NAME"; any when empty.
        judges: the runner's calls about tries (`JUDGES`); those that `phases` names are kept.
        labels, unlabelled: see `Labels`; what becomes of calls that no line names.
        failed_subs: calls of sub-sessions that failed, or are below one that failed.
        not_chosen: calls of tries of a sub-agent whose caller took another one.
        errors: calls of steps whose action ended in an error.
        unreadable: calls whose reply the agent could not read, or only in part.
        duplicates: calls of equal prompt and reply after the first.
        duplicate_reward: the `reward` of the row that stays for several equal calls: that of the
            first, or the highest, the lowest or the mean of those that have one.
        min_chars, max_chars: of prompt and reply together.
        max_tokens: of both together, by our estimate.
    """

    score_from: str = "eval.corr"
    status: Sequence[str] = ()
    min_score: float | None = None
    max_score: float | None = None
    where: Sequence[Condition] = ()
    best: int | None = None
    agents: Sequence[str] = ()
    phases: Sequence[str] = ()
    judges: Literal["keep", "drop"] = "drop"
    labels: Labels | None = None
    unlabelled: Literal["keep", "drop"] = "keep"
    failed_subs: Literal["keep", "drop"] = "drop"
    not_chosen: Literal["keep", "drop"] = "drop"
    errors: Literal["keep", "drop"] = "keep"
    unreadable: Literal["keep", "drop"] = "drop"
    duplicates: Literal["keep", "drop"] = "drop"
    duplicate_reward: Literal["first", "max", "min", "mean"] = "first"
    min_chars: int | None = None
    max_chars: int | None = None
    max_tokens: int | None = None

    @property
    def of_calls(self) -> bool:
        """Whether any filter of single calls is set."""
        names = ("agents", "phases", "labels", "min_chars", "max_chars", "max_tokens")
        return any(getattr(self, n) for n in names) or self.errors == "drop" or self.pools_rewards

    @property
    def pools_rewards(self) -> bool:
        """Whether a row's reward is made of those of several calls."""
        return self.duplicates == "drop" and self.duplicate_reward != "first"


@dataclass
class Filters:
    """The filters of one pass over the input; those against duplicates remember what came by.

    Args:
        settings: what to keep.
        chosen: ordinals of the tries that `best` keeps; None when it is off.
    """

    settings: FilterSettings
    chosen: frozenset[int] | None = None
    _seen: set[bytes] = field(default_factory=set)

    def try_refusal(self, attempt: Try, ordinal: int = -1) -> str | None:
        """The filter that drops a try as a whole, None if it is kept.

        Args:
            attempt: the try.
            ordinal: its number among all tries of the input.
        """
        s = self.settings
        if s.status and attempt.status not in s.status:
            return "status"
        if _outside(attempt.score, s.min_score, s.max_score):
            return "score"
        if not all(c.holds(attempt.row) for c in s.where):
            return "where"
        if self.chosen is not None and ordinal not in self.chosen:
            return "best of several tries"
        return None

    def call_refusal(self, call: Call) -> str | None:
        """The filter that drops a call, None if it is kept."""
        s = self.settings
        if s.failed_subs == "drop" and not call.healthy:
            return "failed sub-session"
        if s.not_chosen == "drop" and not call.chosen:
            return "try that was not chosen"
        if s.agents and not {call.agent_path[-1], "/".join(call.agent_path)} & set(s.agents):
            return "agent"
        if s.phases and call.phase not in s.phases:
            return "phase"
        if s.judges == "drop" and call.phase in JUDGES and not s.phases:
            return "judge"
        if s.errors == "drop" and call.error:
            return "error"
        if s.unreadable == "drop" and call.unreadable:
            return "unreadable reply"
        if s.labels is not None:
            verdict = s.labels.verdict(call.metadata)
            if verdict is False or (verdict is None and s.unlabelled == "drop"):
                return "labels"
        if self._wrong_length(call):
            return "length"
        if s.duplicates == "drop" and self._is_known(call.prompt_key + call.reply_key):
            return "duplicate"
        return None

    def is_repeated(self, attempt: Try) -> bool:
        """Whether a try was seen before; for formats of whole runs."""
        return self.settings.duplicates == "drop" and self._is_known(session_key(attempt.session))

    def _wrong_length(self, call: Call) -> bool:
        s = self.settings
        if s.max_tokens is not None and sum(tokens_of(call)) > s.max_tokens:
            return True
        if s.min_chars is None and s.max_chars is None:
            return False
        chars = sum(len(text_of(m)) for m in (*call.prompt, call.reply))
        return _outside(chars, s.min_chars, s.max_chars)

    def _is_known(self, key: bytes) -> bool:
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def tokens_of(call: Call) -> tuple[int, int]:
    """About how many tokens prompt and reply have; images count as `ck_pro.model` counts them."""
    return estimate_tokens(call.prompt), estimate_tokens([call.reply])


def _outside(value: float | None, low: float | None, high: float | None) -> bool:
    if low is None and high is None:
        return False
    if value is None:
        return True
    return (low is not None and value < low) or (high is not None and value > high)
