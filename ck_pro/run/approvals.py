"""The user's approvals of actions for which a run stopped: each is valid for one recorded call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ck_pro.approval import Approver, Decision
from ck_pro.events import Action, BrowserAction, ComputerAction
from ck_pro.events.event_parts import GivenApproval
from ck_pro.exceptions import InputError
from ck_pro.run.interrupted import InterruptedSession

_VOLATILE = ("call_id", "note", "pending_safety_checks")


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
