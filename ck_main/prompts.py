"""Prompts of the main agent: plan, action, and the optional end."""

from __future__ import annotations

from typing import Any

from ck_pro.agent.prompts import (
    CALL_RULES,
    CODE_RULES,
    IMPOSSIBLE,
    MADE_UP,
    MATERIAL_RULE,
    PromptParts,
    action_instruction,
    calls_functions,
    end_instruction,
    plan_instruction,
)
from ck_pro.language import Prompt
from ck_pro.template import register_template

_SUB_AGENTS = """\
- A sub-agent sees only the task text that you pass. Include all that it needs, such as exact URLs,
  and the form of the answer. Pass a question for one sub-agent whole, in one call."""

_STOP = f"""\
- Check the answer, then call stop(output=..., log=...). Give the output in exactly the form that
  the task asks for.
  {IMPOSSIBLE.format("log")}"""

_CODING = PromptParts(
    """\
You are the main agent. You solve the user's task by writing Python in small steps. Your code calls
sub-agents and tools as functions.""",
    f"""\
{CODE_RULES}
{_SUB_AGENTS}
- A sub-agent returns 'output' and 'log'. An empty output means failure; the log gives the reason.
- Independent sub-agent calls can run in parallel threads (concurrent.futures).
- Compute with Python, not in your head.
{_STOP}""",
    f"""\
Thought: The web agent can answer this alone. If its answer has the right form, it is the output.
```python
result = web_agent(task="Answer with the price on http://{MADE_UP.lower()}.example, digits only.")
print(result)
if result["output"].isdigit():
    stop(output=result["output"], log=result["log"])
```""",
)

_CODING_ALONE = PromptParts(
    """\
You are the main agent. You solve the user's task by writing Python in small steps. Your code calls
tools as functions.""",
    f"""\
{CODE_RULES}
- Compute with Python, not in your head.
{_STOP}""",
    f"""\
Thought: {MADE_UP} sold n * n lamps on day n, for ten days. Python can add them up.
```python
{MADE_UP.lower()} = sum(n * n for n in range(1, 11))
stop(output={MADE_UP.lower()}, log="computed with Python")
```""",
)

_SMALL = PromptParts(
    "You solve the task by writing Python. Your code runs, and you see what it printed.",
    f"""\
- Reply with one short thought, then one Python block between ```python and ```. Variables persist.
- Files are in the working directory: open("NAME").read(). Count and compute with Python.
- Only for a question about web pages: result = web_agent(task="the whole question with its URL").
  Its answer is result["output"].
- When you know the answer, call stop(output=...) with the answer only. This ends the task.
- If it cannot be done, call stop(output="not available", log="the reason").
{MATERIAL_RULE}""",
    f"""\
Thought: The file has one number per line. Python adds them up.
```python
numbers = [float(line) for line in open("{MADE_UP.lower()}.txt")]
stop(output=sum(numbers), log="added up with Python")
```""",
)

_CALLING = PromptParts(
    """\
You are the main agent. You solve the user's task in small steps by calling functions: tools and
sub-agents.""",
    f"""\
{CALL_RULES}
{_SUB_AGENTS}
- A sub-agent returns 'output' and 'log'. Check the output before you use it. An empty output means
  failure; the log gives the reason.
{_STOP}""",
    "The population is on the town's page, so call web_agent with the task to open that page and "
    "report the population, digits only.",
)


_CALLING_ALONE = PromptParts(
    "You are the main agent. You solve the user's task in small steps by calling functions.",
    f"""\
{CALL_RULES}
{_STOP}""",
    "The answer is known and checked, so call stop with it.",
)


def _parts(values: dict[str, Any]) -> PromptParts:
    if values.get("has_sub_agents", True):
        return _CALLING if calls_functions(values) else _CODING
    return _CALLING_ALONE if calls_functions(values) else _CODING_ALONE


def ck_plan(**values: Any) -> Prompt:
    """Prompt of the plan phase."""
    return _parts(values).prompt(values, plan_instruction(values))


def ck_action(**values: Any) -> Prompt:
    """Prompt of the action phase: ask for the next code or the next calls."""
    return _parts(values).prompt(values, action_instruction(values))


def ck_end(**values: Any) -> Prompt:
    """Prompt of the end phase: ask for the final answer; `CKAgent` does not use it by default."""
    return _parts(values).prompt(values, end_instruction(values))


def ck_small(**values: Any) -> Prompt:
    """Prompt of the action phase for small models: short, with an example of one whole step."""
    if calls_functions(values):
        return ck_action(**values)
    return _SMALL.prompt(values, action_instruction(values))


register_template(
    {"ck_plan": ck_plan, "ck_action": ck_action, "ck_end": ck_end, "ck_small": ck_small}
)
