"""What `performAction` can do: one function for each `actionName`.

A function takes an `ActionContext`, acts, and returns what it did in a few words. The caller adds
what the page made of it, after the page has settled.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from web_server.actions import input as actions_input
from web_server.actions import mouse as actions_mouse
from web_server.actions import page as actions_page
from web_server.actions.action_context import ActionContext
from web_server.contract import ACTION_NAMES, PerformAction
from web_server.errors import BadRequest
from web_server.view import one_line

Action = Callable[[ActionContext], Coroutine[Any, Any, str]]

ACTIONS: dict[str, Action] = {
    "click": actions_mouse.click,
    "clear": actions_input.clear,
    "select": actions_input.select,
    "hover": actions_mouse.hover,
    "press": actions_input.press,
    "drag": actions_mouse.drag,
    "upload": actions_input.upload,
    "check": actions_input.check,
    "uncheck": actions_input.uncheck,
    "click_at": actions_mouse.click_at,
    "double_click_at": actions_mouse.double_click_at,
    "move": actions_mouse.move,
    "drag_path": actions_mouse.drag_path,
    "wheel": actions_mouse.wheel,
    "select_text": actions_mouse.select_text,
    "type_text": actions_input.type_text,
    "type": actions_input.type_text_into,
    "select_option": actions_input.select,
    "scroll": actions_page.scroll,
    "scroll_to": actions_page.scroll_to,
    "scroll_in": actions_page.scroll_in,
    "goback": actions_page.goback,
    "goforward": actions_page.goforward,
    "goto": actions_page.goto,
    "restart": actions_page.restart,
    "wait": actions_page.wait,
    "wait_for": actions_page.wait_for,
    "new_tab": actions_page.new_tab,
    "switch_tab": actions_page.switch_tab,
    "close_tab": actions_page.close_tab,
    "read": actions_page.read,
    "find": actions_page.find,
    "answer_dialog": actions_page.answer_dialog,
    "save": actions_page.save,
}

UNSETTLED = frozenset({"read", "find", "answer_dialog", "save"})
"""Actions that change nothing, after which nothing need settle."""
WAITING = frozenset({"wait", "wait_for"})
"""Actions that wait for as long as their `timeout` says."""
WATCHING = UNSETTLED | WAITING
"""Actions that leave it to the page whether anything changes."""


def action_of(request: PerformAction) -> tuple[str, Action]:
    """The name and the function of the request's `actionName`.

    Raises:
        BadRequest: there is none.
    """
    name = request.actionName.strip().lower().replace("-", "_")
    if name not in ACTIONS:
        known = ", ".join(ACTION_NAMES)
        if not name:
            raise BadRequest(f"actionName is missing: use one of {known}")
        asked = one_line(request.actionName)[:40]
        raise BadRequest(f"unknown actionName '{asked}'; known: {known}")
    return name, ACTIONS[name]
