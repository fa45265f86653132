"""The interface of policies: observations as text, the text of the task, and action strings.

`Screen` parses the text of an observation, which is all that a policy knows. `World` runs action
strings in a `WebEnv`, and ends the policy when the page reports the reward.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.miniwob.pages import PageReport
from ck_web.actions import PREDEFINED_WEB_ACTIONS, parse_action
from ck_web.env import WebEnv

_LINE = re.compile(r"(\t*)\[(\d+)\] ([A-Za-z]+) '(.*)'(.*)")
_PROPERTY = re.compile(
    r" (autocomplete|box|busy|checked|clickable|color|covered by|current|description|disabled|"
    r"draggable|editable|expanded|focusable|focused|hasPopup|hint|invalid|level|max|min|multiline|"
    r"multiple|orientation|pressed|readonly|required|scroll|selected|size|url|value|valuetext): "
)
_MAX_ACTIONS = 200


class PolicyFailed(Exception):
    """The policy cannot continue. The message is the reason."""


class EpisodeOver(Exception):
    """The page reported the reward."""


@dataclass
class Element:
    """A line of an observation.

    Attributes:
        id: as shown.
        role: as shown.
        name: as shown.
        properties: the `key: value` pairs of the line.
        depth: the indentation.
        children: the lines below it, in order.
    """

    id: int
    role: str
    name: str
    properties: dict[str, str] = field(default_factory=dict)
    depth: int = 0
    children: list[Element] = field(default_factory=list)

    def has(self, key: str, value: str = "true") -> bool:
        """Whether the line contains `key: value`."""
        return self.properties.get(key) == value

    def __getitem__(self, key: str) -> str:
        return self.properties.get(key, "")

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it, in order."""
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
        """The names of this element and those below it."""
        return " ".join(element.name for element in self.walk() if element.name)


class Screen:
    """A parsed observation.

    Args:
        text: the text of `WebEnv.observe`.
        task: text of the task. The page repeats it at its top; `elements` omits those lines.
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
        self.elements = [e for e in elements if not _is_frame_line(e, task)]

    def of(self, *roles: str, name: str | None = None) -> list[Element]:
        """Return the elements with these roles, and with exactly this name if it is given."""
        return [
            e for e in self.elements if e.role in roles and (name is None or e.name.strip() == name)
        ]

    def named(self, name: str, *roles: str) -> Element:
        """Return the first element with this name in any case, and one of these roles if given.

        Raises:
            PolicyFailed: no element matches.
        """
        found = [e for e in self.elements if not roles or e.role in roles]
        for match in (
            lambda e: e.name.strip() == name,
            lambda e: e.name.strip().lower() == name.lower(),
        ):
            for element in filter(match, found):
                return element
        raise PolicyFailed(f"no element is named {name!r}")

    def maybe(self, name: str, *roles: str) -> Element | None:
        """The same, but return None if no element matches."""
        try:
            return self.named(name, *roles)
        except PolicyFailed:
            return None

    def clickables(self) -> list[Element]:
        """Return the elements that are clickable although their role is not."""
        return [e for e in self.elements if e.has("clickable")]

    def texts(self) -> list[str]:
        """Return the texts of the page."""
        return [e.name for e in self.elements if e.role == "StaticText"]


def _properties(text: str) -> dict[str, str]:
    parts = _PROPERTY.split(text)
    return {parts[i]: parts[i + 1].strip() for i in range(1, len(parts) - 1, 2)}


def _is_frame_line(element: Element, task: str) -> bool:
    """Whether a line is part of every page: document, scroll position, task, canvas."""
    if element.role in ("RootWebArea", "scrollbar") or element["hint"] == "click-canvas":
        return True
    return element.role == "StaticText" and " ".join(element.name.split()) == task


class World:
    """The page of an episode, for a policy.

    Args:
        env: shows the page.
        report: the report of the page; a policy reads only `task`.
        log: receives a line for each action.
    """

    def __init__(
        self, env: WebEnv, report: PageReport, log: Callable[[str], None] | None = None
    ) -> None:
        self._env, self._report, self._log = env, report, log
        self.task = report.utterance or ""
        self.actions = 0

    def observe(self) -> Screen:
        """Observe the page."""
        return Screen(self._env.observe().text, self.task)

    def do(self, action: str) -> str:
        """Run an action string and return its result as one line.

        Raises:
            EpisodeOver: the page reported the reward.
            PolicyFailed: too many actions.
        """
        self.actions += 1
        line = self._env.execute(parse_action(action)).text
        if self._log is not None:
            self._log(f"  {action!r} -> {line}")
        if self._report.reward is not None:
            raise EpisodeOver
        if self.actions >= _MAX_ACTIONS:
            raise PolicyFailed(f"{_MAX_ACTIONS} actions were not enough")
        return line

    def act(self, name: str, *args: Any, **kwargs: Any) -> str:
        """Run the action of the agent's function with this name."""
        if name not in PREDEFINED_WEB_ACTIONS:
            raise PolicyFailed(f"unknown action {name!r}")
        return self.do(PREDEFINED_WEB_ACTIONS[name](*args, **kwargs))

    def click(self, element: Element) -> str:
        """Click an element."""
        return self.act("click", element.id)

    def click_named(self, name: str, *roles: str) -> str:
        """Observe, and click the element with this name."""
        return self.click(self.observe().named(name, *roles))

    def type(self, element: Element, text: str, enter: bool = False) -> str:
        """Replace the content of a field."""
        return self.act("type", element.id, text, enter)

    def submit(self, name: str = "Submit") -> None:
        """Click the button that ends the episode."""
        self.click_named(name, "button", "generic")


Policy = Callable[[World], None]
POLICIES: dict[str, Policy] = {}
"""Name of a task -> its policy."""


def policy(*tasks: str) -> Callable[[Policy], Policy]:
    """Register a function as the policy of these tasks."""

    def register(function: Policy) -> Policy:
        for task in tasks:
            POLICIES[task] = function
        return function

    return register


def quoted(text: str) -> list[str]:
    """Return the parts of a text in double quotes."""
    return re.findall(r'"(.*?)"', text)


def ordinal(text: str) -> int:
    """Return the first ordinal number of a text: 1 for `1st`, 2 for `2nd`.

    Raises:
        PolicyFailed: the text contains none.
    """
    found = re.search(r"(\d+)(?:st|nd|rd|th)\b", text)
    if found is None:
        raise PolicyFailed(f"no ordinal number in {text!r}")
    return int(found[1])


def matched(pattern: str, text: str) -> re.Match[str]:
    """Return the first match of a pattern in a text.

    Raises:
        PolicyFailed: the text does not match.
    """
    found = re.search(pattern, text)
    if found is None:
        raise PolicyFailed(f"{text!r} has an unknown form")
    return found
