"""Scripts for the web agent's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_wire import SHOP, FakeWire

from ck_pro.language import text_of
from ck_pro.model import CallContext
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent, WebEnv

EMPTY_PLAN = "{'completed_list': [], 'todo_list': ['look'], 'experience': [], 'information': []}"
SUMMARY = "{'output': 'partly', 'log': 'time ran out'}"


def code(text: str) -> str:
    """Return a reply with this code."""
    return f"Thought: next\n```python\n{text}\n```"


def web_script(*actions: str) -> ScriptedLLM:
    """Return a model with one action per step (the last one repeats), and a constant plan."""

    def answer(messages: list[dict[str, Any]], context: CallContext) -> str:
        replies = {"plan": EMPTY_PLAN, "end": SUMMARY}
        return code(replies.get(context.phase, actions[min(context.step, len(actions) - 1)]))

    return ScriptedLLM(answer)


def web_agent(wire: FakeWire, model: Any, **settings: Any) -> WebAgent:
    """Return an agent on the fake server, with the shop as start page; it plans separately."""
    web_env = {"server_url": wire.url, "target_url": SHOP, **settings.pop("web_env", {})}
    return WebAgent(model=model, web_env=web_env, **{"planning": "separate", **settings})


def web_env(wire: FakeWire, workdir: Path, url: str = SHOP, **settings: Any) -> WebEnv:
    """Return a browser of the fake server."""
    return WebEnv({"server_url": wire.url, **settings}, workdir=workdir, target_url=url)


def prompt_text(model: ScriptedLLM, index: int) -> str:
    """Return the text of all messages of one prompt."""
    return "\n".join(text_of(m["content"]) for m in model.calls[index].messages)
