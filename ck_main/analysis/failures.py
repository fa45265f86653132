"""The kind of a run's ending, and the step at which a failed run went wrong.

Both are heuristics over the row: status, stop reason, errors, observations and pages. Each result
has the text on which it is based. See docs/analysis.md for the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ck_main.analysis.giving_up import gives_up
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
_BLOCK = re.compile(
    r"HTTP status (?:401|403|407|429|451|503)\b[^\n]{0,120}"
    r"|the page shows a captcha[^\n]{0,60}|the page asks for a login[^\n]{0,40}"
    r"|^[^\n]{0,60}(?:access denied|too many requests|are you a (?:human|robot)|unusual traffic)"
    r"[^\n]{0,60}$",  # a short line: an article may mention it in a long one
    re.IGNORECASE | re.MULTILINE,
)
_BLOCKING_PAGE = re.compile(
    r"^\s*\[\d+\] (?:alert|heading|dialog|alertdialog|RootWebArea) '([^\n]{0,60}(?:"
    r"HTTP status (?:401|403|407|429|451|503)\b|access denied|too many requests)[^\n]{0,100})",
    re.IGNORECASE | re.MULTILINE,
)
"""The status, the title or a heading in the text of a page."""
_BLOCK_WORDS = (
    *("http status", "captcha", "asks for a login", "access denied", "too many requests"),
    *("are you a", "unusual traffic"),
)
"""Every text that `_BLOCK` matches has one of these, which are faster to find."""
_LAST = 3
"""Number of last steps in which a blocking page counts."""
_MIN_GOLD, _MAX_GOLD = 3, 500
EVIDENCE_CHARS = 240
"""Maximum length of an evidence."""


@dataclass(frozen=True)
class Wanted:
    """Finds the right answer in a text that contains `word`, in lower case."""

    word: str
    pattern: re.Pattern[str]


@dataclass
class Moment:
    """What one step of a failed run shows; of all agents, in the order in which the steps ended.

    Only short texts, as a run may have many long observations.

    Args:
        agent: names of the agents from the main agent down, joined by "/".
        sid, step: session and index of the step.
        error: type of the error of its action.
        unreadable: why its reply could not be read.
        repeats: index of the step of this session with the same code.
        failed: how a sub-agent that it called failed.
        code: the first line of its code.
        last_line: the last line of its observation.
        block: a sign of a blocking page in its observation.
        answer_line: the line of its observation with the right answer.
        page: the page before it; kept for the last steps only.
    """

    agent: str
    sid: str
    step: int
    error: str = ""
    unreadable: str = ""
    repeats: int | None = None
    failed: str = ""
    code: str = ""
    last_line: str = ""
    block: str = ""
    answer_line: str = ""
    page: str = ""

    def see(self, text: str, wanted: Wanted | None) -> None:
        """Note what the observation shows.

        Args:
            text: the observation.
            wanted: see `wanted_answer`.
        """
        self.last_line = _short(text.rstrip().rpartition("\n")[2][-2 * EVIDENCE_CHARS :])
        lower = text.lower()
        if any(word in lower for word in _BLOCK_WORDS) and (found := _BLOCK.search(text)):
            self.block = _short(found[0])
        if wanted is not None and wanted.word in lower and (hit := wanted.pattern.search(text)):
            start = text.rfind("\n", 0, hit.start()) + 1
            start = max(start, hit.start() - EVIDENCE_CHARS // 2)
            self.answer_line = _short(text[start : hit.end() + EVIDENCE_CHARS].partition("\n")[0])


def add_moment(moments: list[Moment], moment: Moment) -> None:
    """Append a moment; drop the page of the one that is no longer among the last."""
    moments.append(moment)
    if len(moments) > _LAST:
        moments[-_LAST - 1].page = ""


def wanted_answer(gold: str | None, question: str, answer: str) -> Wanted | None:
    """Return how to find the right answer, as whole words; None if a hit would say nothing.

    That is so for short answers, and those that the question or the given answer contains.
    """
    wanted = (gold or "").lower().split()
    text = " ".join(wanted)
    if len(text) < _MIN_GOLD or len(text) > _MAX_GOLD:
        return None
    if text in " ".join(question.lower().split()) or text in " ".join(answer.lower().split()):
        return None
    words = r"[ \t]+".join(map(re.escape, wanted))
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    return Wanted(wanted[0], pattern)


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


def ending_of(run: RunFacts, moments: Sequence[Moment], answer: str, good: float) -> Ending:
    """Classify the ending of a run.

    Args:
        run: its facts.
        moments: its steps, if it failed.
        answer: text of its answer.
        good: lowest score of a right answer.
    """
    if run.score is not None and run.score >= good:
        return Ending(RIGHT)
    kind, detail, evidence = _kind(run, answer)
    if kind in (WRONG, GAVE_UP, LIMIT) and (block := _block(moments)):
        kind, detail, evidence = BLOCKED, detail or kind, block
    if kind not in FAILURES:
        return Ending(kind, detail, evidence)
    return Ending(kind, detail, evidence, _wrong_turn(run, moments))


def _kind(run: RunFacts, answer: str) -> tuple[str, str, str]:
    reason, message = run.stop_reason, run.message
    if run.status != "done":
        kind = _OF_REASON.get(reason) or _OF_STATUS.get(run.status, ERROR)
        return kind, reason or run.status, _short(message)
    if not answer.strip():
        return GAVE_UP, "no answer", "it completed with an empty answer"
    if run.score is None:
        return UNSCORED, "", ""
    if gives_up(answer):
        return GAVE_UP, "says so", _short(f"answer: {answer}")
    return WRONG, "", _short(f"answer: {answer!r}, right: {run.gold!r}")


def _block(moments: Sequence[Moment]) -> str:
    """Return a sign of a blocking page in the last steps; "" without one."""
    for moment in reversed(moments[-_LAST:]):
        if moment.block:
            return moment.block
        if found := _BLOCKING_PAGE.search(moment.page):
            return _short(found[1])
        notices = page_notices(moment.page) if moment.page else []
        notices = [n for n in notices if "error page" not in n]
        if notices:
            return _short(notices[0])
    return ""


def _wrong_turn(run: RunFacts, moments: Sequence[Moment]) -> WrongTurn | None:
    if not moments:
        return None
    seen = next((m for m in moments if m.answer_line), None)
    if seen is not None:
        text = f"its observation has the right answer: {seen.answer_line}"
        return _turn(seen, "right answer seen", text)
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
        last = moment.last_line
        return last if moment.error in last else f"{moment.error}: {last}"
    if moment.failed:
        return moment.failed
    if moment.repeats is not None:
        return f"the same code as in step {moment.repeats}: {moment.code}"
    return moment.block


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EVIDENCE_CHARS else text[: EVIDENCE_CHARS - 3] + "..."
