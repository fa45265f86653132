"""Agents with a scripted model."""

from __future__ import annotations

from typing import Any

from ck_pro import MultiStepAgent, StopTool
from ck_pro.language import text_of
from ck_pro.testing import ScriptedLLM


def code(text: str, thought: str = "so") -> str:
    """Return a reply with a thought and code."""
    return f"Thought: {thought}\n```python\n{text}\n```"


def agent(*replies: Any, **settings: Any) -> MultiStepAgent:
    """Return an agent whose model gives these replies; or calls the one function."""
    script = replies[0] if len(replies) == 1 and callable(replies[0]) else list(replies)
    settings = {"name": "main", "tools": [StopTool()], **settings}
    return MultiStepAgent(model=ScriptedLLM(replies=script), **settings)


def helper(*replies: Any, **settings: Any) -> MultiStepAgent:
    """Return an agent for use as a sub-agent."""
    return agent(*replies, **{"name": "helper", "description": "Helps.", **settings})


def prompts(scripted: MultiStepAgent) -> list[str]:
    """Return all prompts of the agent's scripted model, each as one text."""
    model = scripted.model
    assert isinstance(model, ScriptedLLM)
    return ["\n".join(text_of(m["content"]) for m in c.messages) for c in model.calls]
