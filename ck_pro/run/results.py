"""Results of actions and sub-agents, and their form in observations and in the journal."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from ck_pro.events.event_parts import FinalResults
from ck_pro.events.journal_events import CallOutcome
from ck_pro.exceptions import ParseError
from ck_pro.executor import CallLine, CodeResult
from ck_pro.session import AgentSession, Status
from ck_pro.session.folded_lines import fold
from ck_pro.session.observed import append_part

_TEXT_CHARS = 2000
_MAX_LINES = 30
_SHOWN_NAMES = 20
_RESULT_BYTES = 1 << 20
_SHORT_CHARS = _RESULT_BYTES // 16
"""Characters of a text whose JSON form is always within `_RESULT_BYTES`."""
_SCALARS = (int, bool, type(None))

NO_OUTPUT = "(The code ran and printed nothing. Print what you want to see.)"


class ActionResult(Mapping[str, Any]):
    """A result as a mapping with `output` and `log` (how the output was found).

    A model sees `str(result)`.
    """

    _keys: tuple[str, ...] = ("output", "log")

    def __init__(self, output: Any = "", log: Any = ""):
        self.output, self.log = output, log

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __str__(self) -> str:
        return f"{{'output': {self.output!r}, 'log': {self.log!r}}}"

    def __repr__(self) -> str:
        return str(self)

    def to_worker(self) -> dict[str, Any]:
        """Return the part of the result that model-written code gets."""
        return {k: self[k] for k in self._keys if k != "session"}


class AgentResult(ActionResult):
    """The result of a sub-agent, with its `task` and its `session`.

    If the sub-agent did not call `stop`, for example because it reached a limit, `variables` has
    the plain data of its code's variables.
    """

    _keys: tuple[str, ...] = ("output", "log", "task", "session")

    def __init__(
        self,
        output: Any = "",
        log: Any = "",
        task: str = "",
        session: AgentSession | None = None,
    ):
        super().__init__(output, log)
        self.task, self.session = task, session
        self.variables = session.variables if session is not None else {}
        if self.variables:
            self._keys = (*self._keys, "variables")

    @classmethod
    def of(cls, session: AgentSession) -> AgentResult:
        """Return the result of a session that has ended."""
        results = session.final_results or {"output": "", "log": ""}
        log = results["log"]
        if session.status is not Status.DONE:
            log = f"{log} [ended with status {session.status}: {session.message}]".strip()
        if session.variables:
            names = ", ".join([*session.variables][:_SHOWN_NAMES])
            log = f"{log} [result['variables'] has: {names}]".strip()
        return cls(results["output"], log, session.task, session)

    def reference(self) -> dict[str, Any]:
        """Return the result for an observation, with the id of the session."""
        sid = self.session.id if self.session is not None else None
        shown = {"output": self.output, "log": self.log, "task": self.task, "repr": str(self)}
        return {**shown, "session": sid}


def final_result(value: Any) -> FinalResults:
    """Return `output` and `log` of a final result, as texts.

    Raises:
        ParseError: `value` is not a mapping with an output.
    """
    if not isinstance(value, Mapping) or value.get("output") is None:
        raise ParseError("the end result must be a dict with 'output' and 'log'")
    return FinalResults(output=str(value["output"]), log=str(value.get("log") or ""))


def result_observation(result: Any) -> Any:
    """Return a value for an observation: a sub-agent's result by reference, else text."""
    return result.reference() if isinstance(result, AgentResult) else str(result)


def code_observation(result: CodeResult, note: str = "") -> Any:
    """Return the observation of a code action.

    Lines that functions added stand where they happened, unless the code printed them.

    Args:
        result: the result of the code.
        note: a note on the reply that contains the code; see `with_note`.

    Returns:
        Text; or the reference to a sub-agent's result, if the code printed only that; or a list of
        texts and references (see `ck_pro.session.observed`).
    """
    entries: list[Any] = []
    tail = _tail(result)
    for piece in _with_lines(result.pieces, tail):
        append_part(entries, result_observation(piece))
    if entries and isinstance(entries[-1], str):
        entries[-1] = entries[-1].rstrip("\n")
        if not entries[-1]:
            del entries[-1]
    if tail:
        append_part(entries, f"\n{tail}" if entries else tail)
    if not entries:
        return with_note(note, NO_OUTPUT)
    return with_note(note, entries[0] if len(entries) == 1 else entries)


def _with_lines(pieces: Sequence[Any], tail: str) -> list[Any]:
    """Return the pieces with the added lines as text, the last few, each on a separate line.

    Adjacent lines about similar actions are folded.
    """
    added = [piece for piece in pieces if isinstance(piece, CallLine)]
    if not added:
        return list(pieces)
    printed = "\n".join([*(p for p in pieces if type(p) is str), tail])
    omitted = len([line for line in added if line not in printed]) - _MAX_LINES
    placed: list[Any] = [f"({omitted} earlier actions omitted)\n"] if omitted > 0 else []
    for is_line, group in itertools.groupby(pieces, lambda piece: isinstance(piece, CallLine)):
        if not is_line:
            placed += group
            continue
        lines = [line for line in group if line not in printed]
        dropped, omitted = max(0, min(omitted, len(lines))), omitted - len(lines)
        for line in fold(lines[dropped:]):
            placed.append(f"{_line_break(placed)}{line}\n")
    return placed


def _line_break(pieces: Sequence[Any]) -> str:
    """Return the line break that a new line needs after these pieces."""
    return "" if not pieces or str(pieces[-1]).endswith("\n") else "\n"


def _tail(result: CodeResult) -> str:
    """Return the text below the printed output: last value, error, lost commands."""
    lines = []
    added = [repr(str(piece)) for piece in result.pieces if isinstance(piece, CallLine)]
    if result.output_cut:  # a prompt may cut the notice inside the output
        lines.append(f"({result.output_cut} bytes in the middle of the output are not kept.)")
    if result.value is not None and not result.ended_by and result.value not in added:
        lines.append(f"Last value: {result.value}")
    if result.error is not None:
        lines.append(result.error.traceback or f"{result.error.type}: {result.error.message}")
    if result.ended_by is not None and not result.output:
        lines.append(f"({result.ended_by} was called: the work on this task has ended.)")
    if result.commands_lost:  # the error itself reports the lost variables
        lines.append("All commands in the background have ended.")
    return "\n".join(lines)


def call_outcome(result: Any) -> CallOutcome:
    """Return the outcome of a call for the journal.

    The result itself is included if it is JSON data of limited size. That of a sub-agent is in its
    session.
    """
    outcome = CallOutcome(value=str(result)[:_TEXT_CHARS])
    if isinstance(result, AgentResult):
        return outcome
    if result.__class__ in _SCALARS or (isinstance(result, str) and len(result) <= _SHORT_CHARS):
        outcome["result"] = result
        return outcome
    try:
        text = json.dumps(result)
        if len(text) <= _RESULT_BYTES and json.loads(text) == result:
            outcome["result"] = result
    except (TypeError, ValueError, RecursionError):
        pass
    return outcome


def jsonable(value: Any) -> Any:
    """Return a copy of a value as JSON data; parts without a JSON form become text."""
    if value.__class__ in _SCALARS or value.__class__ is str:
        return value
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def with_note(note: str, observed: Any) -> Any:
    """Put a note on the reply above the observation that the reply led to; "" means no note."""
    if not note:
        return observed
    if isinstance(observed, list):
        parts: list[Any] = [f"{note}\n"]
        for entry in observed:
            append_part(parts, entry)
        return parts
    return f"{note}\n{observed}" if isinstance(observed, str) else [f"{note}\n", observed]
