"""What the user gave to resume a run: the answer to its question, and approvals of its actions.

Each is valid for one recorded call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ck_pro.approval import Approver, Decision, describe
from ck_pro.events import Action, BrowserAction, ComputerAction, EventKind
from ck_pro.events.event_parts import GivenApproval
from ck_pro.events.journal_events import AnsweredData, ApprovedData
from ck_pro.exceptions import InputError
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.tools.human import Answer, Answers

if TYPE_CHECKING:
    from ck_pro.run.run import Run

_VOLATILE = ("call_id", "note", "pending_safety_checks")


class UserReplies:
    """The answers and approvals of the user that one run has not used yet.

    Args:
        run: the run.
        answers, approvals: those of its tree of runs.
    """

    def __init__(self, run: Run, answers: Answers, approvals: Approvals):
        self._run, self._answers, self._approvals = run, answers, approvals

    def take_answer(self, question: str) -> str | None:
        """Use up the answer to a question and record that; None if there is none."""
        answer = self._answers.take(self._run.session.id, question)
        if answer is None:
            return None
        self._run.record(EventKind.ANSWERED, AnsweredData(question=question))
        return answer.answer

    def answers(self) -> list[Answer]:
        """Return the unused answers, and keep them."""
        return self._answers.of(self._run.session.id)

    def approver(self, other: Approver) -> Approver:
        """Return an approver that approves what the user approved; `other` reviews the rest."""
        approvals = self._approvals.of(self._run.session.id)
        return ApprovedOnce(other, self._take_approval) if approvals else other

    def pending_approvals(self) -> list[dict[str, Any]]:
        """Return the approved actions of this session that have not run yet."""
        return [one["action"] for one in self._approvals.of(self._run.session.id)]

    def show_unused(self) -> None:
        """Put the replies that no call of the resumed step used into the next prompt."""
        run = self._run
        for answer in self._answers.drop(run.session.id):
            if not answer.shown:
                run.record(EventKind.ANSWERED, AnsweredData(question=answer.question))
                run.notices.append(answer.line())
        for facts in self.pending_approvals():
            action = describe(Action.from_dict(facts))
            run.notices.append(f"The user approved this action, but it has not run: {action}")

    def _take_approval(self, action: Action) -> bool:
        """Use up the approval of an action and record that; return whether there was one.

        The approval of an action on a page is void in a new browser.
        """
        run = self._run
        facts = run.journal.masked(action.to_dict())
        if acts_on_environment(facts) and not run.has_same_environment():
            return False
        approval = self._approvals.take(run.session.id, facts)
        if approval is None:
            return False
        run.record(EventKind.APPROVED, ApprovedData(action=approval["action"]))
        return True


class Approvals:
    """The unused approvals of a resumed run and its sub-agents.

    Args:
        given: the approvals, in order.
    """

    def __init__(self, given: Sequence[GivenApproval] = ()):
        self._given = list(given)
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._given)

    def take(self, session: str, action: Mapping[str, Any]) -> GivenApproval | None:
        """Remove and return the approval of an action of a session.

        Args:
            session: id of the session.
            action: the action as JSON data, with masked secrets.
        """
        with self._lock:
            for one in self._given:
                if one["session"] == session and same_action(one["action"], action):
                    self._given.remove(one)
                    return one
        return None

    def of(self, session: str) -> list[GivenApproval]:
        """Return the approvals for a session, and keep them."""
        with self._lock:
            return [one for one in self._given if one["session"] == session]


class ApprovedOnce:
    """Approves the actions that the user approved; another approver reviews all others.

    Args:
        approver: the other approver.
        take: uses up the approval of an action, and returns whether there was one.
    """

    def __init__(self, approver: Approver, take: Callable[[Action], bool]):
        self._approver, self._take = approver, take

    def review(self, action: Action) -> Decision:
        """Return the user's approval, or else the other approver's decision."""
        if self._take(action):
            return Decision(reason="the user approved it", acknowledge=True)
        return self._approver.review(action)

    def shown(self, action: Action) -> Action:
        """Return the action as messages show it; see `MaskingApprover.shown`."""
        shown = getattr(self._approver, "shown", None)
        return action if shown is None else shown(action)


def same_action(recorded: Mapping[str, Any], action: Mapping[str, Any]) -> bool:
    """Whether an action is the recorded one: the same call, target, page and arguments.

    The id of a described element does not count: an action may name the same element by its text.
    """
    return _compared(recorded) == _compared(action)


def _compared(action: Mapping[str, Any]) -> dict[str, Any]:
    skipped = {*_VOLATILE, "target"} if action.get("element") else {*_VOLATILE}
    return {k: v for k, v in action.items() if k not in skipped}


def acts_on_environment(action: Mapping[str, Any]) -> bool:
    """Whether a recorded action acts on the page or the screen that the user approved."""
    return action.get("kind") in (BrowserAction.kind, ComputerAction.kind)


def prepare_approvals(approve: bool, interrupted: InterruptedSession) -> Approvals:
    """Return the unused approvals of a run.

    Args:
        approve: whether the user approves the action that the run stopped last.
        interrupted: the main session.

    Raises:
        InputError: the run did not stop for an approval.
    """
    if approve:
        approval = waiting_approval(interrupted)
        if approval is None:
            raise InputError("no action of this run waits for approval")
        if approval not in interrupted.approvals:
            interrupted.new_approval = approval
            interrupted.approvals.append(approval)
    return Approvals(interrupted.approvals)


def waiting_approval(interrupted: InterruptedSession) -> GivenApproval | None:
    """Return the approval of the action that stopped a run; None if none did."""
    asked = interrupted.asked
    if asked is None or not asked.get("action"):
        return None
    return GivenApproval(session=asked["session"], action=asked["action"])
