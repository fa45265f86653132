"""`WebAction`: the declaration of one browser action, and the table of all of them.

An action is one class below the decorator `web_action`. Everything else is derived from it: the
agent's function and its help in prompts, the action string and its parser, the request to the
browser server, the lines in reports and approvals, and the table in docs/web_agent.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ConfigError, ParseError
from ck_web.actions.tokens import quote, target_of, write_target
from ck_web.page.page_text import one_line

InPrompt = Literal["full", "line", "never"]
_HEAD = re.compile(r"\s*([A-Za-z]+(?:_[A-Za-z]+)?)(?:[ \t]?(.*))?", re.DOTALL)


class ActionTarget(Protocol):
    """The browser as actions use it."""

    def perform(self, action: BrowserAction) -> str:
        """Act on the page; return what changed, in one line."""
        ...

    def send(self, action: BrowserAction) -> str:
        """Send the action to the server; return its message."""
        ...

    def ask(self, action: BrowserAction) -> Any:
        """Send the action to the server; return the data of its reply."""
        ...

    def save(self, remote: str, local: str) -> str:
        """Save a download or a URL in the working directory; return what was saved, in one line."""
        ...

    def set_screenshots(
        self,
        shown: bool,
        path: str,
        marks: bool | None = None,
        region: Sequence[float] | None = None,
    ) -> str:
        """Turn screenshots of observations on or off; save an image of the page; return one line.

        Args:
            shown: whether observations have a screenshot.
            path: of the image, in the working directory; "" saves none.
            marks: whether elements are marked; None for the setting.
            region: x, y, width and height of the part that the next screenshot shows enlarged.
        """
        ...


class WebAction:
    """One browser action. The docstring of a subclass is its help in prompts.

    The first sentence of the help must stand alone: it is the short form.

    Attributes:
        name: name of the action and of the agent's function.
        forms: examples of the action string, for the docs.
        in_prompt: how prompts show the agent's function of this name. "full": signature and help;
            "line": one line; "never": the agent has no such function.
        value_name: the parameter of `write` that becomes the action's `value`, for approvers.
        quotes_value: reports quote the value.
        at_focus: it acts on the focused element.
        reads_only: it returns a text from the page and changes nothing.
        returns_data: its result is JSON; the agent's function returns the value.
        setting: the setting of `WebEnvConfig` that switches it off; empty for none.
        expects_change: reports count it as without effect if the page stays the same.
        keeps_message: its result begins with the server's message, before what changed.
        roles: roles of the elements that a person may do it on, most typical first; "*": any role.
    """

    name: ClassVar[str]
    forms: ClassVar[tuple[str, ...]]
    in_prompt: ClassVar[InPrompt]
    value_name: ClassVar[str] = "text"
    quotes_value: ClassVar[bool] = False
    at_focus: ClassVar[bool] = False
    reads_only: ClassVar[bool] = False
    returns_data: ClassVar[bool] = False
    setting: ClassVar[str] = ""
    expects_change: ClassVar[bool] = True
    keeps_message: ClassVar[bool] = False
    roles: ClassVar[tuple[str, ...]] = ()

    def write(self, *args: Any, **kwargs: Any) -> str:
        """Return the action string of a call of the agent's function."""
        raise NotImplementedError

    def parse(self, rest: str) -> BrowserAction:
        """Return the action of an action string, from the text after its name.

        Raises:
            ParseError: the text does not fit; the message shows a correct example.
        """
        raise NotImplementedError

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        """Return the fields of `PerformAction` that differ from those of `request_fields`."""
        return {}

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        """Return the words that a report shows after target and value.

        Args:
            action: the action.
            element: describes an element by its id.
        """
        return []

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        """Do the action; return its result."""
        return browser.perform(action)

    def report(self, result: str) -> str:
        """Return what a report says of a text or data for the code; empty for no report."""
        return ""

    @property
    def help(self) -> str:
        """The help text for prompts."""
        return inspect.cleandoc(type(self).__doc__ or "")

    def action(self, target: str = "", value: str | None = None, **arguments: Any) -> BrowserAction:
        """Make a `BrowserAction` of this name."""
        return BrowserAction(name=self.name, target=target, value=value, arguments=arguments)

    def request_fields(self, action: BrowserAction) -> dict[str, Any]:
        """Return the fields of `PerformAction` that say what to do, except uploaded files."""
        fields = {"actionName": self.name, "actionValue": action.value, "targetId": action.target}
        return {**{k: v for k, v in fields.items() if v}, **self.wire(action)}

    def has_target(self, action: BrowserAction) -> bool:
        """Whether an action goes to an element, a point, or the focus of the page."""
        given = action.arguments
        aimed = action.target or given.get("x") is not None or "path" in given
        return not self.reads_only and bool(aimed or self.at_focus)

    def describe(self, action: BrowserAction, element: Callable[[str], str]) -> str:
        """Return the action as a report shows it: `click [3] button 'Search'`.

        Args:
            action: the action.
            element: describes an element by its id.
        """
        words = [self.name]
        if action.target:
            words.append(element(action.target))
        if action.value:
            value = one_line(action.value)
            words.append(repr(value) if action.target or self.quotes_value else value)
        return " ".join([*words, *self.details(action, element)])


