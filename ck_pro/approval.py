"""Approve before acting: a decision is a value, made by an `Approver`, kept by the `Guard`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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
from ck_pro.exceptions import CKError, ConfigError, GuardStopped
from ck_pro.journal.masking import MASK


@dataclass(frozen=True)
class Decision:
    """What an approver says of an action.

    Attributes:
        verdict: "approve"; "reject" (the model is told and goes on); "stop" (the run ends with
            status `sensitive-action`, for a person to look at).
        reason: one line.
        acknowledge: the safety checks that the model's service attached to the action are seen
            and accepted; without that, approving stops the run for a person if there are any.
    """

    verdict: Literal["approve", "reject", "stop"] = "approve"
    reason: str = ""
    acknowledge: bool = False


class ActionRejected(CKError):
    """An approver said no; the model reads the reason."""


class Approver(Protocol):
    """Decides on actions before they act. Must be safe to call from several threads."""

    def review(self, action: Action) -> Decision:
        """What is to be done with `action`."""
        ...


class AutoApprover:
    """Approves everything.

    Args:
        acknowledge: also actions that a model's service wants a person to have seen.
    """

    def __init__(self, acknowledge: bool = False):
        self.acknowledge = acknowledge

    def review(self, action: Action) -> Decision:
        """Always approve."""
        return Decision(acknowledge=self.acknowledge)


class MaskingApprover:
    """Shows another approver the actions with their secrets masked.

    Args:
        approver: the other one.
        masked: a copy of JSON-able data without secrets.
    """

    def __init__(self, approver: Approver, masked: Callable[[Any], Any]):
        self.approver, self._masked = approver, masked

    def review(self, action: Action) -> Decision:
        """What the other one decides."""
        facts = action.to_dict()
        shown = self._masked(facts)
        return self.approver.review(action if shown == facts else Action.from_dict(shown))


class RuleApprover:
    """Stops or rejects actions whose text matches a pattern.

    Args:
        stop: regular expressions; a match ends the run for a person to look at.
        reject: regular expressions; a match is refused and the model told.
        acknowledge: the same, for safety checks as "code: message"; an action is acknowledged if
            each of its checks matches one.
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
        """The first rule that matches decides; none approves."""
        text = describe(action)
        for pattern, verdict in self._rules:
            if pattern.search(text):
                return Decision(verdict, f"'{text[:120]}' matches the rule {pattern.pattern!r}")
        checks = safety_checks(action)
        known = [any(p.search(c) for p in self._acknowledged) for c in checks]
        return Decision(acknowledge=all(known))


def approver_of(setting: Any) -> Any:
    """An approver as settings give it: itself, or a dict of the rules of a `RuleApprover`.

    Raises:
        ConfigError: neither of them, other names than those of its rules, or no regular
            expressions.
    """
    if setting is None or callable(getattr(setting, "review", None)):
        return setting
    if not isinstance(setting, Mapping):
        raise ConfigError(
            f"approver: {setting!r} is neither an object with `review` nor a dict of rules"
        )
    rules = {k: [v] if isinstance(v, str) else v for k, v in setting.items()}
    if unknown := set(rules) - {"stop", "reject", "acknowledge"}:
        raise ConfigError(
            f"approver: no rules are called {sorted(unknown)[0]!r}; known are: stop, reject, "
            "acknowledge"
        )
    try:
        return RuleApprover(**rules)
    except (re.error, TypeError) as e:
        raise ConfigError(f"approver: rules are lists of regular expressions: {e}") from None


def describe(action: Action) -> str:
    """An action as one line: what rules match against."""
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
    """What a person is to have seen before the action acts, each as "code: message"."""
    if not isinstance(action, ComputerAction):
        return []
    return [": ".join(t for t in (c.code, c.message) if t) for c in action.pending_safety_checks]


def require_approval(approver: Approver, action: Action) -> None:
    """Return if the action may act.

    Raises:
        ActionRejected: the approver refused it.
        GuardStopped: the approver ends the run.
    """
    action = _without_secret(action)
    decision = _decision(approver, action)
    if decision.verdict == "reject":
        raise ActionRejected(f"This action was not allowed: {decision.reason}")
    if decision.verdict == "stop":
        raise GuardStopped(f"stopped for a person to decide: {decision.reason}")
    if (checks := safety_checks(action)) and not decision.acknowledge:
        raise GuardStopped(
            f"stopped for a person to decide on {describe(action)}: {'; '.join(checks)} (an "
            "approver can acknowledge this)"
        )


def _decision(approver: Approver, action: Action) -> Decision:
    """What an approver decides; one that fails stops the run."""
    try:
        decision = approver.review(action)
    except Exception as e:  # noqa: BLE001 - whatever it was, nothing was approved
        return Decision(
            "stop", f"the approver failed on {describe(action)}: {type(e).__name__}: {e}"
        )
    if isinstance(decision, Decision) and decision.verdict in ("approve", "reject", "stop"):
        return decision
    return Decision("stop", f"the approver returned {decision!r}, which is not a Decision")


def _without_secret(action: Action) -> Action:
    """The action without the password that it types."""
    if isinstance(action, BrowserAction) and action.secret and action.value:
        return action.model_copy(update={"value": MASK})
    if isinstance(action, ComputerAction) and action.secret and action.text:
        return action.model_copy(update={"text": MASK})
    return action


def needs_review(approver: Approver, action: Action) -> bool:
    """Whether anything is decided about an action: only then is it worth a look at its target."""
    return type(approver) is not AutoApprover or bool(safety_checks(action))


class Guard(Environment):
    """An environment behind an approver: looking is free, acting is reviewed."""

    def __init__(self, environment: Environment, approver: Approver):
        self.environment, self.approver = environment, approver

    def observe(self) -> Observation:
        """What the environment shows."""
        return self.environment.observe()

    def execute(self, action: Action) -> Observation:
        """Act if approved; a refusal is an observation, a stop raises `GuardStopped`."""
        if not needs_review(self.approver, action):
            return self.environment.execute(action)
        action = self.environment.named(action)
        try:
            require_approval(self.approver, action)
        except ActionRejected as e:
            return ErrorObservation(text=str(e))
        return self.environment.execute(action)

    def named(self, action: Action) -> Action:
        """See `Environment.named`."""
        return self.environment.named(action)

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()
