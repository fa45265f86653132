"""The person at the seat gives the rest of an agent or a run to a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from person_browser import opened_page
from playwright.sync_api import expect
from seat_client import Background, SeatClient

from ck_pro import LLM, Journal, MultiStepAgent, Status, StopTool
from ck_pro.exceptions import ModelUnavailable
from ck_pro.journal import read_events
from ck_pro.model import CallContext
from ck_pro.model.seat.seat import close_seats, open_seat
from ck_pro.testing import FakeChatServer, Fault

pytestmark = pytest.mark.integration

STOP = "So.\n```python\nstop('42', '')\n```"
PRICE = {"prompt": 1e6, "completion": 1e6}  # 1 USD per token


@pytest.fixture
def seat(capsys: pytest.CaptureFixture[str]) -> Iterator[SeatClient]:
    yield SeatClient(open_seat().url)
    close_seats()


def asking(sid: str = "s1", workdir: str = "/w/1", **settings: Any) -> Background:
    llm = LLM(call_target="manual:web", max_retry_times=0, **settings)
    context = CallContext(("ck_agent",), "action", sid=sid, workdir=workdir, task="Buy a lamp.")
    return Background(lambda: llm("What next?", context=context))


def give(seat: SeatClient, call: dict[str, Any], target: str, scope: str = "run") -> Any:
    return seat.post(f"/api/call/{call['id']}/hand_over", target=target, scope=scope)


def running(folder: Path, **settings: Any) -> Background:
    agent = MultiStepAgent(name="shopper", tools=[StopTool()], end_always=False, **settings)

    def run() -> Any:
        with Journal(folder / "j") as journal:
            return agent.run("Buy a lamp.", journal=journal, workdir=folder / "work")

    return Background(run)


def calls_in(folder: Path) -> list[Any]:
    return [e["data"] for e in read_events(folder / "j") if e["kind"] == "model_call"]


def spent_in(folder: Path) -> float:
    """Return the money that the run's budget counted."""
    ends = [e["data"] for e in read_events(folder / "j") if e["kind"] == "status"]
    return float(ends[-1]["budget"]["money"])


def test_the_rest_of_a_run_is_recorded_and_charged_as_the_models(
    seat: SeatClient, tmp_path: Path
) -> None:
    with FakeChatServer([STOP]) as model:
        run = running(tmp_path, model=LLM(call_target="manual:web", price=PRICE))
        (call,) = seat.waiting()
        seat.post(f"/api/call/{call['id']}/send", text="So.\n```python\nprint(6 * 7)\n```")
        seat.get("/api/queue")
        call = next(c for c in iter(lambda: seat.waiting()[0], None) if c["step"] == 1)
        assert give(seat, call, model.url) == (200, {"sent": True})
        session = run.result()
    assert session.status is Status.DONE and session.final_results["output"] == "42"
    first, second = calls_in(tmp_path)
    assert (first["model"], first["cost"]) == ("manual", 0) and "target" not in first
    assert (second["model"], second["target"], second["cost"]) == ("fake-model", model.url, 15)
    assert not second["usage"]["estimated"] and spent_in(tmp_path) == 15
    infos = [step["action"]["llm_info"] for step in session.to_dict()["steps"]]
    assert [(info["model"], info.get("target")) for info in infos] == [
        ("manual", None),
        ("fake-model", model.url),
    ]
    _, queue = seat.get("/api/queue")
    assert queue["waiting"] == [] and queue["answered"] == 1
    (handed,) = queue["handed"]
    assert handed["completed"] == 1 and handed["target"] == model.url


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "name a model, such as gpt:NAME, http"),
        ("gtp:x", "unknown scheme; did you mean 'gpt'?"),
        ("manual", "manual is a person; name a model"),
        ("record:/tmp/x.jsonl:manual:web", "is a person"),
        ("gpt:gpt-4.1", "OPENAI_API_KEY|openai"),
        ("replay:/no/such/file", "/no/such/file"),
    ],
)
def test_a_model_is_checked_before_it_gets_the_call(
    seat: SeatClient, monkeypatch: pytest.MonkeyPatch, target: str, message: str
) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    call = asking()
    (one,) = seat.waiting()
    status, found = give(seat, one, target)
    assert status == 400 and "\n" not in found["error"]
    assert any(part in found["error"] for part in message.split("|")), found["error"]
    assert seat.waiting() == [one], "the call waits as before"
    seat.post(f"/api/call/{one['id']}/send", text="done")
    assert call.result() == "done"


