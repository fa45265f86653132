"""Scripts for the web agent's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_wire import SHOP, FakeWire

from ck_pro.language import text_of
from ck_pro.model import CallContext
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent, WebEnv

NOTHING_YET = "{'completed_list': [], 'todo_list': ['look'], 'experience': [], 'information': []}"
SUMMED_UP = "{'output': 'partly', 'log': 'time ran out'}"


def code(text: str) -> str:
    """A reply with this code."""
    return f"Thought: go on\n```python\n{text}\n```"


def web_script(*actions: str) -> ScriptedLLM:
    """A model with an action for each step (the last one again and again), and the same plan."""

    def answer(messages: list[dict[str, Any]], context: CallContext) -> str:
        replies = {"plan": NOTHING_YET, "end": SUMMED_UP}
        return code(replies.get(context.phase, actions[min(context.step, len(actions) - 1)]))

    return ScriptedLLM(answer)


def web_agent(wire: FakeWire, model: Any, **settings: Any) -> WebAgent:
    """An agent on the fake server, which begins at the shop."""
    web_env = {"server_url": wire.url, "target_url": SHOP, **settings.pop("web_env", {})}
    return WebAgent(model=model, web_env=web_env, **settings)


def web_env(wire: FakeWire, workdir: Path, url: str = SHOP, **settings: Any) -> WebEnv:
    """A browser of the fake server."""
    return WebEnv({"server_url": wire.url, **settings}, workdir=workdir, target_url=url)


def prompt_text(model: ScriptedLLM, index: int) -> str:
    """The text of one prompt, all messages."""
    return "\n".join(text_of(m["content"]) for m in model.calls[index].messages)
