"""Resume an interrupted run: rebuild it and its usage from the journal.

Finished steps are kept. The step in progress resumes in one of three ways:

- without a recorded reply of the model, the step starts again;
- with a reply, its code runs again in a new worker. Recorded calls return their recorded results,
  sub-agents resume inside their own sessions, and repeatable calls run again (`Tool.on_resume`);
- if the code acted on an object that no longer exists (a page), or wrote into the working
  directory, it does not run again. Pending sub-agents and questions, and an action that the user
  approved, are completed first. The step's observation then lists the calls with their results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.event_parts import AskedQuestion, GivenAnswer, GivenApproval
from ck_pro.events.journal_events import AnsweredData, ResumedData
from ck_pro.exceptions import CKError, InputError
from ck_pro.journal import Journal, read_events
from ck_pro.model import Usage
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.session import AgentSession, sessions_from_events
from ck_pro.session.session import damaged_event
from ck_pro.tools.human import Answer, Answers

if TYPE_CHECKING:
    from ck_pro.run.run import Run

USER_ACTED = "While the run waited, the user acted in your browser:\n{}"
NOTICE = "The run was interrupted and resumed. Earlier variables are lost; files are kept."


@dataclass
class PriorUsage:
    """Usage of a run before its interruption, over all its agents; seconds of wall time."""

    steps: int = 0
    seconds: float = 0.0
    calls: list[tuple[Usage, float | None]] = field(default_factory=list)


def read_interrupted_run(
    events: Iterable[JournalEvent],
) -> tuple[InterruptedSession | None, PriorUsage]:
    """Rebuild an interrupted run.

    Args:
        events: all events of its journal, in order.

    Returns:
        The main session with all others, or None without a session; and the usage.

    Raises:
        JournalError: an event lacks a key, or has a value of a wrong type.
    """
    kept = list(events)
    sessions = sessions_from_events(kept)
    interrupted = {sid: InterruptedSession(session) for sid, session in sessions.items()}
    usage, stretch = PriorUsage(), (0.0, 0.0)
    answers: list[GivenAnswer] = []
    approvals: list[GivenApproval] = []
    for event in kept:
        try:
            interrupted[event["sid"]].apply(event)
            _update_answers(event, answers)
            _update_approvals(event, approvals)
            _add_usage(event, usage)
            stretch = _add_time(event, usage, stretch)
        except CKError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as e:
            raise damaged_event(event, e) from e
    usage.seconds += stretch[1] - stretch[0]
    for one in interrupted.values():
        one.sessions = interrupted
    main = next(iter(interrupted.values()), None)
    if main is not None:
        main.unused_answers, main.approvals = answers, approvals
    return main, usage


def find_interrupted(
    session: AgentSession | None, journal: Journal | None
) -> tuple[InterruptedSession, PriorUsage]:
    """Return the interrupted run of a session, or else of a journal.

    Raises:
        InputError: neither of them has a run.
    """
    if session is not None:
        return InterruptedSession(session, lease=session.lease), PriorUsage()
    if journal is not None and journal.folder is not None:
        interrupted, usage = read_interrupted_run(read_events(journal.folder))
        if interrupted is not None:
            return interrupted, usage
    raise InputError("nothing to resume: give a journal that holds a run, or a session")


def prepare_answers(text: str, interrupted: InterruptedSession) -> Answers:
    """Return the unused answers of a run.

    Args:
        text: the new answer, to the question asked last; "" for none.
        interrupted: the main session.
    """
    if text:
        asked = interrupted.asked
        asked = asked or AskedQuestion(session="", question=interrupted.session.message)
        known = asked["session"] in interrupted.sessions
        answer = GivenAnswer(
            session=asked["session"] if known else interrupted.session.id,
            question=asked["question"],
            answer=text,
        )
        interrupted.new_answer = answer
        interrupted.unused_answers.append(answer)
    unused = interrupted.unused_answers
    return Answers([Answer(a["session"], a["question"], a["answer"]) for a in unused])


def _update_answers(event: JournalEvent, answers: list[GivenAnswer]) -> None:
    """Add the answer that an event gives, or remove the one that it uses."""
    if event["kind"] == EventKind.RESUMED and event["data"].get("answer"):
        answers.append(event["data"]["answer"])
    elif event["kind"] == EventKind.ANSWERED:
        key = (event["sid"], event["data"]["question"])
        used = next((a for a in answers if (a["session"], a["question"]) == key), None)
        if used is not None:
            answers.remove(used)


def _update_approvals(event: JournalEvent, approvals: list[GivenApproval]) -> None:
    """Add the approval that an event gives, or remove the one that it uses.

    A run that stops again without a kill drops the approvals that it did not use.
    """
    if event["kind"] == EventKind.RESUMED and event["data"].get("approved"):
        approvals.append(event["data"]["approved"])
    elif event["kind"] == EventKind.APPROVED:
        used = GivenApproval(session=event["sid"], action=event["data"]["action"])
        if used in approvals:
            approvals.remove(used)
    elif event["kind"] == EventKind.STATUS and event.get("parent") is None:
        approvals.clear()


def _add_usage(event: JournalEvent, usage: PriorUsage) -> None:
    kind, data = event["kind"], event["data"]
    if kind == EventKind.STEP:
        usage.steps += data.get("taken", True)  # a run without steps records an empty one
    elif kind == EventKind.MODEL_CALL or (kind == EventKind.MODEL_FAILED and "usage" in data):
        counts = {k: v for k, v in data.get("usage", {}).items() if k != "total_tokens"}
        usage.calls.append((Usage(**counts), data.get("cost")))


def _add_time(
    event: JournalEvent, usage: PriorUsage, stretch: tuple[float, float]
) -> tuple[float, float]:
    """Return the current stretch of the run: since its start, or since it last resumed."""
    now = event["time"]
    if event["kind"] == EventKind.RESUMED and event.get("parent") is None:
        usage.seconds += stretch[1] - stretch[0]
        return now, now
    return stretch[0] or now, max(stretch[1], now)


def record_resumed(run: Run, interrupted: InterruptedSession) -> None:
    """Record that a run resumes, and whether its step in progress starts again."""
    in_progress = interrupted.in_progress
    if in_progress and not interrupted.calls and not run.has_same_environment():
        interrupted.reply = None  # the model chose its action in another environment
    redo = in_progress and not interrupted.has_acted
    answers = run.replies.answers() if redo or not in_progress else []
    learned = " ".join(answer.line() for answer in answers)
    data = ResumedData(redo=redo, learned=learned)
    if interrupted.new_answer is not None:
        data["answer"] = interrupted.new_answer
    if interrupted.new_approval is not None:
        data["approved"] = interrupted.new_approval
    run.record(EventKind.RESUMED, data)
    for answer in answers:
        answer.shown = True
        run.record(EventKind.ANSWERED, AnsweredData(question=answer.question))
    if run.session.steps[0 if redo else -1 :]:
        run.notices.append(NOTICE)
    if interrupted.user_actions:
        run.notices.append(USER_ACTED.format("\n".join(f"- {a}" for a in interrupted.user_actions)))
    if learned and run.planning == "off":
        run.notices.append(learned)  # without a plan, prompts show no progress state
