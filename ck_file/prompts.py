"""Prompts of the file agent: plan, action and end."""

from __future__ import annotations

from typing import Any

from ck_pro.agent.prompts import (
    CALL_RULES,
    CODE_RULES,
    IMPOSSIBLE,
    MADE_UP,
    PromptParts,
    action_instruction,
    calls_functions,
    end_instruction,
    plan_instruction,
)
from ck_pro.language import Prompt
from ck_pro.template import register_template

_READING = f"""\
- Begin with describe_file(path). It lists the parts of a file and everything hidden in it: hidden
  rows, tracked changes, notes, pages that are pictures. They can change the answer.
- Search a long document before you read it. Answer from what you read, not from memory.
- When the answer is checked, call stop(output=..., log=...). Give the output in exactly the form
  that the task asks for; the log names the file and the part, and hidden parts that matter.
  {IMPOSSIBLE.format("log")}"""

_CODING = PromptParts(
    "You answer a question about files by writing Python in small steps. Your code calls tools.",
    f"{CODE_RULES}\n{_READING}\n- Compute with Python, over the rows of read_table or with pandas.",
    f"""\
Thought: The sheet may have hidden rows, so I look first, and add up the amounts of all rows.
```python
print(describe_file("{MADE_UP.lower()}.xlsx"))
rows = read_table("{MADE_UP.lower()}.xlsx")
print(rows[:3], len(rows), sum(float(row[2]) for row in rows[1:]))
```""",
)

_CALLING = PromptParts(
    "You answer a question about files by calling functions.",
    f"{CALL_RULES}\n{_READING}",
    "The kind of the file and its hidden parts matter, so call describe_file first.",
)


def _parts(values: dict[str, Any]) -> PromptParts:
    return _CALLING if calls_functions(values) else _CODING


def file_plan(**values: Any) -> Prompt:
    """Prompt of the plan phase."""
    return _parts(values).prompt(values, plan_instruction(values))


def file_action(**values: Any) -> Prompt:
    """Prompt of the action phase."""
    return _parts(values).prompt(values, action_instruction(values))


def file_end(**values: Any) -> Prompt:
    """Prompt of the end phase, for a run that ended without an answer."""
    return _parts(values).prompt(values, end_instruction(values))


register_template("file_plan", file_plan)
register_template("file_action", file_action)
register_template("file_end", file_end)
