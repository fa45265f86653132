"""The browser actions of agents, one declaration each, and their action strings. Pure.

May import: `page`, `ck_pro` and `web_server.contract`.
Other rooms use `ACTIONS`, `parse_action` and the tables derived from them.

An action string is a name and its arguments. Parsing is tolerant: brackets may be missing, case
does not matter, texts may contain newlines. Text after `click [3]` is a comment. A text to type is
exact: one space after the target, then every character. A text that itself ends in `[NOENTER]` is
followed by `[ENTER]`. Paths with spaces are JSON strings in double quotes. So are texts to find or
to wait for that begin with a quote or a bracket, or that begin or end with white space.
"""

from __future__ import annotations

from collections.abc import Callable

from ck_web.actions import content, data, elements, mouse, pages, session  # noqa: F401  (declare actions)
from ck_web.actions.action import ACTIONS, WebAction, parse_action

__all__ = [
    "ACTIONS",
    "FURTHER_WEB_ACTIONS",
    "PREDEFINED_WEB_ACTIONS",
    "WEB_FUNCTIONS",
    "WebAction",
    "parse_action",
]

WEB_FUNCTIONS = sorted(
    (name for name, action in ACTIONS.items() if action.in_prompt != "never"),
    key=lambda name: ACTIONS[name].in_prompt != "full",
)
"""Names of the agent's functions that act in the browser; those shown in full come first."""

PREDEFINED_WEB_ACTIONS: dict[str, Callable[..., str]] = {
    name: ACTIONS[name].write
    for name in dict.fromkeys((*WEB_FUNCTIONS, *ACTIONS))
    if type(ACTIONS[name]).write is not WebAction.write
}
"""Name of each web function -> writes its action string from the function's arguments."""

FURTHER_WEB_ACTIONS: dict[str, Callable[..., str]] = {
    name: ACTIONS[name].write for name in WEB_FUNCTIONS if ACTIONS[name].in_prompt == "line"
}
"""The functions of `PREDEFINED_WEB_ACTIONS` that prompts show by one line each."""
