"""The kind of a run's ending, and the step at which a failed run went wrong.

Both are heuristics over the row: status, stop reason, errors, observations and pages. Each result
has the text on which it is based. See docs/analysis.md for the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ck_web.page.notices import page_notices

if TYPE_CHECKING:
    from ck_main.analysis.facts import RunFacts

RIGHT, UNSCORED, WRONG = "right", "no score", "wrong"
GAVE_UP, LIMIT, ERROR = "gave up", "limit", "error"
BLOCKED, PERSON, INTERRUPTED = "blocked by page", "person needed", "interrupted"
KINDS = (RIGHT, UNSCORED, WRONG, GAVE_UP, LIMIT, ERROR, BLOCKED, PERSON, INTERRUPTED)
FAILURES = KINDS[2:]
"""Kinds of failed runs."""
NO_SIGN = "no sign"

_OF_REASON = {
    **dict.fromkeys(("steps", "time", "tokens", "money", "stuck"), LIMIT),
    **dict.fromkeys(("model_failure", "environment_failure", "internal_error"), ERROR),
    **dict.fromkeys(("human", "ambiguity", "guard"), PERSON),
    "lease_expired": ERROR,
    "rejected": GAVE_UP,
    "page_refused": BLOCKED,
    "cancelled": INTERRUPTED,
}
_OF_STATUS = {
    **dict.fromkeys(("human-intervention", "ambiguity", "sensitive-action"), PERSON),
    "in_progress": INTERRUPTED,
    "problem": ERROR,
}
_GIVEN_UP = re.compile(
    r"(?:not available|unavailable|unknown|n/?a|none|no answer|not found|"
    r"(?:it )?(?:cannot|can't|could not) be (?:determined|done|found|answered)|"
    r"(?:i (?:was )?|)(?:unable to|could(?: not|n't)|cannot|can't) .{0,80})[.!]?",
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"HTTP status (?:401|403|407|429|451|503)\b[^\n]{0,120}"
    r"|the page shows a captcha[^\n]{0,60}|the page asks for a login[^\n]{0,40}"
    r"|(?:access denied|too many requests|are you a (?:human|robot)|unusual traffic)[^\n]{0,80}",
    re.IGNORECASE,
)
_LAST = 3
"""Number of last steps in which a blocking page counts."""
_MIN_GOLD = 3
_EVIDENCE_CHARS = 240


@dataclass(frozen=True)
class Moment:
    """What one step of a run shows; of all agents, in the order in which the steps ended.

    Args:
        agent: names of the agents from the main agent down, joined by "/".
        sid, step: session and index of the step.
        error: type of the error of its action.
        unreadable: why its reply could not be read.
        repeats: index of the step of this session with the same code.
        failed: how a sub-agent that it called failed.
        code: the code of its action.
        text, page: return its observation, and the page before it.
    """

    agent: str
    sid: str
    step: int
    error: str = ""
    unreadable: str = ""
    repeats: int | None = None
    failed: str = ""
    code: str = ""
    text: Callable[[], str] = str
    page: Callable[[], str] = str


@dataclass(frozen=True)
class WrongTurn:
    """The step at which a run went wrong, by a heuristic.

    Args:
        agent, sid, step: see `Moment`.
        sign: the rule that applied: "right answer seen", "trouble until the end" or "no sign".
        evidence: the text on which it is based; "" for "no sign".
    """

    agent: str
    sid: str
    step: int
    sign: str
    evidence: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return vars(self).copy()


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Args:
        kind: one of `KINDS`.
        detail: which limit, error or reason.
        evidence: the text on which the kind is based.
        wrong: where a failed run went wrong.
    """

    kind: str
    detail: str = ""
    evidence: str = ""
    wrong: WrongTurn | None = None

    @property
    def failed(self) -> bool:
        """Whether the run failed."""
        return self.kind in FAILURES


