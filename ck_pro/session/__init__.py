"""`AgentSession`: the history of one agent on one task, built from journal events.

May import: `config`, `events`, `journal`, `run_context` and the rooms above them.
Other rooms use `AgentSession`, `Status`, `StopReason`, the goals and the progress state.
"""

from ck_pro.session.rows import PHASES
from ck_pro.session.session import AgentSession, sessions_from_events
from ck_pro.session.status import Status, StopReason

__all__ = ["PHASES", "AgentSession", "Status", "StopReason", "sessions_from_events"]