ACTIONS: dict[str, WebAction] = {}
"""Every declared action by name."""
_BY_SPELLING: dict[str, WebAction] = {}  # name without underscores -> action
_W = TypeVar("_W", bound=WebAction)


def web_action(
    name: str, form: str, *more_forms: str, in_prompt: InPrompt = "line"
) -> Callable[[type[_W]], type[_W]]:
    """Declare the decorated class as a web action; see `WebAction` for the arguments.

    Raises:
        ConfigError: another action has this name, with or without underscores.
    """
    spelling = name.replace("_", "")
    if spelling in _BY_SPELLING:
        raise ConfigError(f"two web actions are named {name!r}")

    def declare(cls: type[_W]) -> type[_W]:
        cls.name, cls.forms, cls.in_prompt = name, (form, *more_forms), in_prompt
        ACTIONS[name] = _BY_SPELLING[spelling] = cls()
        return cls

    return declare


def parse_action(text: str) -> BrowserAction:
    """Return the action that an action string means.

    Args:
        text: one action string, such as `click [3] Search`.

    Returns:
        `name`, `target` (the element's id), `value` (text, option, direction, seconds, URL, tab,
        part or keys) and `arguments` (the other values, as `parse` of the action's class sets
        them).

    Raises:
        ParseError: the string is not an action; the message says why, in one line.
    """
    head = _HEAD.fullmatch(text)
    if head is None:
        raise ParseError(f"{quote(text)} is not an action; known actions: {_known()}")
    action = _BY_SPELLING.get(head[1].lower().replace("_", ""))
    if action is None:
        raise ParseError(f"unknown action {quote(head[1])}; known actions: {_known()}")
    return action.parse(head[2] or "")


def _known() -> str:
    full = [action.forms[0] for action in ACTIONS.values() if action.in_prompt == "full"]
    return ", ".join([*full, *(n for n, a in ACTIONS.items() if a.in_prompt != "full")])


class ElementAction(WebAction):
    """Base of actions that take an element alone: `check [3]`."""

    def write(self, id: int | str) -> str:
        """Return the action string."""
        return f"{self.name} {write_target(id)}"

    def parse(self, rest: str) -> BrowserAction:
        """Return the action; text after the id is a comment."""
        return self.action(target_of(self.name, rest)[0])


class BareAction(WebAction):
    """Base of actions that take nothing: `goback`."""

    def write(self) -> str:
        """Return the action string."""
        return self.name

    def parse(self, rest: str) -> BrowserAction:
        """Return the action; text after the name is a comment."""
        return self.action()
