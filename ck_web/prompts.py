"""Prompts of the web agent and of the computer agent: plan, action and end.

Each prompt goes from stable to volatile parts; see `ck_pro.agent.prompts.PromptParts`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ck_pro.agent.prompts import (
    IMPOSSIBLE,
    MADE_UP,
    MATERIAL_RULE,
    PromptParts,
    action_instruction,
    calls_functions,
    end_instruction,
    ended_texts,
    plan_instruction,
)
from ck_pro.language import Prompt
from ck_pro.template import register_template
from ck_web.page.page_diff import section

# --- rules of both agents ----------------------------------------------------------------------

_CODE_FORM = """\
- Reply with a short thought, then exactly one Python block between ```python and ```. End the
  reply there. The next step shows you what the code did."""

_WORK = f"""\
- Do not repeat an action that changed nothing. Try another way.
{MATERIAL_RULE}
- Answer from what you saw on the pages, not from memory."""

_DOWNLOADS = """\
- Downloads are saved in the working directory. Variables persist between steps. Python itself has
  no network access."""

_STOP = f"""\
- When the task is done, call stop(answer, summary).
  {IMPOSSIBLE.format("summary")}"""

# --- the web agent -----------------------------------------------------------------------------

_PAGE = """\
- You see the page as text: its URL, its tabs, then one line per element: [id] role 'name' and
  properties. Indentation shows nesting. Only the visible part is listed. Line [2] shows how much is
  above and below it: scroll to see that.
- Ids belong to the page shown last. """

_WEB_CODE = PromptParts(
    """\
You are the web agent. You do a task in a real web browser by writing short pieces of Python that
call browser functions. After each piece you see the current page.""",
    f"""\
{_CODE_FORM}
{_PAGE}After a page change, use names, or ids from
  find(), in the same block.
- Do all that you can foresee in one block: forms, further pages, loops. Each action returns one
  line with its result; you see it without printing. A failed action raises an error and ends the
  block.
- read() and find(text) return text of the whole page. Check it in Python: if the answer passes,
  call stop in the same block; else print only the parts that you need.
{_WORK}
{_DOWNLOADS}
{_STOP}""",
    f"""\
Thought: Search for {MADE_UP} and open it. If its page shows a price, that is the answer.
```python
import re
type("Search", "{MADE_UP}", enter=False)
click("Go", role="button")
click("{MADE_UP}", role="link")
price = re.search(r"Price: ([0-9.]+)", find("Price"))
if price:
    stop(price[1], "on its page")
print(find("{MADE_UP}"))
```""",
)

_WEB_SMALL = PromptParts(
    "You do the task in a web browser by writing Python. After each reply you see the page.",
    f"""\
- The page is a list of elements: [id] role 'name'. Pass ids of the page shown last.
- If the page shows the answer, call stop("ANSWER"): only the answer, in the form of the task.
- If not, act: click(ID) on a link or a button. In a form, type(ID, "TEXT", enter=False) into each
  field and click its button, in one block.
- If it cannot be done, call stop("not available").
{MATERIAL_RULE}""",
    f"""\
Thought: The page says that the {MADE_UP} costs 30 EUR.
```python
stop("30 EUR for {MADE_UP}")
```""",
)
_SMALL_ACT = (
    "Now reply: a short thought with the answer if the page shows it, then one Python block."
)

_WEB_CALLS = PromptParts(
    """\
You are the web agent. You do a task in a real web browser by calling browser functions. After each
reply you see the current page.""",
    f"""\
- Act by calling functions. Text alone does nothing, and code does not run.
{_PAGE}After a call that opens another page,
  act only by names, or end the reply.
- One reply may contain several calls, such as the fields of a form and then its button. They run
  in order. Each returns one line with its result.
- read() and find(text) return text of the whole page.
{_WORK}
- Downloads are saved in the working directory.
{_STOP}""",
    "The page has a search field and the task asks for a product: call type with the field's id or "
    "name and the product's name as content.",
)

# --- the computer agent ------------------------------------------------------------------------

_IN_BROWSER = "in a real web browser"
_ON_DESKTOP = "on a computer with a desktop"

_SCREEN = f"""\
- You see the screen as an image of {{size}} pixels. x and y are its pixels, from the top left
  corner. Aim at the middle of the target. Use only the image shown last. An arrow in the image
  marks the mouse.
- If a detail is too small to read or to hit, zoom into its region first. x and y stay those of the
  whole screen.
- Text goes to the focused field: click the field first. Its content stays, unless you select it
  (CTRL+A) before you type.
- Scroll to see what is not in the image.
{_WORK}"""


@dataclass(frozen=True)
class Screen:
    """The screen of a computer agent, for its prompts.

    Attributes:
        width, height: of the pictures in pixels.
        is_browser: whether the computer is a browser.
    """

    width: int
    height: int
    is_browser: bool = True

    @property
    def rules(self) -> str:
        """The rules about the screen."""
        return _SCREEN.replace("{size}", f"{self.width} x {self.height}")

    @property
    def place(self) -> str:
        """Where the model works."""
        return _IN_BROWSER if self.is_browser else _ON_DESKTOP


def _screen_calls(screen: Screen, ending: str) -> PromptParts:
    return PromptParts(
        f"You do a task {screen.place} with mouse and keyboard, by looking at the screen.",
        f"""\
{screen.rules}
- Call functions; the computer is one of them. After each reply you see the current screen. One
  reply may contain several actions if you already know their points.
