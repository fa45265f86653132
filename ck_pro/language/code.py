"""`CodeLanguage`: code blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.events import Action, CodeAction
from ck_pro.exceptions import ParseError
from ck_pro.language.base import AgentLanguage
from ck_pro.language.parsing import parse_thought_code, was_cut_off
from ck_pro.language.prompt import Message


class CodeLanguage(AgentLanguage):
    """Thoughts in prose, then one block of Python: the native language of ck-pro's agents."""

    name = "code"

    def parse(self, reply: str) -> list[Action]:
        """One `CodeAction` with all the code of the reply.

        Raises:
            ParseError: there is none, or only the beginning of it: half a piece of code is not run.
        """
        parsed = parse_thought_code(reply)
        last_line = parsed["code"].rstrip().rpartition("\n")[2].strip()
        if was_cut_off(reply) and reply.rstrip().endswith(last_line):  # no fence after the code
            raise ParseError(
                "The reply was cut off at its greatest length, and its code was not run. Write "
                "less at a time."
            )
        if not parsed["code"].strip():
            raise ParseError(
                "The reply holds no code. Write your thought, then one block of Python between "
                "```python and ```."
            )
        return [CodeAction(**parsed)]

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """The step's thought and code as the model's turn, the observation as the user's."""
        action = step["action"]
        reply = f"Thought: {action['thought']}\n```python\n{action['code']}\n```"
        if not action["code"]:  # a reply without code is shown as it was
            reply = action["thought"]
        seen = f"Observation of step {step['step_idx']}:\n{observation}"
        return [{"role": "assistant", "content": reply}, {"role": "user", "content": seen}]
