"""Computer use: actions, what replies mean, what prompts become on the wire, safety checks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro import AgentSession, MultiStepAgent, StopTool
from ck_pro.approval import AutoApprover, Guard, RuleApprover, describe
from ck_pro.events import (
    Action,
    ComputerAction,
    ComputerObservation,
    FinishAction,
    SafetyCheck,
    ToolCall,
    action_from_dict,
    observation_from_dict,
)
from ck_pro.events.computer import COMPUTER_ACTIONS
from ck_pro.events.computer_schema import COMPUTER_PARAMETERS, computer_action
from ck_pro.exceptions import (
    CKError,
    ConfigError,
    ContentFiltered,
    GuardStopped,
    InputError,
    ParseError,
    ToolError,
)
from ck_pro.language import (
    LANGUAGES,
    CodeLanguage,
    ComputerUseLanguage,
    compose_prompt,
    language_named,
)
from ck_pro.language.computer import OMITTED
from ck_pro.model import Reply
from ck_pro.model.backends.responses import parse_response
from ck_pro.model.backends.responses_input import request_body, wants_responses
from ck_pro.model.shorten import estimate_tokens, fit
from ck_pro.session import Status, StopReason
from ck_pro.template import TemplatedString
from ck_pro.testing import FakeEnvironment, ScriptedLLM
from ck_pro.tools.computer import ComputerTool

PICTURE = "data:image/png;base64,AAAA"
CHECK = {"id": "sc_1", "code": "malicious_instructions", "message": "The page gives orders."}


def computer_call(call_id: str = "c1", checks: Any = (), **action: Any) -> dict[str, Any]:
    action = action or {"type": "click", "button": "left", "x": 1, "y": 2}
    head = {"type": "computer_call", "id": "cu_1", "call_id": call_id, "status": "completed"}
    return {**head, "action": action, "pending_safety_checks": list(checks)}


def items_language(**settings: Any) -> ComputerUseLanguage:
    return ComputerUseLanguage("computer_use_preview", **settings)


# --- the events ------------------------------------------------------------------------------


numbers = st.sampled_from([0, -1, 640, 0.5, 4999, -3.25])
points = st.fixed_dictionaries({"x": numbers, "y": numbers})
arguments = st.fixed_dictionaries(
    {"action": st.sampled_from(COMPUTER_ACTIONS), "x": numbers, "y": numbers},
    optional={
        "button": st.sampled_from(["left", "right", "wheel", "back", "forward"]),
        "text": st.text(),
        "keys": st.sampled_from([["CTRL", "a"], ["+"], [" "], ["ENTER"]]),
        "path": st.lists(points, min_size=2, max_size=4),
        "scroll_x": numbers,
        "scroll_y": numbers,
        "ms": st.sampled_from([0, 60_000]),
    },
)


@given(arguments)
def test_actions_come_back_from_dicts_and_from_their_arguments(given: dict[str, Any]) -> None:
    try:
        action = computer_action(given, call_id="c")
    except ParseError as e:
        assert "needs" in str(e)
        return
    assert action_from_dict(json.loads(json.dumps(action.to_dict()))) == action
    assert computer_action(action.arguments(), call_id="c") == action
    assert str(action).startswith(f"computer(action='{given['action']}'")


anything = st.none() | st.booleans() | st.floats() | st.text() | st.lists(st.floats())
names = st.text(max_size=8) | st.sampled_from(list(COMPUTER_PARAMETERS["properties"]))


@given(st.dictionaries(names, anything))
def test_any_arguments_are_read_or_refused(given: dict[str, Any]) -> None:
    try:
        computer_action(given)
    except ParseError as e:
        assert "computer" in str(e)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"action": "click", "x": 1}, "click needs y"),
        ({"action": "type"}, "type needs text"),
        ({"action": "keypress"}, "keypress needs keys"),
        ({"action": "drag", "path": [[1, 2]]}, "two points"),
        ({"action": "fly"}, "action: Input should be 'click'"),
        ({"action": "click", "x": float("nan"), "y": 1}, "finite"),
        ({"action": "wait", "ms": -1}, "ms: "),
        ({}, "action: Field required"),
        ({"action": "click", "x": 1, "y": 2, "element": 3}, "takes no 'element'; it takes: action"),
        ({"action": "wait", "target": "link 'harmless'"}, "takes no 'target'"),
        ({"action": "wait", "pending_safety_checks": []}, "takes no 'pending_safety_checks'"),
    ],
)
def test_what_is_no_act(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ParseError, match=says):
        computer_action(given)


def test_other_ways_to_say_it() -> None:
    assert computer_action({"action": "keypress", "keys": "ctrl+a"}).keys == ("ctrl", "a")
    assert computer_action({"action": "keypress", "keys": "+"}).keys == ("+",)
    path = computer_action({"action": "drag", "path": [[1, 2], {"x": 3, "y": 4}]}).path
    assert [(p.x, p.y) for p in path] == [(1, 2), (3, 4)]
    assert computer_action({"action": "wait", "text": None, "x": None}) == ComputerAction(
        action="wait"
    )


def test_observations_come_back() -> None:
    check = SafetyCheck(id="1", code=None, message="m")
    seen = ComputerObservation(
        text="t", image=PICTURE, current_url="u", call_id="c", acknowledged_safety_checks=[check]
    )
    assert observation_from_dict(json.loads(json.dumps(seen.to_dict()))) == seen
    with pytest.raises(InputError, match="picture"):
        observation_from_dict({"kind": "computer_output", "picture": ""})


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


def test_a_batch_of_acts_has_ids_of_its_own() -> None:
    acts = [{"type": "click", "button": "left", "x": 1, "y": 2, "keys": None}, {"type": "wait"}]
    call = {**computer_call(checks=[CHECK]), "action": None, "actions": acts}
    click, wait = ComputerUseLanguage("computer").parse(Reply("", items=[call]))
    assert isinstance(click, ComputerAction) and isinstance(wait, ComputerAction)
    assert (click.call_id, wait.call_id, wait.action) == ("c1", "c1#2", "wait")
    assert wait.pending_safety_checks == click.pending_safety_checks != ()


def test_what_models_are_offered() -> None:
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


def test_languages_by_name() -> None:
    agent = MultiStepAgent(language="computer_use_preview")
    assert agent.language.tool == "computer_use_preview"
    assert isinstance(MultiStepAgent(language="code").language, CodeLanguage)
    for name in LANGUAGES:
        logged = MultiStepAgent(language=name).to_dict()
        assert logged["language"] == name and MultiStepAgent(**logged).language.name == name
    with pytest.raises(ConfigError, match=r"'french' is unknown; known are: code, function_call"):
        MultiStepAgent(language="french")
    assert language_named("computer").call_kwargs([]) == {"tools": [{"type": "computer"}]}


# --- prompts on the wire of the Responses API --------------------------------------------------


def step(n: int, items: list[dict[str, Any]], observation: Any, *screens: Any) -> dict[str, Any]:
    reply = {"output": [*items], "status": "completed", "model": "m"}
    raw = parse_response("x", 200, json.dumps(reply), {})
    info = {"items": raw.items, "tool_calls": raw.tool_calls}
    action = {"thought": "", "code": "c", "observation": observation, "llm_output": raw.text}
    return {"step_idx": n, "action": {**action, "llm_info": info, "screens": list(screens)}}


def shot(call_id: str = "c1", image: str = PICTURE, **facts: Any) -> dict[str, Any]:
    return {"call_id": call_id, "image": image, "current_url": "http://x.test/", **facts}


def wire(language: ComputerUseLanguage, *steps: dict[str, Any], current: Any = "now") -> list[Any]:
    """The input items of a prompt with these finished steps."""
    history = [m for s in steps for m in language.history(s, str(s["action"]["observation"]))]
    template = TemplatedString(lambda: compose_prompt("sys", "task", history, current, "act"))
    params = language.call_kwargs([])
    body = request_body(language.render(template, {}), params)
    assert body["truncation"] == "auto" and body["tools"] == params["tools"]
    return list(body["input"])


def test_a_step_goes_back_as_the_models_own_items() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = computer_call(checks=[CHECK])
    acknowledged = shot(acknowledged_safety_checks=[CHECK])
    sent = wire(items_language(), step(0, [reasoning, call], "clicked", acknowledged))
    assert [i.get("role") or i["type"] for i in sent] == [
        *("system", "user", "reasoning", "computer_call", "computer_call_output", "user", "user")
    ]
    assert sent[2:4] == [reasoning, call]
    assert sent[4] == {
        "type": "computer_call_output",
        "call_id": "c1",
        "acknowledged_safety_checks": [CHECK],
        "output": {
            "type": "computer_screenshot",
            "image_url": PICTURE,
            "current_url": "http://x.test/",
        },
    }
    assert sent[5]["content"] == "clicked" and sent[6]["content"].endswith("now\n\nact")


def test_a_call_without_a_screen_is_told_as_text() -> None:
    refused = step(0, [computer_call()], "not allowed")
    unacknowledged = step(1, [computer_call("c2", checks=[CHECK])], "hm", shot("c2"))
    sent = wire(items_language(), refused, unacknowledged)
    assert [i["role"] for i in sent] == ["system", "user", *["assistant", "user"] * 2, "user"]
    assert '"action": "click"' in sent[2]["content"] and sent[3]["content"] == "not allowed"
    parts = sent[5]["content"]
    assert [p["type"] for p in parts] == ["input_text", "input_image"]


def test_functions_and_batches_are_answered_each() -> None:
    call = {"type": "function_call", "call_id": "f1", "name": "add", "arguments": "{}"}
    acts = [{"type": "click", "button": "left", "x": 1, "y": 2}, {"type": "wait"}]
    batch = {**computer_call("c1"), "action": None, "actions": acts}
    done = step(0, [call, batch], ["3", "clicked", "waited"], shot(), shot("c1#2", PICTURE + "B"))
    sent = wire(items_language(), done)
    assert [i["type"] for i in sent[2:6]] == [
        "function_call",
        "computer_call",
        "function_call_output",
        "computer_call_output",
    ]
    assert sent[4]["output"] == "3" and sent[5]["output"]["image_url"] == PICTURE + "B"
    assert sent[6]["content"] == "clicked\nwaited"


def test_older_screenshots_go_in_batches_and_none_is_sent_twice() -> None:
    def shown(count: int) -> list[str]:
        steps = [
            step(n, [computer_call(f"c{n}")], "ok", shot(f"c{n}", f"{PICTURE}{n}"))
            for n in range(count)
        ]
        image = {"type": "image_url", "image_url": {"url": f"{PICTURE}{count - 1}"}}
        sent = wire(items_language(screenshots=2), *steps, current=[image])
        assert sum(OMITTED in str(i.get("content")) for i in sent) == count - sum(
            i.get("type") == "computer_call_output" for i in sent
        )
        assert "input_image" not in str(sent[-1])
        return [i["call_id"] for i in sent if i.get("type") == "computer_call_output"]

    assert [len(shown(n)) for n in range(1, 8)] == [1, 2, 3, 2, 3, 2, 3]
    assert shown(5) == ["c2", "c3", "c4"]


@pytest.mark.parametrize("limit", [7000, 4000, 2000, 1000, 600, 250])
def test_shortened_prompts_keep_calls_and_outputs_together(limit: int) -> None:
    language, history = items_language(screenshots=10), []
    for n in range(6):
        reasoning = {"type": "reasoning", "id": f"r{n}", "summary": []}
        items = [reasoning, computer_call(f"c{n}")]
        done = step(n, items, "ok " * 50, shot(f"c{n}", f"{PICTURE}{n}"))
        history += language.history(done, done["action"]["observation"])
    prompt = compose_prompt("sys" * 100, "task", history, "now", "act")
    sent, shortened = fit(prompt, limit)
    assert shortened and estimate_tokens(sent) <= limit
    items = request_body(sent, language.call_kwargs([]))["input"]
    calls = [i["call_id"] for i in items if i.get("type") == "computer_call"]
    outputs = [i["call_id"] for i in items if i.get("type") == "computer_call_output"]
    assert calls == outputs == sorted(calls) and len(calls) < 6
    assert sum(i.get("type") == "reasoning" for i in items) == len(calls)
    assert items[-1]["content"] == "now\n\nact"


def test_chat_messages_are_translated() -> None:
    image = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
    call = {"id": "f", "type": "function", "function": {"name": "g", "arguments": {"a": 1}}}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, image]},
        {"role": "assistant", "content": "calling", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "f", "content": "result"},
        {"role": "assistant", "content": [{"type": "text", "text": "said"}]},
    ]
    tool = {"type": "function", "function": {"name": "g", "parameters": {}}}
    params = {
        "tools": [tool],
        "tool_choice": {"type": "function", "function": {"name": "g"}},
        "max_tokens": 9,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "api": "responses",
        "model": "left to the caller",
    }
    assert request_body(messages, params) == {
        "tools": [{"type": "function", "name": "g", "parameters": {}, "strict": False}],
        "tool_choice": {"type": "function", "name": "g"},
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "input": [
            {"role": "system", "content": "s"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": PICTURE, "detail": "low"},
                ],
            },
            {"role": "assistant", "content": "calling"},
            {"type": "function_call", "call_id": "f", "name": "g", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "f", "output": "result"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "said"}]},
        ],
    }


def test_which_api_a_call_goes_to() -> None:
    assert not wants_responses({"tools": [{"type": "function"}]}, [])
    assert wants_responses({"tools": [{"type": "computer"}]}, [])
    assert wants_responses({}, [{"role": "assistant", "content": "", "items": [{}]}])
    assert wants_responses({"api": "responses"}, []) and not wants_responses(
        {"api": "chat", "tools": [{"type": "computer"}]}, []
    )


# --- replies on the wire -----------------------------------------------------------------------


def test_a_response() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    output = [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "I click."}]},
        computer_call(),
    ]
    body = json.dumps({"model": "m-1", "status": "completed", "output": output, "usage": usage})
    raw = parse_response("x", 200, body, {})
    assert (raw.text, raw.reasoning, raw.model) == ("I click.", "hm", "m-1")
    assert (raw.items, raw.finish_reason) == (output, "tool_calls")
    assert raw.usage is not None
    assert (raw.usage.cached_tokens, raw.usage.reasoning_tokens) == (60, 4)
    (call,) = raw.tool_calls
    given = json.loads(call["function"]["arguments"])
    assert given == {"action": "click", "button": "left", "x": 1, "y": 2}


CUT = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
REFUSAL = {"type": "message", "content": [{"type": "refusal", "refusal": "I won't"}]}


@pytest.mark.parametrize(
    ("status", "data", "error", "says"),
    [
        (200, {"error": {"code": "server_error", "message": "oops"}}, "Transient", "oops"),
        (200, {"error": {"code": "invalid_prompt", "message": "bad"}}, "ModelRefused", "bad"),
        (200, {"status": "failed"}, "Transient", "status 'failed'"),
        (429, {"error": {"message": "slow down"}}, "Transient", "slow down"),
        (404, {"error": {"message": "no route"}}, "ModelRefused", "no route"),
        (200, {"choices": []}, "Transient", "not a response of the Responses API"),
        (200, [1], "Transient", "not a response of the Responses API"),
        (200, {"output": [], **CUT}, "FilteredReply", "content filter"),
        (200, {"output": [REFUSAL]}, "FilteredReply", "I won't"),
    ],
)
def test_what_goes_wrong(status: int, data: Any, error: str, says: str) -> None:
    with pytest.raises(CKError, match=says) as caught:
        parse_response("x", status, json.dumps(data), {})
    assert type(caught.value).__name__ == error
    assert isinstance(caught.value, ContentFiltered) == (error == "FilteredReply")


def test_a_reply_that_was_cut_off() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "so fa"}]}
    cut = {"output": [message], "status": "incomplete"}
    data = {**cut, "incomplete_details": {"reason": "max_output_tokens"}}
    assert parse_response("x", 200, json.dumps(data), {}).finish_reason == "length"
    with pytest.raises(CKError, match="truncated or not JSON"):
        parse_response("x", 200, '{"output": [', {})


JUNK: list[Any] = [
    None,
    1,
    "x",
    [],
    {},
    [1],
    [{}],
    {"type": "click"},
    [{"type": "click"}],
    {"x": []},
]
FIELDS = ("content", "action", "actions", "summary", "call_id", "arguments", "name")
junk = st.sampled_from(JUNK)
kinds = st.sampled_from(["message", "computer_call", "function_call", "reasoning", None, {}])
odd_items = st.fixed_dictionaries({"type": kinds}, optional=dict.fromkeys(FIELDS, junk))


@given(st.lists(odd_items | junk, max_size=3) | junk, junk)
def test_no_response_breaks_the_parser(output: Any, other: Any) -> None:
    body = {"output": output, "usage": other, "incomplete_details": other, "status": "incomplete"}
    try:
        raw = parse_response("x", 200, json.dumps(body), {})
    except CKError:
        return
    try:
        items_language().parse(Reply(raw.text, items=raw.items, tool_calls=raw.tool_calls))
    except ParseError:
        pass


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


def test_checks_that_nobody_acknowledges_end_the_run() -> None:
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
    with pytest.raises(ConfigError, match="unknown rules 'halt'"):
        MultiStepAgent(approver={"halt": ["x"]})
    for bad in ({"stop": ["("]}, {"reject": 3}):
        with pytest.raises(ConfigError, match="regular expressions"):
            MultiStepAgent(approver=bad)


def test_rules_see_what_lies_at_the_point() -> None:
    agent = desk(RuleApprover(stop=[r"click.* on button 'Buy"]), computer_call())
    session = agent.run("t")
    assert session.stop_reason is StopReason.GUARD and agent.world.actions == []
    action = ComputerAction(action="click", x=1, y=2, target="link 'Next'")
    assert describe(action) == "computer(action='click', x=1, y=2) on link 'Next'"


def test_a_guard_asks_once_and_passes_on() -> None:
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


def test_a_failed_act_counts_as_an_error_and_has_no_screen() -> None:
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


def test_an_agent_without_a_computer_is_told_so() -> None:
    replies = [Reply("", items=[computer_call()]), Reply("done")]
    session = MultiStepAgent(model=ScriptedLLM(replies), language=items_language()).run("t")
    assert "cannot do an action of kind 'computer'" in session.steps[0]["action"]["observation"]
    with pytest.raises(ToolError, match="outside of a run"):
        ComputerTool()(action="wait")
