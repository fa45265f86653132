"""The `Guard` and the decisions of approvers; approvers by rules on an action's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ck_pro.environment import Environment
from ck_pro.events import (
    Action,
    BrowserAction,
    ComputerAction,
    ErrorObservation,
    Observation,
    ToolCall,
)
from ck_pro.exceptions import Cancelled, CKError, GuardStopped
from ck_pro.journal.masking import MASK

_SHOWN = 200  # characters of an action in messages


@dataclass(frozen=True)
class Decision:
    """The decision of an approver on an action.

    Attributes:
        verdict: "approve"; "reject" (the model sees the reason, and the run continues); "stop"
            (the run ends with status `sensitive-action`).
        reason: one line, without the action; messages show the action before it.
        acknowledge: whether to accept the safety checks that the model's service attached to the
            action. An approved action with checks that are not accepted stops the run.
    """

    verdict: Literal["approve", "reject", "stop"] = "approve"
    reason: str = ""
    acknowledge: bool = False


class ActionRejected(CKError):
    """An approver rejected an action; the model sees the reason."""


class Approver(Protocol):
    """Decides on actions before they run. Several threads may call it."""

    def review(self, action: Action) -> Decision:
        """Return the decision on `action`."""
        ...


class AutoApprover:
    """Approves every action.

    Args:
        acknowledge: whether to accept the safety checks of a model's service.
    """

    def __init__(self, acknowledge: bool = False):
        self.acknowledge = acknowledge

    def review(self, action: Action) -> Decision:
        """Always approve."""
        return Decision(acknowledge=self.acknowledge)


class MaskingApprover:
    """Masks the secrets of actions before another approver reviews them.

    Args:
        approver: the other approver.
        masked: returns a copy of JSON-able data with masked secrets.
    """

    def __init__(self, approver: Approver, masked: Callable[[Any], Any]):
        self.approver, self._masked = approver, masked

    def review(self, action: Action) -> Decision:
        """Return the other approver's decision."""
        return self.approver.review(self.shown(action))

    def shown(self, action: Action) -> Action:
        """Return the action with masked secrets."""
        facts = action.to_dict()
        masked = self._masked(facts)
        return action if masked == facts else Action.from_dict(masked)


class RuleApprover:
    """Stops or rejects actions whose text matches a pattern.

    Args:
        stop: regular expressions; a match stops the run for the user.
        reject: regular expressions; a match is rejected, and the model sees the reason.
        acknowledge: regular expressions for safety checks ("code: message"). The checks of an
            action are accepted if each matches one.
    """

    def __init__(
        self,
        stop: Sequence[str] = (),
        reject: Sequence[str] = (),
        acknowledge: Sequence[str] = (),
    ):
        self._acknowledged = [re.compile(p, re.IGNORECASE) for p in acknowledge]
        self._rules: list[tuple[re.Pattern[str], Literal["stop", "reject"]]] = [
            *((re.compile(p, re.IGNORECASE), "stop") for p in stop),
            *((re.compile(p, re.IGNORECASE), "reject") for p in reject),
        ]

    def review(self, action: Action) -> Decision:
        """Return the verdict of the first rule that matches; approve if none does."""
        text = describe(action)
        for pattern, verdict in self._rules:
            if pattern.search(text):
                return Decision(verdict, f"the rule {pattern.pattern!r} matches")
        checks = safety_checks(action)
        known = [any(p.search(c) for p in self._acknowledged) for c in checks]
        return Decision(acknowledge=all(known))


def describe(action: Action) -> str:
    """Return an action as one line; rules match against it."""
    if isinstance(action, ToolCall):
        arguments = ", ".join(f"{k}={v!r}" for k, v in action.arguments.items())
        return f"{action.name}({arguments})"
    if isinstance(action, BrowserAction | ComputerAction):
        reached = action.element if isinstance(action, BrowserAction) else action.target
        on = f" on {reached}" if reached else ""
        return f"{action}{on} at {action.url}" if action.url else f"{action}{on}"
    fields = " ".join(str(v) for k, v in action.to_dict().items() if k != "kind" and v)
    return f"{action.kind} {fields}"


def safety_checks(action: Action) -> list[str]:
    """Return the safety checks of an action, each as "code: message"."""
    if not isinstance(action, ComputerAction):
        return []
    return [": ".join(t for t in (c.code, c.message) if t) for c in action.pending_safety_checks]


def require_approval(approver: Approver, action: Action) -> None:
    """Return if the approver approves an action.

    Raises:
        ActionRejected: the approver rejected it.
        GuardStopped: the approver stopped the run.
    """
    action = _without_secret(action)
    decision = _review(approver, action)
    shown = getattr(approver, "shown", None)
    line = describe(action if shown is None else shown(action))
    line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
    stated = f"{line}: {decision.reason}" if decision.reason else line
    if decision.verdict == "reject":
        raise ActionRejected(f"This action was not allowed: {stated}")
    if decision.verdict == "stop":
        raise GuardStopped(f"stopped for the user's decision: {stated}", action.to_dict())
    if (checks := safety_checks(action)) and not decision.acknowledge:
        raise GuardStopped(
            f"stopped for the user's decision: {line}: {'; '.join(checks)} (an approver can "
            "acknowledge this)",
            action.to_dict(),
        )


def _review(approver: Approver, action: Action) -> Decision:
    """Return the decision of an approver; stop the run if the approver fails."""
    try:
        decision = approver.review(action)
    except (Cancelled, KeyboardInterrupt):  # while the approver waited for the user
        raise
    except BaseException as e:  # noqa: BLE001 - the action was not approved
        return Decision("stop", f"the approver failed: {type(e).__name__}: {e}")
    if isinstance(decision, Decision) and decision.verdict in ("approve", "reject", "stop"):
        return decision
    return Decision("stop", f"the approver returned {decision!r}, which is not a Decision")


def _without_secret(action: Action) -> Action:
    """Return the action without the secret that it types."""
    if isinstance(action, BrowserAction) and action.secret and action.value:
        texts = {key: MASK for key, text in action.arguments.items() if isinstance(text, str)}
        hidden = {"value": MASK, "arguments": {**action.arguments, **texts}}
        return action.model_copy(update=hidden)
    if isinstance(action, ComputerAction) and action.secret and action.text:
        return action.model_copy(update={"text": MASK})
    return action


def needs_review(approver: Approver, action: Action) -> bool:
    """Whether the decision on an action depends on its target."""
    return type(approver) is not AutoApprover or bool(safety_checks(action))


def review(
    approver: Approver, environment: Environment, action: Action
) -> Action | ErrorObservation:
    """Return an approved action, with its target described; a rejection as an observation.

    Raises:
        GuardStopped: the approver stopped the run.
    """
    action = environment.named(action)
    try:
        require_approval(approver, action)
    except ActionRejected as e:
        return ErrorObservation(text=str(e))
    return action


class Guard(Environment):
    """An environment whose actions need approval. Observations need none."""

    def __init__(self, environment: Environment, approver: Approver):
        self.environment, self.approver = environment, approver

    def observe(self) -> Observation:
        """See `Environment.observe`."""
        return self.environment.observe()

    def execute(self, action: Action) -> Observation:
        """Execute an approved action; return a rejection as an observation.

        Raises:
            GuardStopped: the approver stopped the run.
        """
        if needs_review(self.approver, action):
            reviewed = review(self.approver, self.environment, action)
            if isinstance(reviewed, ErrorObservation):
                return reviewed
            action = reviewed
        return self.environment.execute(action)

    def named(self, action: Action) -> Action:
        """See `Environment.named`."""
        return self.environment.named(action)

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()
