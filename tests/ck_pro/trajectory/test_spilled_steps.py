"""Sessions with spilled steps equal sessions in memory."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ck_pro.journal import LazyList
from ck_pro.session import sessions_from_events
from ck_pro.trajectory.reading.big_json import plain
from ck_pro.trajectory.reading.spill import StepStore

PROMPTS = LazyList(range(9), lambda n: {"role": "user", "content": f"message {n}"})
TEXTS = st.text(st.sampled_from("ab\ud800\U0001f600\x00"), max_size=9)
DATA = {
    "step": st.just({}),
    "world": TEXTS.map(lambda t: {"web_state_before": t}),
    "plan": TEXTS.map(lambda t: {"state": {"information": [t]}}),
    "model_call": TEXTS.map(lambda t: {"messages": PROMPTS, "output": t}),
    "sub_session": st.just({"session": "below"}),
    "observation": TEXTS.map(lambda t: {"observation": [t, {"output": t, "session": "below"}]}),
    "end": TEXTS.map(lambda t: {"final_results": {"output": t, "log": ""}}),
    "status": st.just({"status": "done", "stop_reason": "finished"}),
    "resumed": st.booleans().map(lambda redo: {"redo": redo}),
}


@st.composite
def runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Random events of a session and a sub-session; each may resume after its end."""
    events = []
    for sid, parent in (("main", None), ("below", "main")):
        events.append({"kind": "session", "sid": sid, "parent": parent, "data": {"task": sid}})
    started = set()
    for sid in draw(st.lists(st.sampled_from(["main", "below"]), max_size=30)):
        kind = draw(st.sampled_from(sorted(DATA))) if sid in started else "step"
        started.add(sid)
        data = draw(DATA[kind])
        events.append({"kind": kind, "sid": sid, "parent": None, "phase": "action", "data": data})
    return [{**event, "time": n} for n, event in enumerate(events)]


@given(runs())
def test_spilled_sessions_are_complete(events: list[dict[str, Any]]) -> None:
    expected = sessions_from_events(events)["main"].to_dict()
    spilled = sessions_from_events(events, StepStore().new_session)["main"].to_dict()
    assert plain(spilled) == plain(expected)
    assert plain(spilled) == plain(expected)  # steps can be read repeatedly
