"""The schema of output rows: a task, its session, judgements and several tries."""

from typing_extensions import NotRequired, TypedDict

from ck_pro.events.journal_events import EvalData, TaskData
from ck_pro.session.rows import SessionRow


class Judgement(TypedDict, total=False):
    """Fields that a scorer or a judge adds to `eval`.

    Keys:
        scorer: the scorer, unless it is `em`; `reason` is its reason.
        judge: 1 if the judge accepts the answer, else 0.
        judge_reason: reason of the judge, or why it failed.
        feedback: advice for the next try.
        choice: index of the try that the judge chose, from 0.
        choice_reason: reason for the choice.
    """

    scorer: str
    reason: str
    judge: int
    judge_reason: str
    feedback: str
    choice: int
    choice_reason: str


class Eval(EvalData, Judgement):
    """The field `eval` of an output row."""


class TryUsage(TypedDict):
    """The usage of one try; `unreadable` counts unreadable replies by phase."""

    steps: int
    tokens: int
    seconds: float
    unreadable: dict[str, int]


class TrySummary(TryUsage):
    """One try in `sel_cands`."""

    number: int
    seed: int | None
    session: str
    output: str
    corr: float | None
    judge: int | None
    status: str
    stop_reason: str | None


class FailedTry(TypedDict):
    """An earlier try of a task with `until`."""

    session: SessionRow
    eval: Eval


class TaskFacts(TaskData):
    """The fields of a row about its task; `feedback` is the advice that this try got."""

    feedback: NotRequired[str]


class OutputRow(TaskFacts):
    """One row of an output.

    Keys:
        session: session of the main agent.
        eval: answer and score.
        sel_aggr: how the try was chosen.
        sel_cands: summaries of all tries.
        sel_idx: index of the chosen try, from 0.
        previous_failed_sessions: the tries before it, with `until`.
    """

    session: SessionRow
    eval: Eval
    sel_aggr: NotRequired[str]
    sel_cands: NotRequired[list[TrySummary]]
    sel_idx: NotRequired[int]
    previous_failed_sessions: NotRequired[list[FailedTry]]
