"""Acts of mouse and keyboard, and the screens that they lead to.

The names of actions and fields are those of OpenAI's computer-use items (`computer_call`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ck_pro.events.base import Action, Observation


class Point(BaseModel):
    """A place on the screen, in CSS pixels from its left top corner."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    x: int | float
    y: int | float


class SafetyCheck(BaseModel):
    """What a model service wants a person to have seen before a computer action acts."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    id: str
    code: str | None = None
    message: str | None = None


ComputerDeed = Literal[
    "click",
    "double_click",
    "scroll",
    "type",
    "wait",
    "move",
    "keypress",
    "drag",
    "screenshot",
]
COMPUTER_DEEDS: tuple[str, ...] = get_args(ComputerDeed)
"""What can be done to a computer: the action types of computer-use models."""

_NEEDED = {
    "click": ("x", "y"),
    "double_click": ("x", "y"),
    "move": ("x", "y"),
    "type": ("text",),
    "keypress": ("keys",),
    "drag": ("path",),
}


class ComputerAction(Action):
    """One act of mouse or keyboard, by coordinates of the screenshot shown last.

    Attributes:
        action: what is done.
        x, y: where, in pixels of the screenshot; for `scroll` over what, its middle when None.
        button: "left", "right", "wheel" (the middle one), "back" or "forward".
        text: what is typed.
        keys: one chord for `keypress` (`["CTRL", "A"]`); held meanwhile by the mouse's actions.
        path: points that `drag` goes through.
        scroll_x, scroll_y: how far, in pixels; down and right are positive.
        ms: how long `wait` waits at most, in milliseconds.
        call_id: names the call in a service's protocol.
        pending_safety_checks: what must be acknowledged before it acts.
        target: what lies there, as the environment says it ("button 'Buy'"), for approvers.
        url: address of the page, for approvers.
        secret: the text is typed into a field for a password, a code or a card.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    kind: ClassVar[str] = "computer"
    action: ComputerDeed
    x: int | float | None = None
    y: int | float | None = None
    button: Literal["left", "right", "wheel", "back", "forward"] = "left"
    text: str | None = None
    keys: tuple[str, ...] = ()
    path: tuple[Point, ...] = ()
    scroll_x: int | float = 0
    scroll_y: int | float = 0
    ms: int | float | None = Field(default=None, ge=0, le=60_000)
    call_id: str = ""
    pending_safety_checks: tuple[SafetyCheck, ...] = ()
    target: str = ""
    url: str = ""
    secret: bool = False

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> ComputerAction:
        missing = [n for n in _NEEDED.get(self.action, ()) if getattr(self, n) in (None, ())]
        if missing:
            raise ValueError(f"{self.action} needs {' and '.join(missing)}")
        if self.action == "drag" and len(self.path) < 2:
            raise ValueError("drag needs a path of two points at least")
        return self

    def arguments(self) -> dict[str, Any]:
        """What a model says of it: `action` and the fields that it gave, as JSON-able data."""
        own = {"call_id", "pending_safety_checks", "target", "url", "secret"}
        return {
            "action": self.action,
            **self.model_dump(mode="json", exclude=own | {"action"}, exclude_defaults=True),
        }

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.arguments().items())
        return f"computer({shown})"


class ComputerObservation(Observation):
    """A screen after an action, or as it is.

    Attributes:
        image: data URL of the screenshot.
        current_url: address of the page, where the computer is a browser.
        call_id: of the action that it answers.
        acknowledged_safety_checks: those of the action, which was approved with them.
    """

    kind: ClassVar[str] = "computer_output"
    image: str = ""
    current_url: str = ""
    call_id: str = ""
    acknowledged_safety_checks: tuple[SafetyCheck, ...] = ()
