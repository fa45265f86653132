"""Prompts of the main agent: plan, action, and the optional end."""

from __future__ import annotations

from typing import Any

from ck_pro.agent.prompts import (
    CALL_RULES,
    CODE_RULES,
    PromptParts,
    action_instruction,
    calls_functions,
    end_instruction,
    plan_instruction,
)
from ck_pro.language import Prompt
from ck_pro.template import register_template

_SUB_AGENTS = """\
- A sub-agent knows nothing but the task text that you give it: put all that it needs into that
  text, the exact web address included, and say in what form you want the answer."""

_STOP = """\
- When the answer is known and checked, call stop(output=..., log=...) with the answer exactly in
  the form that the task asks for. When the task cannot be done, call stop as well, with what the
  task wants in that case (or a plain statement), and the reason in the log."""

_CODING = PromptParts(
    """\
You are the main agent: you solve the user's task by writing Python in small steps, and hand pieces
of work to sub-agents and tools by calling them as functions.""",
    f"""\
{CODE_RULES}
{_SUB_AGENTS}
- A sub-agent's result has 'output' and 'log'. Print the whole result; check the output before you
  rely on it. An empty output means that it failed, and the log says why.
- Several independent sub-agent calls may run at once in threads (concurrent.futures).
- Compute with Python, not in your head.
{_STOP}""",
    """\
Thought: The population is on the town's page; the web agent can read it there.
```python
result = web_agent(task="Open http://town.example/facts and report the population, digits only.")
print(result)
```""",
)

_CALLING = PromptParts(
    """\
You are the main agent: you solve the user's task in small steps by calling functions: tools, and
sub-agents to which you hand pieces of work.""",
    f"""\
{CALL_RULES}
{_SUB_AGENTS}
- A sub-agent's result has 'output' and 'log'. Check the output before you rely on it. An empty
  output means that it failed, and the log says why.
{_STOP}""",
    "The population is on the town's page: a call of web_agent with the task to open that page and "
    "report the population, digits only.",
)


def _parts(values: dict[str, Any]) -> PromptParts:
    return _CALLING if calls_functions(values) else _CODING


def ck_plan(**values: Any) -> Prompt:
    """What is done, what is next, what was learned."""
    return _parts(values).prompt(values, plan_instruction(values))


def ck_action(**values: Any) -> Prompt:
    """The next piece of code, or the next calls."""
    return _parts(values).prompt(values, action_instruction(values))


def ck_end(**values: Any) -> Prompt:
    """The final answer, put into form; off by default (see `CKAgent`)."""
    return _parts(values).prompt(values, end_instruction(values))


register_template({"ck_plan": ck_plan, "ck_action": ck_action, "ck_end": ck_end})
