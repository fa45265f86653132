"""Computer use: actions of replies, safety checks and guards."""

from __future__ import annotations

from typing import Any

import pytest
from computer_items import CHECK, PICTURE, computer_call, items_language

from ck_pro import AgentSession, MultiStepAgent, StopTool
from ck_pro.approval import AutoApprover, Guard, RuleApprover, describe
from ck_pro.events import (
    Action,
    ComputerAction,
    ComputerObservation,
    FinishAction,
    SafetyCheck,
    ToolCall,
    observation_from_dict,
)
from ck_pro.events.computer_schema import COMPUTER_PARAMETERS
from ck_pro.exceptions import (
    ConfigError,
    GuardStopped,
    ParseError,
    ToolError,
)
from ck_pro.language import (
    LANGUAGES,
    CodeLanguage,
    ComputerUseLanguage,
    language_named,
)
from ck_pro.model import Reply
from ck_pro.model.backends.responses_input import request_body
from ck_pro.session import Status, StopReason
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tools.computer import ComputerTool

# --- replies ---------------------------------------------------------------------------------


def test_items_become_actions_in_order() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        computer_call(checks=[CHECK]),
        {"type": "function_call", "call_id": "c2", "name": "goto", "arguments": '{"url": "u"}'},
    ]
    click, goto = items_language().parse(Reply("", items=items))
    assert isinstance(click, ComputerAction)
    assert (click.action, click.x, click.y, click.call_id) == ("click", 1, 2, "c1")
    assert click.pending_safety_checks == (SafetyCheck(**CHECK),)
    assert goto == ToolCall(name="goto", arguments={"url": "u"}, call_id="c2")
    assert items_language().parse("all done") == [FinishAction(output="all done")]
    with pytest.raises(ParseError, match="empty"):
        items_language().parse(Reply("", items=items[:1]))


def test_the_actions_of_a_batch_have_separate_ids() -> None:
    acts = [{"type": "click", "button": "left", "x": 1, "y": 2, "keys": None}, {"type": "wait"}]
    call = {**computer_call(checks=[CHECK]), "action": None, "actions": acts}
    click, wait = ComputerUseLanguage("computer").parse(Reply("", items=[call]))
    assert isinstance(click, ComputerAction) and isinstance(wait, ComputerAction)
    assert (click.call_id, wait.call_id, wait.action) == ("c1", "c1#2", "wait")
    assert wait.pending_safety_checks == click.pending_safety_checks != ()


def test_the_computer_is_a_function_or_a_built_in_tool() -> None:
    functions = [ComputerTool(), StopTool()]
    names = [t["function"]["name"] for t in ComputerUseLanguage().call_kwargs(functions)["tools"]]
    assert names == ["computer", "stop"]
    preview = items_language(display_width=800, display_height=600).call_kwargs(functions)["tools"]
    shown = {"display_width": 800, "display_height": 600, "environment": "browser"}
    assert preview[0] == {"type": "computer_use_preview", **shown}
    assert [t["type"] for t in preview] == ["computer_use_preview", "function"]
    assert ComputerUseLanguage("computer").call_kwargs(functions)["tools"][0] == {
        "type": "computer"
    }
    assert set(ComputerTool().parameters["properties"]) == set(COMPUTER_PARAMETERS["properties"])


def test_a_setting_selects_the_language() -> None:
    agent = MultiStepAgent(language="computer_use_preview")
    assert agent.language.tool == "computer_use_preview"
    assert isinstance(MultiStepAgent(language="code").language, CodeLanguage)
    for name in LANGUAGES:
        logged = MultiStepAgent(language=name).to_dict()
        assert logged["language"] == name and MultiStepAgent(**logged).language.name == name
    with pytest.raises(ConfigError, match=r"'french' is unknown; known are: code, function_call"):
        MultiStepAgent(language="french")
    assert language_named("computer").call_kwargs([]) == {"tools": [{"type": "computer"}]}


# --- safety checks and guards ------------------------------------------------------------------


class Desk(MultiStepAgent):
    """An agent with a fake computer, whose elements are known by name."""

    def init_run(self, session: AgentSession) -> None:
        session.run.environment = self.world = _Desk()