def test_a_call_comes_back_if_the_model_fails_at_once(seat: SeatClient) -> None:
    faults = [Fault(status=401, message="wrong key")]
    with FakeChatServer(faults) as model:
        call = asking()
        (one,) = seat.waiting()
        give(seat, one, model.url)
        again = next(c for c in iter(lambda: seat.waiting()[0], None) if c["id"] != one["id"])
        assert again["notice"].startswith(f"{model.url} failed: ") and "401" in again["notice"]
    assert seat.get("/api/queue")[1]["handed"] == []
    seat.post(f"/api/call/{again['id']}/send", text="by hand")
    reply = call.result()
    assert reply == "by hand" and reply.model == "manual" and reply.target == ""


def test_a_later_failure_of_the_model_is_a_failure_of_the_call(seat: SeatClient) -> None:
    with FakeChatServer(["first", Fault(status=503)]) as model:
        call = asking()
        give(seat, seat.waiting()[0], model.url)
        assert call.result() == "first"
        with pytest.raises(ModelUnavailable):
            asking().result()


def test_one_agent_or_all_agents_of_a_task_are_handed_over(seat: SeatClient) -> None:
    with FakeChatServer(["by the model"]) as model:
        first, second = asking("a"), asking("b")
        one = next(c for c in seat.waiting(2) if c["sid"] == "a")
        assert give(seat, one, model.url, "everything")[0] == 400
        give(seat, one, model.url, "agent")
        assert first.result() == asking("a").result() == "by the model"
        (other,) = seat.waiting(1)
        assert other["sid"] == "b"
        third = asking("c", "/w/2")
        seat.waiting(2)
        give(seat, other, model.url, "run")
        assert second.result() == asking("new").result() == "by the model"
        (foreign,) = seat.waiting(1)
        assert foreign["sid"] == "c", "the agents of other tasks wait for the person"
        for handed in seat.get("/api/queue")[1]["handed"]:
            assert seat.post(f"/api/handed/{handed['id']}/take_back")[0] == 200
            assert seat.post(f"/api/handed/{handed['id']}/take_back")[0] == 400
        fourth = asking("a")
        for call in seat.waiting(2):
            seat.post(f"/api/call/{call['id']}/send", text="by hand")
        assert third.result() == fourth.result() == "by hand"


@pytest.mark.browser
def test_a_person_hands_over_and_takes_back_by_keyboard(seat: SeatClient, tmp_path: Path) -> None:
    with FakeChatServer([STOP]) as model, opened_page(open_seat().url, allowed=("400",)) as page:
        run = running(tmp_path, model=LLM(call_target="manual:web"))
        page.get_by_role("button", name="Give the rest to a model").press("Enter")
        dialog = page.get_by_role("dialog", name="Give the rest to a model")
        expect(dialog.get_by_label("Model")).to_be_focused()
        page.keyboard.type("gtp:x")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("did you mean 'gpt'?")
        dialog.get_by_label("Model").fill(model.url)
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        assert run.result().final_results["output"] == "42"
        handed = page.get_by_role("region", name="Handed over")
        expect(handed).to_contain_text("1 call completed, all agents")
        handed.get_by_role("button", name="Take back").press("Enter")
        expect(handed).to_be_hidden()
    assert [call["model"] for call in calls_in(tmp_path)] == ["fake-model"]
