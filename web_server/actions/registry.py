"""Register the actions of `performAction`: `@action(...)` on a handler is the only declaration."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from web_server.actions.action_context import ActionContext
from web_server.actions.preconditions import Purpose
from web_server.contract import PerformAction
from web_server.errors import BadRequest
from web_server.view import one_line

Handler = Callable[[ActionContext], Coroutine[Any, Any, str]]
"""Acts, and returns a short description of what it did. The caller appends the page's reaction."""

Aim = Literal["element", "mouse", "drag", "point", "path", "focus", "keys"]
"""What an action reaches: the element alone; the element and what the mouse meets there; the same
and the end of the drag; a point of the viewport or of the element; the ends of a path; the focus;
the element or, without one, the focus, and what access keys activate."""


def _no_seconds(_request: PerformAction) -> float:
    return 0.0


@dataclass(frozen=True)
class Action:
    """One action.

    Attributes:
        name: the first of its names on the wire.
        run: the handler.
        aim: what it reaches, see `Aim`.
        purpose: how it uses the element; None for any element.
        roles: roles of the elements that a name without a role means first.
        settles: the page may change: watch it before the action and wait for it afterwards.
        acts: it acts on the page, rather than waiting for it.
        expects_change: report when nothing changed.
        has_steps: it may be left half done, so an interruption is an error.
        leaves_page: the page may refuse to be left.
        destination: returns the URL that it goes to; None if it goes to none.
        closes_page: it may close its own page, which is not a crash.
        survives_crash: a crash of the page completes it.
        sends_keys: it types at the focus.
        extra_seconds: time that the request asks for in addition to the limit per request.
    """

    name: str
    run: Handler
    aim: Aim = "element"
    purpose: Purpose | None = None
    roles: frozenset[str] = frozenset()
    settles: bool = True
    acts: bool = True
    expects_change: bool = False
    has_steps: bool = False
    leaves_page: bool = False
    destination: Callable[[ActionContext], str] | None = None
    closes_page: bool = False
    survives_crash: bool = False
    sends_keys: bool = False
    extra_seconds: Callable[[PerformAction], float] = _no_seconds


_ACTIONS: dict[str, Action] = {}


def action(*names: str, **properties: Any) -> Callable[[Handler], Handler]:
    """Register the decorated handler under these values of `actionName`.

    Args:
        names: as the wire writes them, in lower case with underscores.
        properties: attributes of `Action`.
    """

    def register(handler: Handler) -> Handler:
        registered = Action(names[0], handler, **properties)
        _ACTIONS.update(dict.fromkeys(names, registered))
        return handler

    return register


def action_names() -> list[str]:
    """Return every value of `actionName` that the server accepts."""
    return list(_ACTIONS)


def find_action(request: PerformAction) -> Action:
    """Return the action that a request names, in any case, with `-` or `_`.

    Raises:
        BadRequest: the name is missing or unknown.
    """
    name = request.actionName.strip().lower().replace("-", "_")
    if name in _ACTIONS:
        return _ACTIONS[name]
    known = ", ".join(_ACTIONS)
    if not name:
        raise BadRequest(f"actionName is missing: use one of {known}")
    raise BadRequest(f"unknown actionName '{one_line(request.actionName)[:40]}'; known: {known}")
