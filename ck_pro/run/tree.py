"""`RunTree`: what a run and its sub-agents share, and the progress events that it sends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ck_pro.environment import Holder
from ck_pro.events import EventKind
from ck_pro.events.progress_events import ProgressEvent, ProgressFacts, ProgressKind
from ck_pro.journal import Journal
from ck_pro.run.model_calls import Prefixes
from ck_pro.run.user_replies import Approvals
from ck_pro.session.observed import observation_text
from ck_pro.tools.human import Answers

if TYPE_CHECKING:
    from ck_pro.run.run import Run

_log = logging.getLogger(__name__)
_SHOWN_CHARS = 200
EventSink = Callable[[ProgressEvent], None]


@dataclass
class RunTree:
    """The state that all runs of one tree share.

    Attributes:
        root: the run of the main agent.
        journal: store of all events.
        on_event: receives events for a display.
        answers: the user's answers that no session used yet.
        approvals: the user's approvals that no session used yet.
        prefixes: the recent prompts.
        holder: keeps environments while a run waits for a person.
        lock: orders the events of all runs.
    """

    root: Run
    journal: Journal
    on_event: EventSink | None
    answers: Answers
    approvals: Approvals
    prefixes: Prefixes = field(default_factory=Prefixes)
    holder: Holder = field(default_factory=Holder)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def emit(self, run: Run, kind: ProgressKind, facts: ProgressFacts) -> None:
        """Send an event of a run to `on_event`; an error of the display does not end the run."""
        on_event = self.on_event
        if on_event is None:
            return
        used = self.root.budget.snapshot()
        event: ProgressEvent = {
            "kind": kind,
            "path": list(run.path),
            "sid": run.session.id,
            "step": len(run.session.steps) - 1,
            "tokens": used["tokens"],
            "money": used["money"],
        }
        try:
            on_event(cast(ProgressEvent, {**event, **facts}))
        except Exception:  # noqa: BLE001 - see above
            _log.exception("on_event failed; it gets no further events")
            self.on_event = None

    def emit_recorded(self, run: Run, kind: EventKind, data: Mapping[str, Any], phase: str) -> None:
        """Send the event that belongs to an event of the journal, if any.

        Args:
            run: the run that recorded it.
            kind, data, phase: those of `Run.record`.
        """
        match kind:
            case EventKind.STEP if data.get("taken", True):
                self.emit(run, ProgressKind.STEP_STARTED, {})
            case EventKind.MODEL_CALL:
                self.emit(run, ProgressKind.MODEL_CALL, {"phase": phase})
            case EventKind.UNREADABLE:
                facts: ProgressFacts = {"phase": phase, "text": data["error"]}
                self.emit(run, ProgressKind.UNREADABLE, facts)
            case EventKind.OBSERVATION:
                text = observation_text(data["observation"])[:_SHOWN_CHARS]
                self.emit(run, ProgressKind.STEP_ENDED, {"text": text})
