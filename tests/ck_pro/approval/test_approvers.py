"""Approvers: the terminal, callbacks, policies, and those that settings name."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from ck_pro import AgentSession, MultiStepAgent, StopTool
from ck_pro.approval import (
    AutoApprover,
    CallbackApprover,
    Decision,
    DenyAllApprover,
    PolicyApprover,
    RuleApprover,
    TerminalApprover,
    approver_of,
)
from ck_pro.events import Action, BrowserAction, CmdRunAction, ComputerAction, SafetyCheck, ToolCall
from ck_pro.exceptions import Cancelled, ConfigError
from ck_pro.session import Status, StopReason
from ck_pro.testing import ScriptedLLM

BUY = BrowserAction(
    name="click", target="5", element="button 'Buy now'", url="https://shop.example/cart"
)
GO = BrowserAction(
    name="goto", value="https://evil.example/x", value_name="url", url="https://shop.example/"
)
LIST = ToolCall(name="run_command", arguments={"command": "ls -l"})
REMOVE = ToolCall(name="run_command", arguments={"command": "rm -r x"})


def call(tool: str, **args: Any) -> str:
    return json.dumps({"tool": tool, "args": args})


def erase(path: str) -> str:
    """Erase a file."""
    return f"erased {path}"


def run(approver: Any, *replies: str, **settings: Any) -> AgentSession:
    model = ScriptedLLM([*replies, call("stop", output="end")])
    session: AgentSession = MultiStepAgent(
        model=model,
        tools=[erase, StopTool()],
        language="function_calls",
        approver=approver,
        **settings,
    ).run("t")
    return session


def observed(session: AgentSession) -> str:
    return str(session.steps[0]["action"]["observation"])


def at_terminal(text: str, action: Action = BUY) -> tuple[Decision, str]:
    output = io.StringIO()
    decision = TerminalApprover(io.StringIO(text), output).review(action)
    return decision, output.getvalue()


def test_the_terminal_shows_the_element_the_page_and_the_text() -> None:
    typed = BUY.model_copy(
        update={"name": "type", "element": "textbox 'Amount'", "value": "200\x1b[2J"}
    )
    decision, shown = at_terminal("y\n", typed)
    assert decision.verdict == "approve" and decision.acknowledge
    assert "textbox 'Amount'" in shown and "https://shop.example/cart" in shown
    assert "text='200" in shown and "\x1b" not in shown


@pytest.mark.parametrize(
    ("typed", "verdict", "reason"),
    [
        ("yes\n", "approve", "the user allowed it"),
        ("n\n", "reject", "the user did not allow it"),
        ("no use the other form\n", "reject", "use the other form"),
        ("s\n", "stop", "the user stopped it"),
        ("\n", "stop", "the user stopped"),
        ("", "stop", "the user stopped"),
        ("what?\nn\n", "reject", "the user did not allow it"),
    ],
)
def test_the_user_at_the_terminal_decides(typed: str, verdict: str, reason: str) -> None:
    decision, shown = at_terminal(typed)
    assert decision.verdict == verdict and decision.reason.startswith(reason)
    assert ("Answer y, n or s" in shown) == typed.startswith("what")


def test_the_terminal_shows_safety_checks() -> None:
    check = SafetyCheck(id="a", code="malicious", message="Careful.")
    action = ComputerAction(action="click", x=1, y=2, pending_safety_checks=[check])
    _, shown = at_terminal("y\n", action)
    assert "Safety check: malicious: Careful." in shown


def test_without_a_terminal_the_run_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    session = run("terminal", call("erase", path="a"))
    assert session.status is Status.SENSITIVE_ACTION and "no terminal" in session.message


def test_a_cancel_while_the_user_is_asked_leaves_the_run_in_progress() -> None:
    class Waiting:
        def review(self, action: Action) -> Decision:
            raise Cancelled("the run was cancelled before the user answered")

    session = run(Waiting(), call("erase", path="a"))
    assert (session.status, session.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)


def test_a_function_approves_rejects_or_stops() -> None:
    seen: list[Action] = []

    def careful(action: Action) -> Any:
        seen.append(action)
        return {"a": True, "b": False, "c": "stop"}.get(action.arguments.get("path"), True)  # type: ignore[attr-defined]

    assert observed(run(careful, call("erase", path="a"))) == "erased a"
    rejected = run(careful, call("erase", path="b"))
    assert "not allowed: erase(path='b'): decided by careful" in observed(rejected)
    assert rejected.status is Status.DONE
    assert run(careful, call("erase", path="c")).stop_reason is StopReason.GUARD
    assert seen[0] == ToolCall(name="erase", arguments={"path": "a"})
    wrong = run(lambda action: 3, call("erase", path="a"))
    assert "the approver returned 3, which is not a Decision" in wrong.message
    direct = CallbackApprover(lambda action: Decision("stop", "mine")).review(LIST)
    assert direct == Decision("stop", "mine")


def test_allow_all_and_deny_all() -> None:
    assert observed(run("allow", call("erase", path="a"))) == "erased a"
    denied = run("deny", call("erase", path="a"))
    assert "not allowed: erase(path='a'): no actions are allowed" in observed(denied)
    assert denied.final_results == {"output": "end", "log": ""}
    assert DenyAllApprover().review(BUY).verdict == "reject"
    assert DenyAllApprover(allow=["erase"]).review(ToolCall(name="erase")).verdict == "approve"


POLICY: list[dict[str, Any]] = [
    {"tool": ["ls*", "stop"], "verdict": "approve"},
    {"kind": "browser", "domain": "evil.example", "verdict": "stop", "reason": "that site"},
    {"kind": "browser", "role": "button", "element": "buy|order", "verdict": "ask"},
    {"kind": "browser", "domain": ["shop.example"], "verdict": "approve"},
    {"tool": "run_command", "arguments": {"command": "^(ls|cat) "}, "verdict": "approve"},
    {"tool": "run_*", "verdict": "reject", "reason": "only ls and cat"},
]


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        (BUY, "reject"),  # by the approver that is asked
        (BUY.model_copy(update={"element": "link 'Buy now'"}), "approve"),
        (BUY.model_copy(update={"element": "button 'Back'"}), "approve"),
        (BUY.model_copy(update={"element": "", "url": "https://www.shop.example./"}), "approve"),
        (BUY.model_copy(update={"element": "", "url": "https://notshop.example/"}), "stop"),
        (BUY.model_copy(update={"element": "", "url": ""}), "stop"),
        (GO, "stop"),
        (GO.model_copy(update={"value": "SHOP.example/a"}), "approve"),
        (GO.model_copy(update={"value": "https://other.example"}), "stop"),
        (LIST, "approve"),
        (REMOVE, "reject"),
        (ToolCall(name="run_command"), "reject"),
        (ToolCall(name="less"), "stop"),
        (ToolCall(name="lsof"), "approve"),
        (CmdRunAction(command="ls"), "stop"),
    ],
    ids=str,
)
def test_the_first_rule_that_matches_decides(action: Action, verdict: str) -> None:
    policy = PolicyApprover(POLICY, "stop", ask=CallbackApprover(lambda action: False))
    assert policy.review(action).verdict == verdict


def test_a_reason_reaches_the_model() -> None:
    rules = [{"tool": "erase", "arguments": {"path": "^/"}, "verdict": "reject", "reason": "no /"}]
    session = run({"rules": rules}, call("erase", path="/etc"), call("erase", path="a"))
    assert observed(session).endswith("This action was not allowed: erase(path='/etc'): no /")
    assert session.steps[1]["action"]["observation"] == "erased a"


def test_a_policy_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(
        "default: reject\nrules:\n  - {tool: stop, verdict: approve}\n"
        "  - tool: erase\n    arguments: {path: '^tmp/'}\n    verdict: approve\n"
    )
    session = run("policy.yaml", call("erase", path="tmp/a"), call("erase", path="b"))
    assert observed(session) == "erased tmp/a"
    assert "the policy's default" in session.steps[1]["action"]["observation"]
    assert session.status is Status.DONE


def test_ask_without_an_approver_stops() -> None:
    decision = PolicyApprover([], "ask").review(LIST)
    assert decision.verdict == "stop" and "needs the user's approval" in decision.reason


def test_only_a_rule_accepts_safety_checks() -> None:
    check = SafetyCheck(id="a", code="malicious", message="Careful.")
    action = ComputerAction(action="click", x=1, y=2, pending_safety_checks=[check])
    assert not PolicyApprover([]).review(action).acknowledge
    assert PolicyApprover([{"tool": "click", "verdict": "approve"}]).review(action).acknowledge


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("allow", AutoApprover),
        ("deny", DenyAllApprover),
        ("terminal", TerminalApprover),
        (lambda action: True, CallbackApprover),
        ({"stop": ["x"]}, RuleApprover),
        ({"rules": []}, PolicyApprover),
        ({"default": "stop"}, PolicyApprover),
    ],
)
def test_a_setting_names_an_approver(setting: Any, kind: type) -> None:
    assert type(approver_of(setting)) is kind
    assert type(MultiStepAgent(approver=setting).approver) is kind


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (3, "3 is not an approver"),
        ("alow", "'alow' is not a policy file (such as policy.yaml), and not one of allow"),
        ("missing.yaml", "approver missing.yaml: "),
        ({"rule": []}, "unknown key 'rule'; known are: acknowledge, default, reject, rules, stop"),
        ({"rules": {"tool": "x"}}, "is not a list"),
        ({"rules": [{"tool": "x"}]}, "rule 1, verdict: "),
        (
            {"rules": [{"tool": "x", "verdict": "yes"}]},
            "rule 1, verdict: Input should be 'approve'",
        ),
        ({"rules": [{"tol": "x", "verdict": "stop"}]}, "rule 1, tol: "),
        ({"rules": [{"element": "(", "verdict": "stop"}]}, "rule 1: not a regular expression"),
        ({"rules": ["x"]}, "rule 1: 'x' is not a dict of conditions"),
        ({"default": "maybe"}, "default: 'maybe' is not a verdict"),
    ],
)
def test_wrong_settings_raise_one_line(setting: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MultiStepAgent(approver=setting)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_an_action_has_the_role_and_name_of_its_element() -> None:
    assert (BUY.role, BUY.element_name) == ("button", "Buy now")
    bare = BrowserAction(name="goback")
    assert (bare.role, bare.element_name) == ("", "")