def ending_of(
    run: RunFacts, moments: Sequence[Moment], question: str, answer: str, good: float
) -> Ending:
    """Classify the ending of a run.

    Args:
        run: its facts.
        moments: its steps.
        question, answer: texts of the task and of its answer.
        good: lowest score of a right answer.
    """
    if run.score is not None and run.score >= good:
        return Ending(RIGHT)
    kind, detail, evidence = _kind(run, answer)
    if kind in (WRONG, GAVE_UP, LIMIT) and (block := _block(moments)):
        kind, detail, evidence = BLOCKED, detail or kind, block
    if kind not in FAILURES:
        return Ending(kind, detail, evidence)
    return Ending(kind, detail, evidence, _wrong_turn(run, moments, question, answer))


def _kind(run: RunFacts, answer: str) -> tuple[str, str, str]:
    reason, message = run.stop_reason, run.message
    if run.status != "done":
        kind = _OF_REASON.get(reason) or _OF_STATUS.get(run.status, ERROR)
        return kind, reason or run.status, _short(message)
    if not answer.strip():
        return GAVE_UP, "no answer", "it completed with an empty answer"
    if run.score is None:
        return UNSCORED, "", ""
    if len(answer) < 120 and _GIVEN_UP.fullmatch(answer.strip()):
        return GAVE_UP, "says so", _short(f"answer: {answer}")
    return WRONG, "", _short(f"answer: {answer!r}, right: {run.gold!r}")


def _block(moments: Sequence[Moment]) -> str:
    """Return a sign of a blocking page in the last steps; "" without one."""
    for moment in reversed(moments[-_LAST:]):
        if found := _BLOCK.search(moment.text()):
            return _short(found[0])
        tree = moment.page()
        notices = [n for n in page_notices(tree) if "error page" not in n] if tree else []
        if notices:
            return _short(notices[0])
    return ""


def _wrong_turn(
    run: RunFacts, moments: Sequence[Moment], question: str, answer: str
) -> WrongTurn | None:
    if not moments:
        return None
    seen = _first_with_answer(moments, run.gold, question, answer)
    if seen is not None:
        at, line = seen
        return _turn(at, "right answer seen", f"its observation has the right answer: {line}")
    at_end = len(moments)
    if run.status == "done" and not _trouble(moments[-1]):
        at_end -= 1  # the step that answered
    first = at_end
    while first > 0 and _trouble(moments[first - 1]):
        first -= 1
    if first < at_end:
        return _turn(moments[first], "trouble until the end", _trouble(moments[first]))
    return _turn(moments[-1], NO_SIGN, "")


def _turn(moment: Moment, sign: str, evidence: str) -> WrongTurn:
    return WrongTurn(moment.agent, moment.sid, moment.step, sign, _short(evidence))


def _trouble(moment: Moment) -> str:
    """Describe the trouble in a step; "" without any."""
    if moment.unreadable:
        return f"the reply could not be read: {moment.unreadable}"
    if moment.error:
        last = moment.text().strip().rpartition("\n")[2]
        return last if moment.error in last else f"{moment.error}: {last}"
    if moment.failed:
        return moment.failed
    if moment.repeats is not None:
        return f"the same code as in step {moment.repeats}: {moment.code.splitlines()[0]}"
    if found := _BLOCK.search(moment.text()):
        return found[0]
    return ""


def _first_with_answer(
    moments: Sequence[Moment], gold: str | None, question: str, answer: str
) -> tuple[Moment, str] | None:
    """Return the first step that showed the right answer, if the run gave another one."""
    wanted = " ".join((gold or "").casefold().split())
    if len(wanted) < _MIN_GOLD or wanted in question.casefold() or wanted in answer.casefold():
        return None
    pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    for moment in moments:
        text = moment.text()
        if wanted not in text.casefold():
            continue
        for line in text.splitlines():
            if pattern.search(line.casefold()):
                return moment, line.strip()
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EVIDENCE_CHARS else text[: _EVIDENCE_CHARS - 3] + "..."
