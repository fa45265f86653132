"""The seat of the model over HTTP: the queue, the dry run, replies, errors and the end of a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from seat_client import Background, SeatClient

from ck_pro import LLM, Budget
from ck_pro.exceptions import (
    Cancelled,
    ConfigError,
    LimitReached,
    ManualAbort,
    ModelRefused,
    ParseError,
)
from ck_pro.model import CallContext, RawReply, Reply
from ck_pro.model.seat import seat as seats
from ck_pro.model.seat.backend import SeatBackend, read_port
from ck_pro.model.seat.seat import close_seats, open_seat
from ck_pro.model.seat.waiting import common_length
from ck_pro.terminal import asking_for

pytestmark = pytest.mark.integration

PAGE = "[1] RootWebArea 'Shop'\n\t[7] button 'Search'"
PROMPT = [{"role": "system", "content": "Be good."}, {"role": "user", "content": PAGE}]


class Guide:
    """A guide that accepts code without the word 'bad'."""

    def describe(self) -> dict[str, Any]:
        return {"form": "code", "language": "code", "plan": False, "functions": []}

    def compose(self, parts: Any) -> RawReply:
        if parts.get("code") == "(":
            raise ParseError("line 1: not a call")
        return RawReply(parts.get("text") or f"{parts.get('thought', '')}: {parts['code']}")

    def preview(self, reply: Reply) -> list[dict[str, str]]:
        kind = "error" if "bad" in reply else "code"
        return [{"kind": kind, "text": str(reply)}]

    def picture(self) -> dict[str, Any]:
        return {"image": "data:image/webp;base64,AA", "width": 10, "height": 5, "elements": {}}


@pytest.fixture
def seat(capsys: pytest.CaptureFixture[str]) -> Iterator[SeatClient]:
    yield SeatClient(open_seat().url)
    close_seats()


def context(**facts: Any) -> CallContext:
    given = {"agent_path": ("ck_agent", "web_agent"), "phase": "action", "step": 2, "sid": "s1"}
    return CallContext(**{**given, "task": "Buy a lamp.", **facts})


def asking(messages: Any = PROMPT, **facts: Any) -> Background:
    llm = LLM(call_target="manual:web")
    return Background(lambda: llm(messages, context=context(**facts)))


def test_a_reply_is_counted_like_one_from_the_terminal(seat: SeatClient) -> None:
    call = asking(guide=Guide())
    (one,) = seat.waiting()
    assert one["agent"] == "ck_agent/web_agent" and one["step"] == 2 and not one["written"]
    assert one["task"] == "Buy a lamp." and one["tokens"] > 5
    status, found = seat.get(f"/api/call/{one['id']}")
    assert status == 200 and found["messages"] == PROMPT and found["guide"]["form"] == "code"
    path = f"/api/call/{one['id']}"
    _, seen = seat.post(f"{path}/check", thought="So", code="click(7)")
    assert seen["parts"] == [{"kind": "code", "text": "So: click(7)"}]
    _, picture = seat.get(f"{path}/picture")
    assert picture["picture"]["width"] == 10
    _, sent = seat.post(f"{path}/send", thought="So", code="click({{button 'Search'}})")
    assert sent["sent"]
    reply = call.result()
    assert reply == "So: click(7)" and reply.model == "manual" and reply.cost == 0
    assert reply.usage.estimated and reply.usage.completion_tokens and reply.usage.prompt_tokens
    _, queue = seat.get("/api/queue")
    assert queue["waiting"] == [] and queue["answered"] == 1


def test_a_reply_with_an_error_is_sent_only_on_request(
    seat: SeatClient,
) -> None:
    call = asking(guide=Guide())
    (one,) = seat.waiting()
    path = f"/api/call/{one['id']}/send"
    for parts, kind in (
        ({"code": "("}, "refused"),
        ({"code": " "}, "refused"),
        ({"code": "click({{link 'None'}})"}, "refused"),
        ({"code": "bad"}, "error"),
    ):
        _, found = seat.post(path, **parts)
        assert not found["sent"] and found["parts"][0]["kind"] == kind, parts
    assert not seat.post(path, code="(", anyway=True)[1]["sent"]
    assert seat.post(path, code="bad", anyway=True)[1]["sent"]
    assert call.result() == ": bad"
    status, found = seat.post(path, code="again")
    assert status == 400 and "waits no longer" in found["error"]


def test_two_agents_wait_in_one_queue_and_are_answered_in_any_order(seat: SeatClient) -> None:
    first, second = asking(sid="a", workdir="/w/1"), None
    seat.waiting(1)
    second = asking(sid="b", workdir="/w/2", agent_path=("other",))
    one, two = seat.waiting(2)
    assert (one["sid"], two["sid"]) == ("a", "b") and one["run"] != two["run"]
    seat.post(f"/api/call/{two['id']}/send", text="for b")
    assert second.result() == "for b"
    assert [c["sid"] for c in seat.waiting(1)] == ["a"]
    seat.post(f"/api/call/{one['id']}/send", text="for a")
    assert first.result() == "for a"


def test_the_next_prompt_of_an_agent_names_its_unchanged_start(seat: SeatClient) -> None:
    call = asking()
    seat.post(f"/api/call/{seat.waiting()[0]['id']}/send", text="one")
    call.result()
    grown = [*PROMPT[:1], {"role": "user", "content": PAGE + "\nmore"}]
    for sid, same in (("s1", {"messages": 1, "characters": len(PAGE)}), ("s2", None)):
        call = asking(grown, sid=sid)
        (one,) = seat.waiting()
        _, found = seat.get(f"/api/call/{one['id']}")
        assert found["same"] == (same or {"messages": 0, "characters": 0})
        seat.post(f"/api/call/{one['id']}/send", text="two")
        call.result()
    assert common_length([1, 2], [1, 3]) == 1 == common_length("ab", "a")


def test_a_draft_outlives_the_page(seat: SeatClient) -> None:
    call = asking(guide=Guide())
    (one,) = seat.waiting()
    seat.post(f"/api/call/{one['id']}/check", thought="half", code="cli")
    _, found = SeatClient(open_seat().url).get(f"/api/call/{one['id']}")
    assert found["draft"] == {"thought": "half", "code": "cli"}
    assert seat.waiting()[0]["written"]
    seat.post(f"/api/call/{one['id']}/send", text="done")
    call.result()
    status, late = seat.post(f"/api/call/{one['id']}/check", thought="half", code="cli")
    assert (status, late["parts"]) == (200, None), "a page may check a moment after sending"


@pytest.mark.parametrize(("run", "error"), [(False, ModelRefused), (True, ManualAbort)])
def test_the_person_may_end_a_call_without_a_reply(
    seat: SeatClient, run: bool, error: type[Exception]
) -> None:
    call = asking()
    seat.post(f"/api/call/{seat.waiting()[0]['id']}/fail", run=run, reason="too\nhard")
    with pytest.raises(error, match="too hard") as caught:
        call.result()
    assert type(caught.value) is error
    assert seat.waiting(0) == []


def test_a_cancelled_run_and_a_limit_clear_the_queue(seat: SeatClient) -> None:
    cancel = threading.Event()
    call = asking(cancel=cancel)
    seat.waiting(1)
    cancel.set()
    with pytest.raises(Cancelled):
        call.result()
    assert seat.waiting(0) == []
    clock = iter([0.0, 0.0, 0.0])
    budget = Budget(max_seconds=5, clock=lambda: next(clock, 100.0))
    with pytest.raises(LimitReached):
        asking(budget=budget).result()
    assert seat.waiting(0) == []


def test_thinking_time_is_no_time_out_of_the_model(seat: SeatClient) -> None:
    llm = LLM(call_target="manual:web", request_timeout=0.01, max_retry_times=0)
    call = Background(lambda: llm(PROMPT, context=context()))
    (one,) = seat.waiting(1)
    assert seat.get("/api/queue?since=-1")[1]["waiting"] == [one]
    version = seat.get("/api/queue")[1]["version"]
    assert threading.Event().wait(0.2) is False
    assert seat.get("/api/queue")[1]["version"] == version, "the call was repeated or ended"
    seat.post(f"/api/call/{one['id']}/send", text="late")
    assert call.result() == "late"


def test_a_run_is_held_while_the_person_thinks(seat: SeatClient) -> None:
    held: list[str] = []

    @contextmanager
    def holding() -> Iterator[None]:
        with ExitStack() as stack:
            held.append("held")
            stack.callback(held.append, "released")
            yield

    def ask() -> Any:
        with asking_for(threading.Event(), "main", holding):
            return LLM(call_target="manual:web")("hello")

    call = Background(ask)
    (one,) = seat.waiting(1)
    assert held == ["held"]
    seat.post(f"/api/call/{one['id']}/send", text="hi")
    assert call.result() == "hi" and held == ["held", "released"]


def test_the_page_needs_its_key_and_answers_with_a_strict_policy(seat: SeatClient) -> None:
    status, headers, body = seat.page("/")
    assert status == 200 and b"/page/seat.js" in body
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    for name in ("seat.js", "prompt.js", "editor.js", "seat.css"):
        assert seat.page(f"/page/{name}")[0] == 200
    with pytest.raises(AssertionError):
        SeatClient(open_seat().url.partition("?")[0] + "?token=wrong")
    assert seat.post("/api/call/none/send", text="x")[0] == 400
    call = asking()
    (one,) = seat.waiting(1)
    assert seat.post(f"/api/call/{one['id']}/send", text=["x"])[0] == 400
    seat.post(f"/api/call/{one['id']}/send", text="x")
    call.result()


def test_a_process_has_one_seat_whose_address_is_printed_once(
    seat: SeatClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert capsys.readouterr().err.count("You are the model") == 1
    assert open_seat() is open_seat()
    LLM(call_target="manual:web").check()
    assert capsys.readouterr().err == ""
    close_seats()
    url = open_seat().url
    assert capsys.readouterr().err == f"You are the model: open {url}\n"


def test_a_used_port_is_one_clear_line(seat: SeatClient) -> None:
    port = int(open_seat().url.split(":")[2].partition("/")[0])
    with pytest.raises(ConfigError, match=rf"manual:web: cannot listen on .*:{port}: .* free one"):
        LLM(call_target=f"manual:web?port={port}").check()
    assert list(seats._seats) == [0]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("", "unknown argument ''"),
        ("wep", "unknown argument 'wep'"),
        ("web?prot=1", "unknown argument"),
        ("web?port=", "not a number from 1 to 65535"),
        ("web?port=0", "not a number from 1 to 65535"),
        ("web?port=\u0663", "not a number from 1 to 65535"),
        ("web?port=70000", "not a number from 1 to 65535"),
    ],
)
def test_a_malformed_argument_is_reported(argument: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_port(argument)
    assert read_port("web?port=8123") == 8123
    assert SeatBackend().describe() == "a person in the browser (manual:web)"
