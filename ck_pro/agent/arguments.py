"""The arguments of `MultiStepAgent.run` and `resume`: checks, and the session of a new run."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.journal import Journal
from ck_pro.model import Budget
from ck_pro.run.results import jsonable
from ck_pro.session import AgentSession
from ck_pro.session.memory import Memory

_MEMORY_CHARS = 120_000
"""Characters of earlier runs that a session keeps as its memory."""


def check_types(journal: Any, budget: Any) -> None:
    """Raise InputError if an argument is not a journal or a budget."""
    if not isinstance(journal, Journal | None):
        raise InputError(
            f"journal: {journal!r} is not a Journal; open one: `with Journal(FOLDER) as journal`"
        )
    if not isinstance(budget, Budget | None):
        raise InputError(
            f"budget: {budget!r} is not a Budget; give Budget(max_steps=..., max_money=...)"
        )


def check_extra_info(extra: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise InputError if a fact for `session.info` looks like a misspelled argument."""
    known = inspect.signature(function).parameters
    for name in extra:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if near:
            raise InputError(
                f"run(): unknown argument '{name}'; did you mean '{near[0]}'? "
                f"To pass a fact of that name, use info={{{name!r}: ...}}"
            )


def prepare_session(
    session: AgentSession | None,
    task: Any,
    agent: str,
    info: Mapping[str, Any],
    memory: Any = None,
) -> AgentSession:
    """Return the session of a new run.

    Args:
        session: a new session; created when None.
        task: the instruction.
        agent: name of the agent.
        info: facts for `session.info`.
        memory: sources of a `Memory`.

    Raises:
        InputError: the task is None, or the session is not new.
    """
    if task is None:
        raise InputError("the task is missing: give an instruction as text")
    session = session or AgentSession()
    if session.steps or session.run is not None:
        raise InputError("this session is not new: give a new one, or none")
    session.task, session.agent = str(task), agent
    session.info.update(jsonable(info))
    if memory is not None:
        sources = memory if isinstance(memory, list | tuple) else [memory]
        session.info["memory"] = Memory.of(*sources).latest(_MEMORY_CHARS)
    return session
