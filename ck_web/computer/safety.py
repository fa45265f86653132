"""`CallbackApprover`: a function acknowledges the safety checks of a model's service."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ck_pro.approval import Approver, Decision, safety_checks
from ck_pro.events import Action, ComputerAction


class CallbackApprover:
    """Adds a callback for safety checks to another approver.

    Args:
        approver: decides on actions; the callback is called for the checks of those it approves
            without acknowledging them.
        callback: called with the message of a check, or without arguments if it takes none;
            returns whether to accept the check.
    """

    def __init__(self, approver: Approver, callback: Callable[..., Any]):
        self._approver, self._callback = approver, callback
        self._takes_message = _takes_an_argument(callback)

    def review(self, action: Action) -> Decision:
        """Return the decision of the approver, with the acknowledgement of the callback."""
        decision = self._approver.review(action)
        if decision.verdict != "approve" or decision.acknowledge or not safety_checks(action):
            return decision
        assert isinstance(action, ComputerAction)
        for check in action.pending_safety_checks:
            message = check.message or check.code or check.id
            accepted = self._callback(message) if self._takes_message else self._callback()
            if not accepted:
                return Decision("stop", f"Safety check failed: {message}")
        return replace(decision, acknowledge=True)


def _takes_an_argument(callback: Callable[..., Any]) -> bool:
    try:
        inspect.signature(callback).bind("message")
    except TypeError:
        return False
    except ValueError:  # a built-in function without a known signature
        return True
    return True
