"""The time limit of a request includes the time that the request asks for."""

from __future__ import annotations

from web_server.deadline import OBSERVE_SECONDS, REQUEST_SECONDS, Deadline


def test_a_wait_may_last_as_long_as_the_request_asks() -> None:
    usual = REQUEST_SECONDS - OBSERVE_SECONDS
    assert usual - 1 < Deadline().to_act() <= usual
    assert usual + 59 < Deadline(60).to_act() <= usual + 60
    assert Deadline(60).to_act(5) == 5
    assert Deadline(60).to_observe() > 60