class _Desk(FakeEnvironment):
    def __init__(self) -> None:
        super().__init__(respond=lambda action: ComputerObservation(text="ok", image=PICTURE))

    def named(self, action: Action) -> Action:
        return action.model_copy(update={"target": "button 'Buy now'"})


def desk(approver: Any, *items: Any) -> Desk:
    replies = [Reply("", items=[i]) for i in items] + [Reply("done")]
    return Desk(model=ScriptedLLM(replies), language=items_language(), approver=approver)


def test_unacknowledged_safety_checks_end_the_run() -> None:
    for approver in (None, AutoApprover(), RuleApprover(acknowledge=["^sensitive_domain"])):
        agent = desk(approver, computer_call(checks=[CHECK]))
        session = agent.run("t")
        assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)
        assert "The page gives orders." in session.message and agent.world.actions == []


@pytest.mark.parametrize(
    "approver", [AutoApprover(acknowledge=True), RuleApprover(acknowledge=["^malicious.*orders"])]
)
def test_acknowledged_checks_are_sent_back(approver: Any) -> None:
    agent = desk(approver, computer_call(checks=[CHECK]))
    session = agent.run("t")
    assert session.status is Status.DONE
    (action,) = agent.world.actions
    assert isinstance(action, ComputerAction) and action.pending_safety_checks
    model = agent.model
    assert isinstance(model, ScriptedLLM)
    sent = request_body(model.calls[1].messages, model.calls[1].params)["input"]
    (output,) = [i for i in sent if i.get("type") == "computer_call_output"]
    assert output["acknowledged_safety_checks"] == [CHECK]


def test_rules_come_from_settings() -> None:
    rules = {"stop": "button 'Buy", "acknowledge": ["orders"]}
    agent = desk(rules, computer_call(checks=[CHECK]))
    assert agent.run("t").stop_reason is StopReason.GUARD
    assert desk({"acknowledge": ["orders"]}, computer_call(checks=[CHECK])).run("t").finish
    with pytest.raises(ConfigError, match="unknown key 'halt'"):
        MultiStepAgent(approver={"halt": ["x"]})
    for bad in ({"stop": ["("]}, {"reject": 3}):
        with pytest.raises(ConfigError, match="regular expressions"):
            MultiStepAgent(approver=bad)


def test_rules_match_the_element_at_the_point() -> None:
    agent = desk(RuleApprover(stop=[r"click.* on button 'Buy"]), computer_call())
    session = agent.run("t")
    assert session.stop_reason is StopReason.GUARD and agent.world.actions == []
    action = ComputerAction(action="click", x=1, y=2, target="link 'Next'")
    assert describe(action) == "computer(action='click', x=1, y=2) on link 'Next'"


def test_a_guard_reviews_each_action_once() -> None:
    asked: list[Action] = []

    class Asking(AutoApprover):
        def review(self, action: Action) -> Any:
            asked.append(action)
            return super().review(action)

    world = _Desk()
    guard = Guard(world, Asking())
    assert guard.execute(ComputerAction(action="wait")).text == "ok"
    assert len(asked) == 1 and guard.named(asked[0]) == asked[0]
    pending = [{"id": "sc_2", "code": "unknown"}]
    with pytest.raises(GuardStopped, match="unknown"):
        guard.execute(ComputerAction(action="wait", pending_safety_checks=pending))


def test_a_failed_action_is_an_error_without_a_screenshot() -> None:
    class Broken(MultiStepAgent):
        def init_run(self, session: AgentSession) -> None:
            respond = {"click": "error"}.get
            session.run.environment = FakeEnvironment(
                respond=lambda a: observation_from_dict({"kind": respond(a.action), "text": "no"})
            )

    replies = [Reply("", items=[computer_call()]), Reply("done")]
    session = Broken(model=ScriptedLLM(replies), language=items_language()).run("t")
    action = session.steps[0]["action"]
    assert (action["observation"], action["error"]) == ("no", "ActionFailed")
    assert "screens" not in action and session.status is Status.DONE


def test_a_computer_call_without_a_computer_is_reported() -> None:
    replies = [Reply("", items=[computer_call()]), Reply("done")]
    session = MultiStepAgent(model=ScriptedLLM(replies), language=items_language()).run("t")
    assert "cannot do an action of kind 'computer'" in session.steps[0]["action"]["observation"]
    with pytest.raises(ToolError, match="only in a run"):
        ComputerTool()(action="wait")
