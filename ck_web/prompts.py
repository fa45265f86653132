"""Prompts of the web agent: plan, action, and the end for runs without an answer.

The order is from stable to volatile; see `ck_pro.agent.prompts.PromptParts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.agent.prompts import (
    MATERIAL_RULE,
    PromptParts,
    action_instruction,
    calls_functions,
    end_instruction,
    ended_text,
    plan_instruction,
)
from ck_pro.language import Prompt
from ck_pro.template import register_template
from ck_web.page.page_diff import section

_PAGE = """\
- The page is shown as text: its address, its tabs, then one line per element: [id] role 'name' and
  properties; indentation tells what is inside what. Only the visible part is listed, and line [2]
  says how much lies above and below it: scroll to see that.
- Name elements by the ids of the page shown last, and by no others. Ids may be different after a
  click or a key press that leads to another page: """

_WORK = f"""\
- Do not repeat an action that changed nothing; look for another way.
{MATERIAL_RULE}
- Answer from what you have seen on pages, not from memory."""

_STOP = """\
- Call stop(answer, summary) as soon as the task is done. If it cannot be done, call stop with
  an empty answer and a summary that says why."""

_CODING = PromptParts(
    """\
You are the web agent: you carry out a task in a real web browser by writing short pieces of Python
that call browser functions. After each piece you are shown the page as it is then.""",
    f"""\
- Reply with a short thought, then exactly one block of Python between ```python and ```. End the
  reply there: what the code did is shown to you in the next step.
{_PAGE}end the block there and look first.
- Several actions may stand in one block, such as the fields of a form and then its button, also in
  a loop. Each acts at once and returns a line on what came of it, which is shown to you by itself.
  One that fails raises an error, which ends the block.
- read() and find(text) return what the whole page says, to search in Python: print only what you
  need of it.
{_WORK}
- Downloads are put into the working directory, where your Python can read them. Variables stay
  from step to step. The Python itself has no network: pages are reached by the functions only.
{_STOP}""",
    """\
Thought: The page has a search field, [7]. Searching for the product is faster than browsing.
```python
type(id=7, content="desk lamp")
```""",
)

_CALLING = PromptParts(
    """\
You are the web agent: you carry out a task in a real web browser by calling browser functions.
After each reply you are shown the page as it is then.""",
    f"""\
- Act by calling the functions that you are given. Text alone does nothing, and no code runs.
{_PAGE}make no further call in that reply, look first.
- Several calls may stand in one reply, such as the fields of a form and then its button. They act
  in order, and each returns a line on what came of it.
- read() and find(text) return what the whole page says.
{_WORK}
- Downloads are put into the working directory.
{_STOP}""",
    "The page has a search field, [7], and a product is wanted: a call of type with id 7 and the "
    "product's name as content.",
)


def _page(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The page as parts of a message, with its screenshot where there is one."""
    text = section(values["web_page_title"], values["web_page"])
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if values["web_image"]:
        parts.append({"type": "image_url", "image_url": {"url": values["web_image"]}})
    return parts


def _prompt(values: dict[str, Any], instruction: str, *further: str) -> Prompt:
    parts = _CALLING if calls_functions(values) else _CODING
    world = [*_page(values), *({"type": "text", "text": t} for t in further)]
    return parts.prompt({**values, "functions_long": values["web_functions"]}, instruction, world)


def web_plan(**values: Any) -> Prompt:
    """What is done, what is next, what was learned, judged by the page."""
    return _prompt(values, plan_instruction(values))


def web_action(**values: Any) -> Prompt:
    """The next actions."""
    return _prompt(values, action_instruction(values))


def web_end(**values: Any) -> Prompt:
    """The result of a run, in words for whoever gave the task."""
    return _prompt(values, end_instruction(values), ended_text(values["final_results"]))


register_template({"web_plan": web_plan, "web_action": web_action, "web_end": web_end})
