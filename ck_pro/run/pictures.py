"""Pictures of a run: screens after actions, those that a tool shows, and those of each step."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from ck_pro.events import Action, ComputerAction, ComputerObservation, EventKind
from ck_pro.events.journal_events import PictureData, ScreenData
from ck_pro.session import AgentSession

if TYPE_CHECKING:
    from ck_pro.run.run import Run

_KIND = "picture"
_log = logging.getLogger(__name__)


def record_screen(run: Run, action: Action, observation: ComputerObservation) -> None:
    """Record the screen after an action; prompts show it with the call."""
    facts = observation.to_dict()
    del facts["pictures"]  # the prompt of the next step shows them
    screen = cast(ScreenData, facts)
    if isinstance(action, ComputerAction):
        checks = [c.model_dump(mode="json") for c in action.pending_safety_checks]
        screen["call_id"], screen["acknowledged_safety_checks"] = action.call_id, checks
    if not run.agent.store_io:
        del screen["image"]
    run.record(EventKind.SCREEN, screen)


def show_picture(run: Run, url: str, caption: str) -> bool:
    """Record a picture for the next prompt; see `RunContext.show_picture`."""
    if not run.agent.store_io:
        return False
    screen = ScreenData(
        kind=_KIND,
        text=caption,
        current_url="",
        call_id="",
        acknowledged_safety_checks=[],
        image=url,
    )
    run.record(EventKind.SCREEN, screen)
    return True


def picture_parts(session: AgentSession) -> list[dict[str, Any]]:
    """Return message parts with the pictures that the last finished step recorded."""
    done = [step["action"] for step in session.steps[-2:] if step["action"]["observation"]]
    parts: list[dict[str, Any]] = []
    for screen in done[-1].get("screens", ()) if done else ():
        if screen["kind"] == _KIND and "image" in screen:
            parts.append({"type": "text", "text": f"# Picture: {screen['text']}"})
            parts.append({"type": "image_url", "image_url": {"url": screen["image"]}})
    return parts


class StepPictures:
    """Record pictures of a run's environment, if the environment has them switched on.

    A picture that fails costs the run nothing: a warning is logged, once per run.

    Args:
        run: the run.
    """

    def __init__(self, run: Run):
        self._run = run
        self._warned = self._acted = False

    def record_last(self) -> None:
        """Record a picture at the end of the run, if an action may have changed the last one."""
        if self._acted:
            self.record()

    def record(self, action: Action | None = None, call: int | None = None) -> None:
        """Record a picture.

        Args:
            action: the action that follows; None at the start of a step.
            call: the number of its call.
        """
        environment, journal = self._run.environment, self._run.journal
        if environment is None or not environment.step_pictures or journal.folder is None:
            return
        self._acted = call is not None
        try:
            picture = environment.picture(action)
            if picture is None:
                return
            if call is not None:
                # the picture at the start of the step has the boxes of all elements
                facts = {k: v for k, v in picture.items() if k != "elements"}
                picture = PictureData(**facts, call=call)  # type: ignore[typeddict-item]
            self._run.record(EventKind.PICTURE, picture)
        except Exception as e:  # noqa: BLE001 - logged; a viewer's picture must not end the run
            if not self._warned:
                self._warned = True
                _log.warning("no step picture: %s: %s", type(e).__name__, e)
