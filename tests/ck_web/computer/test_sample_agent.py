"""`ComputerAgent` with the protocol of OpenAI's sample agent, on a computer from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from computer_items import CHECK, computer_call
from drawn_computers import DrawnComputer

from ck_pro import Budget, Journal, Status
from ck_pro.approval import RuleApprover
from ck_pro.exceptions import ConfigError, InputError, SafetyCheckRefused
from ck_pro.journal import read_events
from ck_pro.language import ComputerUseLanguage
from ck_pro.model import Reply
from ck_pro.testing import ScriptedLLM
from ck_web import BrowserComputer, ComputerAgent

GREET = {
    "type": "function",
    "name": "greet",
    "description": "Greet a person.",
    "parameters": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}
NAMES = {"greet", "ask_human", "stop", "computer"}


def click(call_id: str = "c1", x: int = 10, **more: Any) -> dict[str, Any]:
    return computer_call(call_id, type="click", button="left", x=x, y=20, **more)


def message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m1", "role": "assistant", "content": content}


def replies(*items: dict[str, Any]) -> list[Reply]:
    texts = ["\n".join(p["text"] for p in i.get("content", ())) for i in items]
    return [Reply(text, items=[item]) for text, item in zip(texts, items, strict=True)]


def agent(computer: Any, *items: dict[str, Any], **settings: Any) -> ComputerAgent:
    settings = {"language": "computer_use_preview", **settings}
    return ComputerAgent(model=ScriptedLLM(replies(*items)), computer=computer, **settings)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_a_full_turn_returns_the_items_of_the_sample_agent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with DrawnComputer() as computer:
        items = agent(computer, click(), message("Drawn.")).run_full_turn([user("Draw.")])
        assert computer.entered == 1 and computer.calls == [("click", 10, 20, "left")]
    call, output, answer = items
    assert call == click()
    shown = output["output"].pop("image_url")
    assert shown.startswith("data:image/") and output == {
        "type": "computer_call_output",
        "call_id": "c1",
        "acknowledged_safety_checks": [],
        "output": {"type": "input_image"},
    }
    assert (answer["role"], answer["content"][0]["text"]) == ("assistant", "Drawn.")
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["click({'button': 'left', 'x': 10, 'y': 20})", "Drawn."]
    assert items[-1].session is not None and items[-1].session.status is Status.DONE


def test_a_conversation_is_one_session_with_a_journal_and_a_budget(tmp_path: Path) -> None:
    computer = DrawnComputer()
    made = agent(computer, click(), message("One."), click("c2", 50), message("Two."))
    items: list[Any] = [user("First.")]
    with Journal(tmp_path) as journal:
        given: dict[str, Any] = {"print_steps": False, "journal": journal}
        items += made.run_full_turn(items, **given)
        items.append(user("Second."))
        items += made.run_full_turn(items, **given)
    assert [i.get("type") for i in items] == [
        *(None, "computer_call", "computer_call_output", "message"),
        *(None, "computer_call", "computer_call_output", "message"),
    ]
    assert items[3].session.id == items[-1].session.id and len(computer.calls) == 2
    model = made.model
    assert isinstance(model, ScriptedLLM)
    last = json.dumps(model.calls[3].messages)
    assert "First." in last and "Second." in last and last.count('"computer_call"') == 2
    kinds = [e["kind"] for e in read_events(tmp_path)]
    assert kinds.count("screen") == 2 and kinds.count("turn") >= 1


def test_a_conversation_from_a_file_is_continued_by_its_items() -> None:
    first = agent(DrawnComputer(), click(checks=[CHECK]), message("One."), approver=ACKNOWLEDGE)
    items = [user("First."), *first.run_full_turn([user("First.")], print_steps=False)]
    stored = json.loads(json.dumps(items))
    made = agent(DrawnComputer(), message("Two."))
    made.run_full_turn([*stored, user("Second.")], print_steps=False)
    model = made.model
    assert isinstance(model, ScriptedLLM)
    messages = model.calls[0].messages
    (reply,) = [m for m in messages if m.get("items")]
    assert reply["items"] == [click(checks=[CHECK])]
    (output,) = [m for m in messages if m["role"] == "tool"]
    assert output["content"][1]["image_url"]["url"].startswith("data:image/")
    assert output["acknowledged_safety_checks"] == [CHECK]
    texts = json.dumps(messages)
    assert texts.index("Second.") < texts.index("First.") < texts.index("One.")
    as_text = agent(DrawnComputer(), message("Two."), language="computer_use")
    assert "click({'button'" in json.dumps(_prompt(as_text, stored))


def _prompt(made: ComputerAgent, items: list[Any]) -> Any:
    from ck_web.computer.items import messages_of

    return messages_of(items, made.language)


ACKNOWLEDGE = RuleApprover(acknowledge=["orders"])


@pytest.mark.parametrize(
    ("callback", "accepted"),
    [
        (lambda: False, False),
        (lambda: True, True),
        (lambda message: "orders" in message, True),
        (lambda message: None, False),
        ("gives orders".__contains__, False),
    ],
)
def test_any_callable_acknowledges_safety_checks(callback: Any, accepted: bool) -> None:
    computer = DrawnComputer()
    items = [click(checks=[CHECK]), message("Done.")]
    made = agent(computer, *items, acknowledge_safety_check_callback=callback)
    if accepted:
        found = made.run_full_turn([user("t")], print_steps=False)
        assert found[1]["acknowledged_safety_checks"] == [CHECK]
        return
    with pytest.raises(ValueError, match=r"Safety check failed: The page gives orders\."):
        made.run_full_turn([user("t")], print_steps=False)
    with pytest.raises(SafetyCheckRefused):
        made.handle_item(click(checks=[CHECK]))
    assert computer.calls == []


def test_rules_still_apply_beside_the_callback() -> None:
    computer = DrawnComputer()
    made = agent(
        computer,
        click(),
        acknowledge_safety_check_callback=lambda: True,
        approver={"stop": ["action='click'"]},
    )
    assert made.run("t").status is Status.SENSITIVE_ACTION and computer.calls == []


def test_one_item_is_handled_like_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    computer = DrawnComputer()
    made = agent(computer, tools=[GREET])
    (output,) = made.handle_item(click())
    assert (output["type"], output["call_id"]) == ("computer_call_output", "c1")
    call = {"type": "function_call", "call_id": "f1", "name": "greet"}
    assert made.handle_item({**call, "arguments": '{"name": "Ada"}'}) == [
        {"type": "function_call_output", "call_id": "f1", "output": "hello Ada"}
    ]
    (failed,) = made.handle_item({**call, "arguments": "{}"})
    assert "name" in failed["output"]
    batch = {**click("c9"), "action": None}
    batch["actions"] = [{"type": "type", "text": "x"}, {"type": "wait", "ms": 1}]
    assert [o["call_id"] for o in made.handle_item(batch)] == ["c9"]
    assert made.handle_item(message("Hi.")) == [] and capsys.readouterr().out == "Hi.\n"
    assert made.handle_item({"type": "reasoning", "summary": []}) == []
    assert [c[0] for c in computer.calls] == ["click", "greet", "type", "wait"]
    with pytest.raises(InputError, match="needs an open computer"):
        agent("browser").handle_item(click())


def test_a_function_of_the_computer_is_a_tool() -> None:
    made = agent(DrawnComputer(), tools=[GREET])
    assert {f.name for f in made.functions()} == NAMES
    assert "greet(*, name)" in made.functions().definitions()
    tools = made.language.call_kwargs(list(made.functions()))["tools"]
    found = (t["function"] for t in tools if t["type"] == "function")
    assert next(f for f in found if f["name"] == "greet") == {
        k: v for k, v in GREET.items() if k != "type"
    }
    unknown = agent(DrawnComputer(), tools=[{**GREET, "name": "sing"}])
    call = {"type": "function_call", "call_id": "f1", "name": "sing", "arguments": '{"name": "x"}'}
    (failed,) = unknown.handle_item(call)
    assert "this computer has no function 'sing'" in failed["output"]
    with pytest.raises(ConfigError, match="not a function with a name"):
        agent(DrawnComputer(), tools=[{"type": "web_search"}])


def test_the_display_of_the_tool_is_that_of_the_pictures() -> None:
    language = agent(DrawnComputer((2000, 1000))).language
    assert isinstance(language, ComputerUseLanguage)
    assert (language.display_width, language.display_height) == (1280, 640)
    assert language.environment == "linux"
    assert agent("desktop", desktop={"width": 800}).language.display_width == 800
    browser = BrowserComputer(web_env={"viewport_width": 2560, "picture_side": 1000})
    assert agent(browser).language.display_width == 1000


def test_a_wrong_computer_is_reported() -> None:
    with pytest.raises(ConfigError, match="'laptop' is unknown: use 'browser', 'desktop' or a"):
        agent("laptop")
    with pytest.raises(ConfigError, match=r"object is not a Computer: it has no .*screenshot"):
        agent(object())
    with pytest.raises(ConfigError, match="acknowledge_safety_check_callback: not a function"):
        agent("browser", acknowledge_safety_check_callback=3)
    with pytest.raises(InputError, match="None is not an item of the Responses API"):
        agent(DrawnComputer()).handle_item(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the last item must be a message of the user"):
        agent(DrawnComputer()).run_full_turn([])


def test_only_a_browser_needs_the_settings_of_browsers() -> None:
    def used(computer: Any) -> set[str]:
        return agent(computer).used_settings().keys() & {"web_env", "desktop"}

    assert used("browser") == {"web_env"} and used("desktop") == {"desktop"}
    assert used(DrawnComputer()) == set()
    browser = BrowserComputer(web_env={"viewport_width": 900})
    assert agent(browser).used_settings()["web_env"].viewport_width == 900


def test_limits_hold_and_the_answer_says_so() -> None:
    clicks = [click(f"c{n}", n) for n in range(5)]
    made = agent(DrawnComputer(), *clicks, max_steps=2)
    items = made.run_full_turn([user("t")], print_steps=False, budget=Budget(max_steps=2))
    assert items[-1]["role"] == "assistant" and "step" in items[-1]["content"][0]["text"]


def test_a_chat_model_uses_the_same_computer_by_function_calls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    computer = DrawnComputer()

    def call(number: int, name: str, **arguments: Any) -> Reply:
        body = {"name": name, "arguments": json.dumps(arguments)}
        return Reply("", tool_calls=[{"id": f"c{number}", "type": "function", "function": body}])

    script = [call(1, "computer", action="click", x=3, y=4), call(2, "stop", answer="42")]
    made = ComputerAgent(model=ScriptedLLM(script), computer=computer, picture_after_each_act=True)
    items = made.run_full_turn([user("t")], debug=True)
    assert [i["type"] for i in items] == [
        *("function_call", "function_call_output") * 2,
        "message",
    ]
    assert "picture changed in 20x20 at 3,4" in items[1]["output"]
    assert items[-1]["content"][0]["text"] == "42" and "'call_id': 'c1'" in capsys.readouterr().out
    model = made.model
    assert isinstance(model, ScriptedLLM)
    parts = model.calls[1].messages[-1]["content"]
    texts = [p.get("text", "") for p in parts]
    assert (
        "After click 3,4:" in texts and "200 x 150 pixels" in model.calls[1].messages[0]["content"]
    )
    assert sum(p["type"] == "image_url" for p in parts) == 2
