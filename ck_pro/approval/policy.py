"""`PolicyApprover`: decisions by tool, site, kind of action and arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from ck_pro.approval.guard import Approver, Decision, safety_checks
from ck_pro.events import Action, BrowserAction, ComputerAction, ToolCall
from ck_pro.exceptions import ConfigError

Verdict = Literal["approve", "reject", "stop", "ask"]


@checked_dataclass(config=ConfigDict(extra="forbid"), frozen=True)
class PolicyRule:
    """A rule: it applies to the actions that match all of its conditions.

    Attributes:
        verdict: "approve"; "reject" (the model sees the reason, the run continues); "stop" (the
            run stops for the user's decision); "ask" (another approver decides).
        kind: kinds of actions: "tool_call", "browser", "computer".
        tool: names of tools, or of actions in a browser or on a computer ("click"); `*` stands for
            any text.
        domain: hosts of the page, or that the action opens: "shop.example" also means its
            subdomains; `*` stands for any text. For "approve", all hosts of an action must match.
        role: roles of the element: "button", "link".
        element: regular expression on the description of the element: "button 'Buy now'".
        arguments: regular expressions on named arguments; a missing argument does not match.
        reason: shown to the model and to the user.
    """

    verdict: Verdict
    kind: str | list[str] = ()  # type: ignore[assignment]
    tool: str | list[str] = ()  # type: ignore[assignment]
    domain: str | list[str] = ()  # type: ignore[assignment]
    role: str | list[str] = ()  # type: ignore[assignment]
    element: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    reason: str = ""

    def __post_init__(self) -> None:
        for pattern in (self.element, *self.arguments.values()):
            re.compile(pattern)

    def matches(self, facts: Facts) -> bool:
        """Whether the rule applies to an action."""
        if not (_listed(facts.kind, self.kind) and _listed(facts.tool, self.tool)):
            return False
        if self.role and not _listed(facts.role, self.role):
            return False
        if self.domain and not self._matches_hosts(facts.hosts):
            return False
        if self.element and not re.search(self.element, facts.element, re.IGNORECASE):
            return False
        return all(
            name in facts.arguments
            and re.search(pattern, str(facts.arguments[name]), re.IGNORECASE)
            for name, pattern in self.arguments.items()
        )

    def _matches_hosts(self, hosts: Sequence[str]) -> bool:
        found = [any(_is_at(host, domain) for domain in _texts(self.domain)) for host in hosts]
        return bool(found) and (all(found) if self.verdict == "approve" else any(found))


@dataclass(frozen=True)
class Facts:
    """The parts of an action that rules match."""

    kind: str
    tool: str
    arguments: Mapping[str, Any]
    hosts: tuple[str, ...] = ()
    element: str = ""
    role: str = ""

    @classmethod
    def of(cls, action: Action) -> Facts:
        """Return the facts of an action; the approver gets it with masked secrets."""
        if isinstance(action, ToolCall):
            hosts = _hosts(action.arguments.values())
            return cls(action.kind, action.name, action.arguments, hosts)
        if isinstance(action, BrowserAction):
            arguments = {"id": action.target, action.value_name: action.value, **action.arguments}
            hosts = _hosts([action.url, action.value if action.value_name == "url" else ""])
            given = {k: v for k, v in arguments.items() if v not in (None, "")}
            return cls(action.kind, action.name, given, hosts, action.element, action.role)
        if isinstance(action, ComputerAction):
            given = action.arguments()
            name, hosts = str(given.get("action", "")), _hosts([action.url])
            role = action.target.partition(" '")[0]
            return cls(action.kind, name, given, hosts, action.target, role)
        given = {k: v for k, v in action.to_dict().items() if k != "kind"}
        return cls(action.kind, action.kind, given, _hosts(given.values()))


class PolicyApprover:
    """Decides by the first rule that matches an action.

    Args:
        rules: the rules, in order: `PolicyRule` objects or dicts.
        default: verdict if no rule matches.
        ask: the approver for the verdict "ask".

    Raises:
        ConfigError: a rule is malformed.
    """

    def __init__(
        self,
        rules: Sequence[PolicyRule | Mapping[str, Any]],
        default: Verdict = "approve",
        ask: Approver | None = None,
    ):
        if default not in ("approve", "reject", "stop", "ask"):
            raise ConfigError(f"approver: default: {default!r} is not a verdict")
        self.rules = [_rule(rule, n) for n, rule in enumerate(rules, 1)]
        self.default: Verdict = default
        self._ask = ask

    def review(self, action: Action) -> Decision:
        """Return the verdict of the first matching rule, else the default."""
        facts = Facts.of(action)
        number, rule = next(
            ((n, rule) for n, rule in enumerate(self.rules, 1) if rule.matches(facts)), (0, None)
        )
        verdict = rule.verdict if rule is not None else self.default
        if verdict == "ask":
            if self._ask is None:
                return Decision("stop", "it needs the user's approval")
            return self._ask.review(action)
        source = f"rule {number} of the policy" if rule is not None else "the policy's default"
        reason = (rule.reason if rule is not None else "") or source
        # only a rule, not the default, accepts the safety checks of a model's service
        acknowledged = rule is not None or not safety_checks(action)
        return Decision(verdict, reason, acknowledged)


def _rule(rule: PolicyRule | Mapping[str, Any], number: int) -> PolicyRule:
    if isinstance(rule, PolicyRule):
        return rule
    if not isinstance(rule, Mapping):
        raise ConfigError(f"approver: rule {number}: {rule!r} is not a dict of conditions")
    try:
        return PolicyRule(**rule)
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        name = ".".join(str(p) for p in first["loc"][:2])
        known = ", ".join(PolicyRule.__dataclass_fields__)
        hint = f"; known are: {known}" if first["type"] == "unexpected_keyword_argument" else ""
        raise ConfigError(f"approver: rule {number}, {name}: {first['msg']}{hint}") from None
    except re.error as e:
        raise ConfigError(f"approver: rule {number}: not a regular expression: {e}") from None


def _texts(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


def _listed(name: str, wanted: str | Sequence[str]) -> bool:
    """Whether a name is listed; an empty list stands for all."""
    return not wanted or any(fnmatchcase(name, pattern) for pattern in _texts(wanted))


def _is_at(host: str, domain: str) -> bool:
    domain = domain.lower()
    return host == domain or host.endswith(f".{domain}") or fnmatchcase(host, domain)


def _hosts(values: Any) -> tuple[str, ...]:
    """Return the hosts of the addresses among some values."""
    hosts = []
    for value in values:
        if isinstance(value, str) and value:
            text = value if "://" in value else f"https://{value}" if "." in value else ""
            try:
                host = urlsplit(text).hostname if " " not in text else None
            except ValueError:
                host = None
            if host:
                hosts.append(host.lower().rstrip("."))
    return tuple(hosts)
