"""Select the tries and model calls that become training rows."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ck_pro.exceptions import InputError
from ck_pro.model import estimate_tokens
from ck_pro.trajectory.reading.attempts import Try, session_key, value_at
from ck_pro.trajectory.reading.big_json import plain
from ck_pro.trajectory.reading.messages import text_of
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
"""Phases of the runner's calls about a finished try; no agent makes them."""
_LABEL_KEYS = {"id", "session", "agent", "agent_path", "phase", "step", "try"}


@dataclass(frozen=True)
class Condition:
    """A condition on a row: `PATH OP VALUE`, such as `eval.corr>=1` or `feedback~too slow`.

    `~` and `!~` search for a regular expression. The other operators compare numbers with numbers
    and text with text. A row without a value at PATH matches only `!=` and `!~`.
    """

    path: str
    op: str
    value: Any

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Parse a condition.

        Raises:
            InputError: the text is not a condition.
        """
        found = _CONDITION.fullmatch(text)
        if found is None or not found[3]:
            raise InputError(f"'{text}' is not a condition; write PATH OP VALUE: eval.corr>=1")
        path, op, raw = found.groups()
        if op in ("~", "!~"):
            try:
                return cls(path, op, re.compile(raw, re.IGNORECASE))
            except re.error as e:
                raise InputError(f"'{text}': '{raw}' is not a regular expression: {e}") from None
        try:
            value = json.loads(raw)
        except ValueError:
            value = raw
        return cls(path, op, value)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row matches."""
        value = value_at(row, self.path)
        if self.op in ("~", "!~"):
            text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
            found = value is not None and self.value.search(text) is not None
            return found == (self.op == "~")
        if value is None:
            return self.op == "!=" and self.value is not None
        if isinstance(value, str) != isinstance(self.value, str):
            value, expected = _as_number(value), _as_number(self.value)
        else:
            expected = self.value
        try:
            return _COMPARE[self.op](value, expected)
        except TypeError:
            return False


def _as_number(value: Any) -> Any:
    """Convert a text to a number if possible."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


@dataclass(frozen=True)
class Label:
    """A line of a labels file: include or exclude the calls that match its keys."""

    include: bool
    keys: Mapping[str, Any]

    def names(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a call with this metadata matches."""
        return all(metadata[k] == v for k, v in self.keys.items())


