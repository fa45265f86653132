"""`CodeLanguage`: code blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.events import Action, CodeAction
from ck_pro.language.base import OBSERVATION, AgentLanguage
from ck_pro.language.parsing import code_of, parse_thought_code
from ck_pro.language.prompt import Message, fenced


class CodeLanguage(AgentLanguage):
    """Thoughts in prose, then one block of Python: the native language of ck-pro's agents."""

    name = "code"

    def parse(self, reply: str) -> list[Action]:
        """One `CodeAction` with all the code that is the model's own.

        Raises:
            ParseError: see `code_of`.
        """
        code, note = code_of(reply)
        return [CodeAction(code=code, thought=parse_thought_code(reply)["thought"], note=note)]

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """The step's thought and code as the model's turn, the observation as the user's."""
        action = step["action"]
        reply = f"Thought: {action['thought']}\n```python\n{action['code']}\n```"
        if not action["code"]:  # a reply without code is shown as it was
            reply = action["thought"]
        seen = f"{OBSERVATION} {step['step_idx']}:\n{fenced(observation)}"
        return [{"role": "assistant", "content": reply}, {"role": "user", "content": seen}]
