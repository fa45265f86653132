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
from ck_pro.trajectory.labels import Decision
from ck_pro.trajectory.labels.label_set import NO_DECISION
from ck_pro.trajectory.reading.attempts import Try, session_key, value_at
from ck_pro.trajectory.reading.big_json import plain
from ck_pro.trajectory.reading.messages import text_of
from ck_pro.trajectory.reading.model_calls import Call, Unusable

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
EXCLUDED, BAD = "excluded by label", "bad by label"


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
        labels: files of labels, in order.
        label: only calls with one of these labels; empty means any.
        unlabelled: calls without a label.
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
    labels: Sequence[Path] = ()
    label: Sequence[Literal["good", "bad", "include", "corrected"]] = ()
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
        names = ("agents", "phases", "label", "min_chars", "max_chars", "max_tokens")
        drops = "drop" in (self.errors, self.unlabelled)
        return any(getattr(self, n) for n in names) or drops or self.pools_rewards

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
        keep_bad: whether to keep calls with the label "bad", for preferences.
    """

    settings: FilterSettings
    chosen: frozenset[int] | None = None
    keep_bad: bool = False
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

    def call_refusal(self, call: Call, decision: Decision = NO_DECISION) -> str | None:
        """Return the name of the filter that drops a call; None to keep it.

        Args:
            call: the call, after `apply_labels`.
            decision: of its labels.
        """
        return (
            self._label_refusal(call, decision)
            or (self._quality_refusal(call) if call.judged is None else None)
            or self._selection_refusal(call)
        )

    def refusal(self, found: Call | Unusable, decision: Decision) -> str | None:
        """Return why a labelled call is dropped: by a filter, or as it cannot be represented."""
        if isinstance(found, Unusable):
            return EXCLUDED if decision.excluded else found.reason
        return self.call_refusal(found, decision)

    def _label_refusal(self, call: Call, decision: Decision) -> str | None:
        s = self.settings
        if decision.excluded:
            return EXCLUDED
        if decision.judgement == "bad" and not self.keep_bad:
            return BAD
        if s.label and not any(map(decision.has, s.label)):
            return "other label"
        return "no label" if s.unlabelled == "drop" and not decision.labelled else None

    def _quality_refusal(self, call: Call) -> str | None:
        """Drop by what the run says about the call; a label of the call, step or session wins."""
        s = self.settings
        if s.failed_subs == "drop" and not call.healthy:
            return "failed sub-session"
        if s.not_chosen == "drop" and not call.chosen:
            return "try that was not chosen"
        if s.errors == "drop" and call.error:
            return "error"
        if s.unreadable == "drop" and call.unreadable:
            return "unreadable reply"
        return None

    def _selection_refusal(self, call: Call) -> str | None:
        s = self.settings
        if s.agents and not {call.agent_path[-1], "/".join(call.agent_path)} & set(s.agents):
            return "agent"
        if s.phases and call.phase not in s.phases:
            return "phase"
        if s.judges == "drop" and call.phase in JUDGES and not s.phases:
            return "judge"
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
