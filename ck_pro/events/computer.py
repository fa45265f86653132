"""Mouse and keyboard actions, and the screens that follow them.

Names of actions and fields follow OpenAI's computer-use items (`computer_call`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ck_pro.events.base import Action, Observation


class Point(BaseModel):
    """A point on the screen, in pixels from the top left corner."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    x: int | float
    y: int | float


class Region(BaseModel):
    """A rectangle of the screen, in pixels; `x` and `y` are its top left corner."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    x: int | float
    y: int | float
    width: int | float = Field(gt=0)
    height: int | float = Field(gt=0)

    def __str__(self) -> str:
        return f"{self.width:g}x{self.height:g} at {self.x:g},{self.y:g}"


class Picture(BaseModel):
    """An image for the model, with a caption.

    Attributes:
        caption: one line: what the image shows.
        image: its data URL.
    """

    model_config = ConfigDict(frozen=True)

    caption: str
    image: str


class SafetyCheck(BaseModel):
    """A warning from a model service that the user must confirm before a computer action."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    id: str
    code: str | None = None
    message: str | None = None


ComputerActionType = Literal[
    "click",
    "double_click",
    "triple_click",
    "scroll",
    "type",
    "wait",
    "move",
    "keypress",
    "drag",
    "screenshot",
    "zoom",
]
COMPUTER_ACTIONS: tuple[str, ...] = get_args(ComputerActionType)
"""The action types of computer-use models."""

_REQUIRED = {
    "click": ("x", "y"),
    "double_click": ("x", "y"),
    "triple_click": ("x", "y"),
    "move": ("x", "y"),
    "type": ("text",),
    "keypress": ("keys",),
    "drag": ("path",),
    "zoom": ("region",),
}


class ComputerAction(Action):
    """One mouse or keyboard action, in coordinates of the last screenshot.

    Attributes:
        action: the type.
        x, y: position in pixels of the screenshot; for `scroll`, None means the middle.
        button: "left", "right", "wheel" (the middle one), "back" or "forward".
        text: text to type.
        keys: one chord for `keypress` (`["CTRL", "A"]`); for mouse actions, keys held down.
        path: points that `drag` goes through.
        scroll_x, scroll_y: distance in pixels; down and right are positive.
        ms: milliseconds: the longest time of a `wait`; how long `click` holds the button, or
            `keypress` the keys.
        region: the part of the screen that `zoom` shows enlarged.
        call_id: id of the call in a service's protocol.
        pending_safety_checks: warnings to confirm before the action.
        target: description of the element there ("button 'Buy'"), for approvers.
        url: address of the page, for approvers.
        secret: whether the text goes into a field for a password, a code or a card.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    kind: ClassVar[str] = "computer"
    action: ComputerActionType
    x: int | float | None = None
    y: int | float | None = None
    button: Literal["left", "right", "wheel", "back", "forward"] = "left"
    text: str | None = None
    keys: tuple[str, ...] = ()
    path: tuple[Point, ...] = ()
    scroll_x: int | float = 0
    scroll_y: int | float = 0
    ms: int | float | None = Field(default=None, ge=0, le=60_000)
    region: Region | None = None
    call_id: str = ""
    pending_safety_checks: tuple[SafetyCheck, ...] = ()
    target: str = ""
    url: str = ""
    secret: bool = False

    @model_validator(mode="after")
    def _check_required_fields(self) -> ComputerAction:
        missing = [n for n in _REQUIRED.get(self.action, ()) if getattr(self, n) in (None, ())]
        if missing:
            raise ValueError(f"{self.action} needs {' and '.join(missing)}")
        if self.action == "drag" and len(self.path) < 2:
            raise ValueError("drag needs a path of two points at least")
        return self

    def arguments(self) -> dict[str, Any]:
        """Return `action` and the fields that the model gave, as JSON data."""
        own = {"call_id", "pending_safety_checks", "target", "url", "secret"}
        return {
            "action": self.action,
            **self.model_dump(mode="json", exclude=own | {"action"}, exclude_defaults=True),
        }

    def __str__(self) -> str:
        texts = ", ".join(f"{k}={v!r}" for k, v in self.arguments().items())
        return f"computer({texts})"


class ComputerObservation(Observation):
    """The screen, after an action or without one.

    Attributes:
        image: data URL of the screenshot.
        content: equal for two screens that show the same; "" if unknown.
        pictures: further images, such as the enlarged region of a `zoom`.
        current_url: address of the page, if the computer is a browser.
        call_id: id of the action that led to it.
        acknowledged_safety_checks: the action's warnings, which were approved with it.
    """

    kind: ClassVar[str] = "computer_output"
    image: str = ""
    content: str = ""
    pictures: tuple[Picture, ...] = ()
    current_url: str = ""
    call_id: str = ""
    acknowledged_safety_checks: tuple[SafetyCheck, ...] = ()
