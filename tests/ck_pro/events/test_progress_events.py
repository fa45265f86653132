"""Progress events, as `on_event` receives them."""

from __future__ import annotations

import re

from paths import ROOT
from sample_runs import call

from ck_pro import MultiStepAgent, StopTool
from ck_pro.events.progress_events import ProgressEvent, ProgressKind
from ck_pro.testing import ScriptedLLM


def test_a_run_sends_known_kinds_with_the_required_keys() -> None:
    events: list[ProgressEvent] = []
    replies = ["no call", call("send_message", text="Soon."), call("stop", output="4")]
    tools = ["send_message", StopTool()]
    agent = MultiStepAgent(model=ScriptedLLM(replies), tools=tools, language="function_calls")
    agent.run("2 + 2?", on_event=events.append)
    kinds = [event["kind"] for event in events]
    assert kinds[0] == ProgressKind.RUN_STARTED and kinds[-1] == ProgressKind.RUN_ENDED
    assert set(kinds) == set(ProgressKind) - {ProgressKind.MODEL_WAITS, ProgressKind.TRY_ENDED}
    messages = [e["text"] for e in events if e["kind"] == ProgressKind.MESSAGE]
    assert messages == ["Soon."]
    assert all(event.keys() >= {"path", "sid", "step", "tokens", "money"} for event in events)


def test_the_docs_list_every_kind() -> None:
    text = (ROOT / "docs" / "extending.md").read_text()
    listed = set(re.findall(r"\w+", text.partition("- `kind` (a `")[2].partition("\n- `")[0]))
    assert set(ProgressKind) <= listed