- When the task is done, {ending}""",
        "The page has a search field in the middle: click it. In the next reply: type.",
    )


_CALL_STOP = (
    """call stop(answer, summary) with the answer in exactly the form that the
  task asks for. """
    + IMPOSSIBLE.format("summary")
    + " Text alone does nothing."
)
_ANSWER = """reply with only the answer, in exactly the form that the task asks for,
  and no call (or call stop). If it cannot be done, say so in the same way."""


def _screen_code(screen: Screen) -> PromptParts:
    return PromptParts(
        f"You do a task {screen.place} by writing short pieces of Python that use mouse and "
        "keyboard, by looking at the screen.",
        f"""\
{_CODE_FORM}
{screen.rules}
- One block may contain several actions if you already know their points. Each acts immediately. You
  see its result without printing it. A failed action raises an error and ends the block.
{_DOWNLOADS}
{_STOP}""",
        f"""\
Thought: The search field is in the middle of the page, at about 640, 210.
```python
computer(action="click", x=640, y=210)
computer(action="type", text="{MADE_UP}\\n")
```""",
    )


_CONTROL = re.compile(
    r"^[ \t]*(?P<line>\[\d+\] (?:link|button|textbox|searchbox|combobox|checkbox|radio|option|tab"
    r"|menuitem|spinbutton|slider|switch) .*)$",
    re.MULTILINE,
)
_MAX_CONTROLS = 30
_MESSAGES_ACT = "Now act: call functions, or reply with only the answer."


# --- the phases --------------------------------------------------------------------------------


def web_plan(**values: Any) -> Prompt:
    """Ask for the progress state: done, next, lessons, facts."""
    return _web_prompt(values, plan_instruction(values))


def web_action(**values: Any) -> Prompt:
    """Ask for the next actions."""
    return _web_prompt(values, action_instruction(values))


def web_small(**values: Any) -> Prompt:
    """Ask for the next actions of a small model, by a short prompt."""
    if calls_functions(values):
        return web_action(**values)
    values["web_functions"] = values["functions_short"]
    return _web_prompt(values, _SMALL_ACT, parts=_WEB_SMALL)


def web_end(**values: Any) -> Prompt:
    """Ask for the result of the run."""
    return _web_prompt(values, end_instruction(values), *ended_texts(values))


def computer_plan(**values: Any) -> Prompt:
    """Ask for the progress state: done, next, lessons, facts."""
    return _computer_prompt(values, plan_instruction(values))


def computer_action(**values: Any) -> Prompt:
    """Ask for the next actions."""
    messages = calls_functions(values) and values["language"].message_ends
    return _computer_prompt(values, _MESSAGES_ACT if messages else action_instruction(values))


def computer_end(**values: Any) -> Prompt:
    """Ask for the result of the run."""
    return _computer_prompt(values, end_instruction(values), *ended_texts(values))


def _web_prompt(
    values: dict[str, Any], instruction: str, *more: str, parts: PromptParts | None = None
) -> Prompt:
    parts = parts or (_WEB_CALLS if calls_functions(values) else _WEB_CODE)
    values = {**values, "functions_long": values["web_functions"]}
    return parts.prompt(values, instruction, _world(values, values["web_page_title"], *more))


def _computer_prompt(values: dict[str, Any], instruction: str, *more: str) -> Prompt:
    world = _world(values, "Current screen", *more)
    return _computer_parts(values).prompt(values, instruction, world)


def _computer_parts(values: Mapping[str, Any]) -> PromptParts:
    screen: Screen = values["screen"]
    if not calls_functions(values):
        return _screen_code(screen)
    return _screen_calls(screen, _ANSWER if values["language"].message_ends else _CALL_STOP)


def _world(values: Mapping[str, Any], title: str, *more: str) -> list[dict[str, Any]]:
    """Return the page and its pictures, if there are any, as parts of a message."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": section(title, values["web_page"])}]
    if values.get("repeats") and (found := _controls(values["web_page"])):
        parts.append({"type": "text", "text": section("Elements that you can use", found)})
    pictures = values.get("web_pictures", ())
    for picture in pictures:
        parts += [{"type": "text", "text": f"{picture.caption}:"}, _image_part(picture.image)]
    if values["web_image"]:
        parts += [{"type": "text", "text": "The current screen:"}] if pictures else []
        parts.append(_image_part(values["web_image"]))
    return [*parts, *({"type": "text", "text": text} for text in more)]


def _image_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _controls(page: str) -> str:
    """Return the lines of the page's links, buttons and fields, without their indentation."""
    return "\n".join(found["line"] for found in islice(_CONTROL.finditer(page), _MAX_CONTROLS))


register_template(
    {
        "web_plan": web_plan,
        "web_action": web_action,
        "web_end": web_end,
        "web_small": web_small,
        "computer_plan": computer_plan,
        "computer_action": computer_action,
        "computer_end": computer_end,
    }
)
