"""What a scripted policy is given: the page as text, the task's text, and action strings.

`Screen` reads the text of an observation, and nothing else: what it does not say, no policy knows.
`World` does action strings in one `WebEnv` and ends the policy when the page has said the reward,
as the page is over then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from miniwob_pages import Told

from ck_web.actions import PREDEFINED_WEB_ACTIONS, parse_action
from ck_web.env import WebEnv

_LINE = re.compile(r"(\t*)\[(\d+)\] ([A-Za-z]+) '(.*)'(.*)")
_PROPERTY = re.compile(
    r" (autocomplete|box|busy|checked|clickable|color|covered by|current|description|disabled|"
    r"draggable|editable|expanded|focusable|focused|hasPopup|hint|invalid|level|max|min|multiline|"
    r"multiple|orientation|pressed|readonly|required|scroll|selected|size|url|value|valuetext): "
)
_MAX_ACTIONS = 200


class GaveUp(Exception):
    """The policy does not know how to go on; says why."""


class Over(Exception):
    """The episode is over: the page has said its reward."""


@dataclass
class Element:
    """One line of an observation.

    Attributes:
        id, role, name: as shown.
        properties: `key: value` of the line, as texts.
        depth: of the indentation.
        children: of this line, in order.
    """

    id: int
    role: str
    name: str
    properties: dict[str, str] = field(default_factory=dict)
    depth: int = 0
    children: list[Element] = field(default_factory=list)

    def has(self, key: str, value: str = "true") -> bool:
        """Whether the line says `key: value`."""
        return self.properties.get(key) == value

    def __getitem__(self, key: str) -> str:
        return self.properties.get(key, "")

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def color(self) -> tuple[int, int, int] | None:
        """Red, green and blue of `color`, 0 to 255."""
        parts = re.findall(r"\d+", self["color"])
        return (int(parts[0]), int(parts[1]), int(parts[2])) if len(parts) >= 3 else None

    @property
    def text(self) -> str:
        """All names from here down."""
        return " ".join(element.name for element in self.walk() if element.name)


class Screen:
    """One observation, read.

    Args:
        text: as `WebEnv.observe` gives it.
        task: text of the task, which the page repeats at its top; those lines are left out, so
            that `elements` are of what the task is about.
    """

    def __init__(self, text: str, task: str = "") -> None:
        self.text = text
        elements: list[Element] = []
        open_: list[Element] = []
        for line in text.split("\n"):
            found = _LINE.fullmatch(line)
            if not found:
                continue
            element = Element(
                int(found[2]), found[3], found[4], _properties(found[5]), len(found[1])
            )
            while open_ and open_[-1].depth >= element.depth:
                open_.pop()
            if open_:
                open_[-1].children.append(element)
            open_.append(element)
            elements.append(element)
        self.all = elements
        self.elements = [e for e in elements if not _apart(e, task)]

    def of(self, *roles: str, name: str | None = None) -> list[Element]:
        """Elements of these roles, and of this very name if one is given."""
        return [
            e for e in self.elements if e.role in roles and (name is None or e.name.strip() == name)
        ]

    def named(self, name: str, *roles: str) -> Element:
        """The first element of this name, whatever case it is written in; of these roles, if any.

        Raises:
            GaveUp: there is none.
        """
        found = [e for e in self.elements if not roles or e.role in roles]
        for match in (
            lambda e: e.name.strip() == name,
            lambda e: e.name.strip().lower() == name.lower(),
        ):
            for element in filter(match, found):
                return element
        raise GaveUp(f"nothing is named {name!r}")

    def maybe(self, name: str, *roles: str) -> Element | None:
        """The same, or None."""
        try:
            return self.named(name, *roles)
        except GaveUp:
            return None

    def clickables(self) -> list[Element]:
        """What the page shows as clickable though its role does not say so."""
        return [e for e in self.elements if e.has("clickable")]

    def texts(self) -> list[str]:
        """The plain texts of the page."""
        return [e.name for e in self.elements if e.role == "StaticText"]


def _properties(text: str) -> dict[str, str]:
    parts = _PROPERTY.split(text)
    return {parts[i]: parts[i + 1].strip() for i in range(1, len(parts) - 1, 2)}


def _apart(element: Element, task: str) -> bool:
    """Whether a line is of the frame that all pages have: document, scrolling, task, canvas."""
    if element.role in ("RootWebArea", "scrollbar") or element["hint"] == "click-canvas":
        return True
    return element.role == "StaticText" and " ".join(element.name.split()) == task


class World:
    """The page of one episode, for a policy.

    Args:
        env: shows the page.
        told: what the page said; a policy reads `task` alone of it.
        trace: gets one line for each action, if given.
    """

    def __init__(self, env: WebEnv, told: Told, trace: Callable[[str], None] | None = None) -> None:
        self._env, self._told, self._trace = env, told, trace
        self.task = told.utterance or ""
        self.actions = 0

    def look(self) -> Screen:
        """The page now."""
        return Screen(self._env.observe().text, self.task)

    def do(self, action: str) -> str:
        """Do an action string; one line of what came of it.

        Raises:
            Over: the page has said its reward.
            GaveUp: more actions than any episode needs.
        """
        self.actions += 1
        line = self._env.execute(parse_action(action)).text
        if self._trace is not None:
            self._trace(f"  {action!r} -> {line}")
        if self._told.reward is not None:
            raise Over
        if self.actions >= _MAX_ACTIONS:
            raise GaveUp(f"{_MAX_ACTIONS} actions were not enough")
        return line

    def act(self, name: str, *args: Any, **kwargs: Any) -> str:
        """Do the action that the agent's function of this name would write."""
        if name not in PREDEFINED_WEB_ACTIONS:
            raise GaveUp(f"there is no action {name!r}")
        return self.do(PREDEFINED_WEB_ACTIONS[name](*args, **kwargs))

    def click(self, element: Element) -> str:
        """Click an element."""
        return self.act("click", element.id)

    def click_named(self, name: str, *roles: str) -> str:
        """Look, and click what has this name."""
        return self.click(self.look().named(name, *roles))

    def type(self, element: Element, text: str, enter: bool = False) -> str:
        """Type a text in place of what a field holds."""
        return self.act("type", element.id, text, enter)

    def submit(self, name: str = "Submit") -> None:
        """Click the button that ends the episode."""
        self.click_named(name, "button", "generic")


Policy = Callable[[World], None]
POLICIES: dict[str, Policy] = {}
"""Name of a task -> its policy."""


def policy(*tasks: str) -> Callable[[Policy], Policy]:
    """Let a function be the policy of these tasks."""

    def keep(function: Policy) -> Policy:
        for task in tasks:
            POLICIES[task] = function
        return function

    return keep


def quoted(text: str) -> list[str]:
    """What a task's text has in double quotes."""
    return re.findall(r'"(.*?)"', text)


def ordinal(text: str) -> int:
    """The number of the first `1st`, `2nd`, `3rd`... of a text, from 1.

    Raises:
        GaveUp: there is none.
    """
    found = re.search(r"(\d+)(?:st|nd|rd|th)\b", text)
    if found is None:
        raise GaveUp(f"no ordinal number in {text!r}")
    return int(found[1])


def matched(pattern: str, text: str) -> re.Match[str]:
    """Where a pattern is found in a text.

    Raises:
        GaveUp: nowhere.
    """
    found = re.search(pattern, text)
    if found is None:
        raise GaveUp(f"{text!r} is not of a known form")
    return found
