"""What actions come back with: `ActionResult`, `AgentResult`, and the form observations have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ck_pro.events.journal_events import FinalResults
from ck_pro.exceptions import ParseError
from ck_pro.executor import CodeResult
from ck_pro.session import AgentSession, Status
from ck_pro.session.observed import append_piece

NO_OUTPUT = "(The code ran and printed nothing. Print what you want to see.)"


class ActionResult(Mapping[str, Any]):
    """A result as a mapping of `output` (what is wanted) and `log` (how it came about).

    `str(result)` is what a model reads of it.
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
        """What the model's code gets of it."""
        return {k: self[k] for k in self._keys if k != "session"}


class AgentResult(ActionResult):
    """What a sub-agent returns: also its `task` and its whole `session`."""

    _keys = ("output", "log", "task", "session")

    def __init__(
        self,
        output: Any = "",
        log: Any = "",
        task: str = "",
        session: AgentSession | None = None,
    ):
        super().__init__(output, log)
        self.task, self.session = task, session

    @classmethod
    def of(cls, session: AgentSession) -> AgentResult:
        """The result of a run that ended."""
        results = session.final_results or {"output": "", "log": ""}
        log = results["log"]
        if session.status is not Status.DONE:
            log = f"{log} [ended with status {session.status}: {session.message}]".strip()
        return cls(results["output"], log, session.task, session)

    def reference(self) -> dict[str, Any]:
        """The result as an observation keeps it: the session by its id."""
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


def result_value(result: Any) -> Any:
    """One returned value as an observation: a sub-agent's result by reference, else text."""
    return result.reference() if isinstance(result, AgentResult) else str(result)


def observed_value(result: CodeResult) -> Any:
    """What a code action showed, as the row's `observation`.

    Returns:
        Text; or the reference of ONE sub-agent's result, if that alone was printed; or a list of
        texts and such references, whose texts together are all that was printed (see
        `ck_pro.session.observed`).
    """
    entries: list[Any] = []
    for piece in result.pieces:
        append_piece(entries, result_value(piece))
    if entries and isinstance(entries[-1], str):
        entries[-1] = entries[-1].rstrip("\n")
        if not entries[-1]:
            del entries[-1]
    if tail := _tail(result):
        append_piece(entries, f"\n{tail}" if entries else tail)
    if not entries:
        return NO_OUTPUT
    return entries[0] if len(entries) == 1 else entries


def _tail(result: CodeResult) -> str:
    """What follows the printed output: the last value, the error, what is lost."""
    lines = []
    if result.output_cut:  # a prompt may cut the notice inside of the output with its middle
        lines.append(f"({result.output_cut} bytes in the middle of the output are not kept.)")
    if result.value is not None and not result.ended_by:
        lines.append(f"Last value: {result.value}")
    if result.error is not None:
        lines.append(result.error.traceback or f"{result.error.type}: {result.error.message}")
    if result.ended_by is not None and not result.output:
        lines.append(f"({result.ended_by} was called: the work on this task has ended.)")
    if result.commands_lost:  # the error says itself that the variables are
        lines.append("All commands in the background have ended.")
    return "\n".join(lines)


def with_note(note: str, observed: Any) -> Any:
    """Put a note on the reply above the observation that the reply led to; "" means no note."""
    if not note:
        return observed
    if isinstance(observed, list):
        pieces: list[Any] = [f"{note}\n"]
        for entry in observed:
            append_piece(pieces, entry)
        return pieces
    return f"{note}\n{observed}" if isinstance(observed, str) else [f"{note}\n", observed]
