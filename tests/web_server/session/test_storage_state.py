"""A `storageState` that cannot be used is refused with its reason."""

from __future__ import annotations

from typing import Any

import pytest
import requests

COOKIE = {"name": "a", "value": "b"}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "wrong type": ({"cookies": 5}, "storageState.cookies: expected array, got number"),
    "missing value": ({"cookies": [{"name": "a"}]}, "storageState.cookies[0].value: expected str"),
    "no domain": ({"cookies": [COOKIE]}, "storageState cannot be used: Cookie should have a url"),
    "bad url": ({"cookies": [{**COOKIE, "url": "x"}]}, "storageState cannot be used: Invalid URL"),
    "bad origin": (
        {"origins": [{"origin": "x", "localStorage": [COOKIE]}]},
        "storageState cannot be used: Cannot navigate to invalid URL",
    ),
}


@pytest.mark.browser
@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_storage_state_is_refused_with_its_reason(server_url: str, case: str) -> None:
    state, reason = REFUSED[case]
    reply = requests.post(f"{server_url}/getBrowser", json={"storageState": state}, timeout=120)
    error = reply.json()["error"]
    assert reply.status_code == 400 and reason in error
    assert "\n" not in error and not error.rstrip().endswith(":")


def test_a_refusal_without_a_message_names_the_error() -> None:
    from web_server.session.storage import storage_state_problem

    assert storage_state_problem(KeyError()) == "storageState cannot be used: KeyError"
    heading = ValueError("Error setting storage state:\nInvalid URL:\nCall log:\n  - x")
    assert storage_state_problem(heading) == "storageState cannot be used: Invalid URL"
