"""Computer actions and observations: parsing, validation, dicts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from computer_items import PICTURE
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.events import (
    ComputerAction,
    ComputerObservation,
    SafetyCheck,
    action_from_dict,
    observation_from_dict,
)
from ck_pro.events.computer import COMPUTER_ACTIONS
from ck_pro.events.computer_schema import COMPUTER_PARAMETERS, computer_action
from ck_pro.exceptions import (
    InputError,
    ParseError,
)

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
def test_actions_round_trip_through_dicts_and_arguments(given: dict[str, Any]) -> None:
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
def test_any_arguments_are_parsed_or_raise_a_parse_error(given: dict[str, Any]) -> None:
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
def test_invalid_arguments_are_reported(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ParseError, match=says):
        computer_action(given)


def test_alternative_forms_of_arguments_are_accepted() -> None:
    assert computer_action({"action": "keypress", "keys": "ctrl+a"}).keys == ("ctrl", "a")
    assert computer_action({"action": "keypress", "keys": "+"}).keys == ("+",)
    path = computer_action({"action": "drag", "path": [[1, 2], {"x": 3, "y": 4}]}).path
    assert [(p.x, p.y) for p in path] == [(1, 2), (3, 4)]
    assert computer_action({"action": "wait", "text": None, "x": None}) == ComputerAction(
        action="wait"
    )


def test_observations_round_trip_through_dicts() -> None:
    check = SafetyCheck(id="1", code=None, message="m")
    seen = ComputerObservation(
        text="t", image=PICTURE, current_url="u", call_id="c", acknowledged_safety_checks=[check]
    )
    assert observation_from_dict(json.loads(json.dumps(seen.to_dict()))) == seen
    with pytest.raises(InputError, match="picture"):
        observation_from_dict({"kind": "computer_output", "picture": ""})


@pytest.mark.parametrize("given", [None, [], "click", 3])
def test_data_that_is_no_dict_is_reported(given: Any) -> None:
    for read in (action_from_dict, observation_from_dict):
        with pytest.raises(InputError, match="is not a dict"):
            read(given)
