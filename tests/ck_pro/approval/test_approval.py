"""Failing and slow approvers, masked secrets, and the journal of reviewed actions."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ck_pro import AgentSession, Journal, MultiStepAgent, Status, StopTool
from ck_pro.approval import (
    AutoApprover,
    Decision,
    Guard,
    MaskingApprover,
    RuleApprover,
    describe,
    require_approval,
)
from ck_pro.events import Action, BrowserAction, BrowserObservation, ComputerAction, ToolCall
from ck_pro.exceptions import GuardStopped
from ck_pro.journal import read_events
from ck_pro.journal.masking import Secrets
from ck_pro.session import StopReason
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tool import Tool


class Page(FakeEnvironment):
    """A page with one button; `named` returns the name of the button."""

    def __init__(self) -> None:
        super().__init__(respond=lambda action: BrowserObservation(text="clicked"))
        self.asked = 0

    def named(self, action: Action) -> Action:
        self.asked += 1
        return action.model_copy(update={"element": "button 'Buy'", "url": "http://shop.test/"})


class Click(Tool):
    """Clicks on the page."""

    name = "click"
    acts_by_run = True
    on_resume = "never"

    def execute(self, id: int) -> str:
        """Click [id]."""
        return ""

    def bind(self, run: Any) -> Any:
        def click(id: int) -> str:
            if id < 0:
                raise ValueError("no such number")
            return str(run.act(BrowserAction(name="click", target=str(id))))

        return click


class Clicker(MultiStepAgent):
    """An agent with that page."""

    def init_run(self, session: AgentSession) -> None:
        session.run.environment = self.page = Page()


class Deciding:
    """An approver from a function."""

    def __init__(self, decide: Any) -> None:
        self.decide, self.seen = decide, []

    def review(self, action: Action) -> Any:
        self.seen.append(describe(action))
        return self.decide(action)


def clicker(approver: Any, *code: str) -> Clicker:
    model = ScriptedLLM([f"```python\n{one}\n```" for one in (*code, "stop('done')")])
    return Clicker(model=model, tools=[Click(), StopTool()], approver=approver)


def test_rules_match_the_description_of_an_action() -> None:
    typed = BrowserAction(
        name="type",
        target="4",
        value="lamp",
        value_name="content",
        arguments={"enter": True, "hint": ""},
        element="textbox 'Find'; Enter submits button 'Buy'",
        url="http://shop.test/",
    )
    assert describe(typed) == (
        "type(id=4, content='lamp', enter=True) on textbox 'Find'; Enter submits button 'Buy' "
        "at http://shop.test/"
    )
    act = ComputerAction(action="click", x=1, y=2, target="link 'A'", url="http://shop.test/")
    assert describe(act).endswith("on link 'A' at http://shop.test/")
    goto = BrowserAction(name="goto", value="http://x.test/", value_name="url")
    assert describe(goto) == "goto(url='http://x.test/')"


def test_targets_are_described_only_for_an_approver() -> None:
    page = Page()
    click = BrowserAction(name="click", target="3")
    Guard(page, AutoApprover()).execute(click)
    assert page.asked == 0
    Guard(page, RuleApprover(stop=["never"])).execute(click)
    assert page.asked == 1


def _exits(action: Action) -> Decision:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (lambda action: 1 / 0, "on button 'Buy' at http://shop.test/: the approver failed: Zero"),
        (_exits, "the approver failed: SystemExit: 3"),
        (lambda action: None, "the approver returned None"),
        (lambda action: "approve", "the approver returned 'approve'"),
        (lambda action: Decision("yes"), "which is not a Decision"),  # type: ignore[arg-type]
    ],
)
def test_a_failing_approver_stops_the_run(decide: Any, said: str) -> None:
    page = Page()
    with pytest.raises(GuardStopped) as stopped:
        Guard(page, Deciding(decide)).execute(BrowserAction(name="click", target="3"))
    assert said in str(stopped.value) and page.actions == []


def test_approvers_see_no_secrets() -> None:
    masked = Secrets(["sk-1234567890"]).masked
    inner = Deciding(lambda action: RuleApprover(stop=["send"]).review(action))
    call = ToolCall(name="send", arguments={"text": "my key is sk-1234567890"})
    said = MaskingApprover(inner, masked).review(call)
    assert inner.seen == ["send(text='my key is ***')"] and "sk-" not in said.reason
    with pytest.raises(GuardStopped, match=r"decision: send\(text='my key is \*\*\*'\): the rule"):
        require_approval(MaskingApprover(inner, masked), call)
    password = BrowserAction(name="type", target="1", value="hunter2", secret=True)
    approver = Deciding(lambda action: Decision())
    page = Page()
    Guard(page, approver).execute(password)
    assert "hunter2" not in approver.seen[0]
    (done,) = page.actions
    assert isinstance(done, BrowserAction) and done.value == "hunter2"


def test_a_run_masks_the_secrets_of_its_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "token-12345")
    approver = Deciding(lambda action: Decision())
    agent = clicker(approver, "click(3)")
    agent.model = ScriptedLLM(["```python\nstop('token-12345')\n```"])
    agent.run("t")
    assert approver.seen == ["stop(output='***')"]


def test_an_action_is_reviewed_and_recorded_once(tmp_path: Any) -> None:
    approver = Deciding(lambda action: Decision())
    agent = clicker(approver, "print(click(3))")
    with Journal(tmp_path) as journal:
        session = agent.run("t", journal=journal)
    assert session.status is Status.DONE and len(agent.page.actions) == 1
    assert approver.seen[0] == "click(id=3) on button 'Buy' at http://shop.test/"
    assert len(approver.seen) == 2  # with the call of stop
    calls = [e["data"] for e in read_events(tmp_path) if e["kind"] in ("started", "call")]
    assert [(c["name"], c["call"], "value" in c) for c in calls] == [
        ("click", 0, False),
        ("click", 0, True),
        ("stop", 1, False),
        ("stop", 1, True),
    ]


def test_a_stopped_action_is_not_recorded_as_started(tmp_path: Any) -> None:
    agent = clicker({"stop": ["Buy"]}, "click(3)")
    with Journal(tmp_path) as journal:
        session = agent.run("t", journal=journal)
    assert session.stop_reason is StopReason.GUARD and agent.page.actions == []
    assert not [e for e in read_events(tmp_path) if e["kind"] in ("started", "call")]


def test_a_call_that_fails_before_it_acts_is_recorded(tmp_path: Any) -> None:
    agent = clicker(None, "click(-1)")
    with Journal(tmp_path) as journal:
        agent.run("t", journal=journal)
    calls = [e["data"] for e in read_events(tmp_path) if e["kind"] in ("started", "call")]
    assert [(c["name"], c.get("error", "")) for c in calls[:2]] == [
        ("click", ""),
        ("click", "ValueError: no such number"),
    ]


def test_nothing_runs_after_a_cancel_during_the_review() -> None:
    cancel = threading.Event()

    def decide(action: Action) -> Decision:
        cancel.set()
        return Decision()

    agent = clicker(Deciding(decide), "click(3)")
    session = agent.run("t", cancel=cancel)
    assert session.status is Status.IN_PROGRESS and agent.page.actions == []