class Labels:
    """Labels of single steps, from a file written by a person or a program.

    Each line is an object: `"label"` is "include" or "exclude", and the other keys select calls:
    `id` (of the task), `session`, `agent`, `agent_path`, `phase`, `step`, `try`. If several lines
    match a call, the last applies.
    """

    def __init__(self, lines: Sequence[Label]):
        self._by_id: dict[Any, list[tuple[int, Label]]] = {}
        for n, label in enumerate(lines):
            self._by_id.setdefault(label.keys.get("id"), []).append((n, label))

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Read a labels file.

        Raises:
            InputError: the file cannot be read, or a line is not a label.
        """
        try:
            lines = path.read_text("utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as e:
            reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
            raise InputError(f"cannot read the labels {path}: {reason}") from None
        found = enumerate(lines, 1)
        return cls([_label(f"{path}, line {n}", line) for n, line in found if line.strip()])

    def verdict(self, metadata: Mapping[str, Any]) -> bool | None:
        """Return True to include, False to exclude, None if no line matches the call."""
        facts = {**metadata, "id": metadata["task_id"]}
        lines = sorted(
            (*self._by_id.get(facts["id"], ()), *self._by_id.get(None, ())),
            key=lambda line: -line[0],
        )
        return next((label.include for _, label in lines if label.names(facts)), None)


def _label(where: str, line: str) -> Label:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("label") not in ("include", "exclude"):
        raise InputError(f'{where}: a label is an object with "label": "include" or "exclude"')
    keys = {k: v for k, v in data.items() if k != "label"}
    unknown = sorted(set(keys) - _LABEL_KEYS)
    if unknown:
        known = ", ".join(sorted(_LABEL_KEYS))
        raise InputError(f"{where}: unknown key '{unknown[0]}'; known keys: {known}")
    if "id" in keys:
        keys["id"] = str(keys["id"])
    return Label(data["label"] == "include", keys)


@dataclass(frozen=True)
class FilterSettings:
    """What to keep.

    The defaults drop duplicates, judge calls, replies that the agent could not parse, and
    sub-sessions that failed or were not chosen.

    Args:
        score_from: path of the score in a row.
        status: statuses of the try's main session; empty means any.
        min_score, max_score: range of the try's score; either drops tries without a score.
        where: conditions that the row must match, all of them.
        best: number of tries per task: highest score first, then fewest steps.
        agents: names of agents, or paths such as "ck_agent/web_agent"; empty means any.
        phases: "plan", "action", "end", "tool:NAME"; empty means any.
        judges: the runner's calls about tries (`JUDGES`); those named in `phases` stay.
        labels, unlabelled: see `Labels`; `unlabelled` is for calls that no line matches.
        failed_subs: calls of failed sub-sessions, and of sessions below them.
        not_chosen: calls of a sub-agent's tries that its caller did not choose.
        errors: calls of steps whose action failed.
        unreadable: calls whose reply the agent could not fully parse.
        duplicates: repeated calls with equal prompt and reply.
        duplicate_reward: `reward` of the row that remains of equal calls: that of the first call,
            or the highest, lowest or mean known reward.
        min_chars, max_chars: length of prompt and reply together.
        max_tokens: estimated tokens of both together.
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
        """Whether a row's reward is computed from several calls."""
        return self.duplicates == "drop" and self.duplicate_reward != "first"


@dataclass
class Filters:
    """The filters of one pass over the input; they remember calls to find duplicates.

    Args:
        settings: what to keep.
        chosen: ordinals of the tries that `best` keeps; None if `best` is off.
    """

    settings: FilterSettings
    chosen: frozenset[int] | None = None
    _seen: set[bytes] = field(default_factory=set)
    _paths: set[str] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)

    def observe(self, found: Try | Call) -> None:
        """Note what a try or a call of the input has, for `unmatched`."""
        if isinstance(found, Try):
            paths = (self.settings.score_from, *(c.path for c in self.settings.where))
            unseen = [path for path in paths if path not in self._paths]
            self._paths.update(p for p in unseen if value_at(found.row, p) is not None)
        else:
            self._names.update((found.phase, found.agent_path[-1], "/".join(found.agent_path)))

    def unmatched(self) -> list[str]:
        """Return a line for each path or name that no observed try or call has."""
        s = self.settings
        paths = [("--where", c.path) for c in s.where]
        if s.score_from != FilterSettings.score_from:
            paths.append(("--score-from", s.score_from))
        names = [*(("--agent", a) for a in s.agents), *(("--phase", p) for p in s.phases)]
        wrong = [f"{o} {path}: no row has it" for o, path in paths if path not in self._paths]
        for option, name in names:
            if name not in self._names:
                near = difflib.get_close_matches(name, sorted(self._names), n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                wrong.append(f"{option} {name}: no model call has it{hint}")
        return list(dict.fromkeys(wrong))

    def try_refusal(self, attempt: Try, ordinal: int = -1) -> str | None:
        """Return the name of the filter that drops a try; None to keep it.

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
        """Return the name of the filter that drops a call; None to keep it."""
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
        """Return whether a try is a duplicate; for formats of whole runs."""
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
    """Estimate the tokens of prompt and reply, with images, as `ck_pro.model` does."""
    return estimate_tokens(call.prompt), estimate_tokens([call.reply])


def _outside(value: float | None, low: float | None, high: float | None) -> bool:
    if low is None and high is None:
        return False
    if value is None:
        return True
    return (low is not None and value < low) or (high is not None and value > high)
