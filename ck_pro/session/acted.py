"""The actions of a session with their observations, as typed values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ck_pro.events import (
    Action,
    CodeAction,
    MessageAction,
    Observation,
    SuccessObservation,
    TextObservation,
    ThinkAction,
    ToolCall,
    action_from_dict,
    observation_from_dict,
)
from ck_pro.events.observations import CodeObservation
from ck_pro.session.observed import observation_text
from ck_pro.session.rows import Step

Acted = tuple[Action, Observation]


def acted_in(step: Step, message: str | None = None) -> Iterator[Acted]:
    """Yield the actions of a step with their observations.

    Args:
        step: a step of a session or of a row.
        message: the message of the user before the step, if there is one.
    """
    if message is not None:
        yield MessageAction(content=message, source="user"), SuccessObservation()
    action = step["action"]
    recorded = action.get("acted", ())
    if recorded:
        for data in recorded:
            yield action_from_dict(data["action"]), observation_from_dict(data["observation"])
        return
    seen = observation_text(action["observation"])
    if not seen:  # the step did not end
        return
    calls = action.get("llm_info", {}).get("tool_calls") or []
    if calls:
        yield from _calls(calls, action["observation"], seen)
    elif action["code"]:
        done = CodeAction(code=action["code"], thought=action["thought"])
        yield done, CodeObservation(text=seen, error=action.get("error", ""))
    else:
        yield ThinkAction(thought=action["thought"]), TextObservation(text=seen)


def _calls(calls: list[dict[str, Any]], observed: Any, seen: str) -> Iterator[Acted]:
    """Yield the function calls of a step; the results are separate if there is one for each."""
    several = isinstance(observed, list) and len(observed) == len(calls)
    results = [observation_text(o) for o in observed] if several else [seen] * len(calls)
    for call, result in zip(calls, results, strict=True):
        function = call.get("function", call)
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                arguments = {}
        if not isinstance(arguments, Mapping):
            arguments = {}
        name, call_id = str(function.get("name", "")), str(call.get("id", ""))
        made = ToolCall(name=name, arguments=dict(arguments), call_id=call_id)
        yield made, TextObservation(text=result)
