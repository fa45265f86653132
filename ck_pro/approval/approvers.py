"""Approvers for common cases, and approvers from settings."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ck_pro.approval.guard import (
    Approver,
    AutoApprover,
    Decision,
    RuleApprover,
    describe,
    safety_checks,
)
from ck_pro.approval.policy import PolicyApprover
from ck_pro.events import Action, ToolCall
from ck_pro.exceptions import ConfigError
from ck_pro.settings import read_config
from ck_pro.terminal import asking_agents, read_line, terminal_turn

_NAMES = ("allow", "deny", "terminal")
_OLD_RULES = {"stop", "reject", "acknowledge"}
_POLICY = {"rules", "default"}


class TerminalApprover:
    """Asks the user at the terminal. Questions go to standard error; one input line is the answer.

    Without a terminal, and with an empty answer, the run stops for the user's decision.
    """

    def __init__(self, input: TextIO | None = None, output: TextIO | None = None):
        """Make the approver.

        Args:
            input, output: other streams than standard input and standard error.
        """
        self._input, self._output = input, output

    def review(self, action: Action) -> Decision:
        """Show the action and return the user's decision."""
        stdin, stderr = self._input or sys.stdin, self._output or sys.stderr
        if self._input is None and not stdin.isatty():
            return Decision("stop", "no terminal to ask at")
        lines = [f"{asking_agents()} wants to run: {describe(action)}"]
        lines += [f"Safety check: {check}" for check in safety_checks(action)]
        text = "\n".join(_printable(line) for line in lines)
        with terminal_turn():
            while True:
                stderr.write(f"\n{text}\nAllow it? [y]es, [n]o and continue, [s]top the run> ")
                stderr.flush()
                line = read_line(stdin)
                answer, _, reason = line.strip().partition(" ")
                match answer.lower():
                    case "y" | "yes":
                        return Decision(reason="the user allowed it", acknowledge=True)
                    case "n" | "no":
                        return Decision("reject", reason or "the user did not allow it")
                    case "" | "s" | "stop":
                        return Decision("stop", reason or "the user stopped it")
                text = "Answer y, n or s; a reason may follow: n use the other form."


class CallbackApprover:
    """Asks a function.

    Args:
        function: gets the action; returns whether to allow it, a verdict ("approve", "reject",
            "stop"), or a `Decision`.
    """

    def __init__(self, function: Callable[[Action], Any]):
        self._function = function

    def review(self, action: Action) -> Any:
        """Return the function's decision; a value of another type stops the run."""
        value = self._function(action)
        if isinstance(value, bool):
            value = "approve" if value else "reject"
        if value in ("approve", "reject", "stop"):
            name = getattr(self._function, "__name__", "the callback")
            return Decision(value, f"decided by {name}", acknowledge=value == "approve")
        return value


class DenyAllApprover:
    """Rejects every action, so that an agent can only answer.

    Args:
        allow: names of tools that it approves: those that end a run.
    """

    def __init__(self, allow: Sequence[str] = ("stop",)):
        self.allow = frozenset(allow)

    def review(self, action: Action) -> Decision:
        """Reject the action, unless it is an allowed tool call."""
        if isinstance(action, ToolCall) and action.name in self.allow:
            return Decision()
        return Decision("reject", "no actions are allowed")


def approver_of(setting: Any) -> Any:
    """Return the approver for a setting.

    Args:
        setting: an approver; a function (`CallbackApprover`); "allow", "deny" or "terminal"; the
            path of a policy file; a policy as a dict with `rules` and `default`
            (`PolicyApprover`), or with `stop`, `reject` and `acknowledge` (`RuleApprover`).

    Raises:
        ConfigError: the setting has another form, or a rule is invalid.
    """
    if setting is None or callable(getattr(setting, "review", None)):
        return setting
    made: Any
    if isinstance(setting, str | Path):
        made = _named_approver(str(setting))
        setting = str(setting) if str(setting) in _NAMES else str(Path(setting).resolve())
    elif isinstance(setting, Mapping):
        made, setting = _from_dict(setting), dict(setting)
    elif callable(setting):
        return CallbackApprover(setting)
    else:
        raise ConfigError(
            f"approver: {setting!r} is not an approver: give a function, a dict of rules, a policy "
            f"file, or one of {', '.join(_NAMES)}"
        )
    made.setting = setting
    return made


def setting_of(approver: Any) -> Any:
    """Return the setting from which `approver_of` made an approver; None for another one."""
    return getattr(approver, "setting", None)


def _named_approver(name: str) -> Approver:
    match name:
        case "allow":
            return AutoApprover()
        case "deny":
            return DenyAllApprover()
        case "terminal":
            return TerminalApprover()
    if not Path(name).suffix:
        raise ConfigError(
            f"approver: {name!r} is not a policy file (such as policy.yaml), and not one of "
            f"{', '.join(_NAMES)}"
        )
    try:
        return _from_dict(read_config(Path(name)))
    except ConfigError as e:
        raise ConfigError(f"approver {name}: {e}") from None


def _from_dict(setting: Mapping[str, Any]) -> Approver:
    known = _POLICY if _POLICY & set(setting) else _OLD_RULES
    if unknown := set(setting) - known:
        names = ", ".join(sorted(_OLD_RULES | _POLICY))
        raise ConfigError(
            f"approver: unknown key {sorted(map(str, unknown))[0]!r}; known are: {names}"
        )
    if known is _POLICY:
        rules = setting.get("rules") or []
        if not isinstance(rules, list | tuple):
            raise ConfigError(f"approver: rules: {rules!r} is not a list")
        default = setting.get("default", "approve")
        return PolicyApprover(rules, default, ask=TerminalApprover())
    rules = {k: [v] if isinstance(v, str) else v for k, v in setting.items()}
    try:
        return RuleApprover(**rules)
    except (re.error, TypeError) as e:
        raise ConfigError(f"approver: rules are lists of regular expressions: {e}") from None


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
