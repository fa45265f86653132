"""Prompts of the main agent with and without its sub-agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ck_main.agent import CKAgent
from ck_pro.language import CodeLanguage, FunctionCallingLanguage
from ck_pro.testing import ScriptedLLM


def system_prompt(folder: Path, **settings: Any) -> str:
    """The system prompt of the first model call of a run."""
    seen: list[str] = []

    def reply(messages: list[dict[str, Any]], context: Any) -> str:
        seen.append(messages[0]["content"])
        return "```python\nstop('x')\n```"

    agent = CKAgent(templates={"plan": None}, max_steps=1, **settings)
    agent = agent.updated({"model": {"backend": ScriptedLLM(replies=reply).backend}})
    agent.run("a task", workdir=folder)
    return seen[0]


@pytest.mark.worker
@pytest.mark.parametrize("language", [CodeLanguage(), FunctionCallingLanguage()])
def test_the_prompt_names_sub_agents_only_if_there_are_any(tmp_path: Path, language: Any) -> None:
    alone = system_prompt(tmp_path / "alone", language=language, sub_agents=[])
    assert "A sub-agent" not in alone and "web_agent" not in alone
    assert "call stop" in alone
    usual = system_prompt(tmp_path / "usual", language=language)
    assert "A sub-agent sees only" in usual and "web_agent" in usual.split("# Example")[1]
