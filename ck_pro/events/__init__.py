"""Actions and observations of agents, as typed values.

Every event converts to a dict and back (`to_dict`, `action_from_dict`, `observation_from_dict`).
The field `kind` names the type, and no other field selects it.
"""

from __future__ import annotations

from ck_pro.events.actions import (
    AddTaskAction,
    BrowserAction,
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
    COMPUTER_DEEDS,
    ComputerAction,
    ComputerDeed,
    ComputerObservation,
    Point,
    SafetyCheck,
)
from ck_pro.events.observations import (
    BrowserObservation,
    CodeObservation,
    ErrorObservation,
    SuccessObservation,
    ToolObservation,
)

__all__ = [
    "COMPUTER_DEEDS",
    "Action",
    "AddTaskAction",
    "BrowserAction",
    "BrowserObservation",
    "CmdKillAction",
    "CmdRunAction",
    "CodeAction",
    "CodeObservation",
    "ComputerAction",
    "ComputerDeed",
    "ComputerObservation",
    "ErrorObservation",
    "Event",
    "FileReadAction",
    "FileWriteAction",
    "FinishAction",
    "MessageAction",
    "ModifyTaskAction",
    "Observation",
    "Point",
    "RecallAction",
    "RejectAction",
    "SafetyCheck",
    "SuccessObservation",
    "ThinkAction",
    "ToolCall",
    "ToolObservation",
    "action_from_dict",
    "observation_from_dict",
]
