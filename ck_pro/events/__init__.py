"""Actions and observations of agents, and the events of the journal, as typed values.

May import: `exceptions`.
Other rooms use the classes of actions and observations, and `EventKind`, `JournalEvent` and the
data types of `ck_pro.events.journal_events`.

Actions and observations convert to a dict and back (`to_dict`, `action_from_dict`,
`observation_from_dict`). Only the field `kind` selects the type.
"""

from __future__ import annotations

from ck_pro.events.actions import (
    AddTaskAction,
    BrowserAction,
    BrowseURLAction,
    CmdKillAction,
    CmdRunAction,
    CodeAction,
    FileReadAction,
    FileWriteAction,
    FinishAction,
    MessageAction,
    ModifyTaskAction,
    RecallAction,
    RejectAction,
    ThinkAction,
    ToolCall,
)
from ck_pro.events.base import (
    Action,
    Event,
    Observation,
    action_from_dict,
    observation_from_dict,
)
from ck_pro.events.computer import (
    ComputerAction,
    ComputerObservation,
    Picture,
    Point,
    Region,
    SafetyCheck,
)
from ck_pro.events.journal_events import EventKind, JournalEvent
from ck_pro.events.observations import (
    BrowserObservation,
    CmdOutputObservation,
    CodeObservation,
    ErrorObservation,
    FileReadObservation,
    FileWriteObservation,
    RecallObservation,
    SuccessObservation,
    TextObservation,
)

__all__ = [
    "Action",
    "AddTaskAction",
    "BrowseURLAction",
    "BrowserAction",
    "BrowserObservation",
    "CmdKillAction",
    "CmdOutputObservation",
    "CmdRunAction",
    "CodeAction",
    "CodeObservation",
    "ComputerAction",
    "ComputerObservation",
    "ErrorObservation",
    "Event",
    "EventKind",
    "FileReadAction",
    "FileReadObservation",
    "FileWriteAction",
    "FileWriteObservation",
    "FinishAction",
    "JournalEvent",
    "MessageAction",
    "ModifyTaskAction",
    "Observation",
    "Picture",
    "Point",
    "RecallAction",
    "RecallObservation",
    "Region",
    "RejectAction",
    "SafetyCheck",
    "SuccessObservation",
    "TextObservation",
    "ThinkAction",
    "ToolCall",
    "action_from_dict",
    "observation_from_dict",
]
