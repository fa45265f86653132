"""What a step of code gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ck_pro.executor.worker.wire import WireError


@dataclass(frozen=True)
class CodeError:
    """Why a step failed.

    Attributes:
        type: the exception's class name. Beside Python's own: "TimeoutError" (the step was killed
            by one of its limits of time), "MemoryError" (also when it was killed for it),
            "Cancelled" and "WorkerDied" (its process ended: a crash, `os._exit`, a bad frame).
        message: one text for the model.
        line: in the step's own source, from 1; None if there is none.
        traceback: as Python prints it, without the executor's own frames.
    """

    type: str
    message: str
    line: int | None = None
    traceback: str = ""

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line is not None else ""
        return f"{self.type}: {self.message}{where}"


@dataclass
class CodeResult:
    """What a step of code did.

    Attributes:
        output: everything printed, to descriptors 1 and 2 too, in order. Of long output the first
            and the last part, with a notice of the bytes that were cut in between.
        pieces: the same, in texts and objects: where `print` printed an object that a function of
            the parent returned (if it crossed by `to_worker`), that object replaces its text.
        output_cut: the bytes of output that were cut.
        printed: one entry per argument of `print` that is in the output: such an object, or the
            text of anything else.
        value: `repr` of the last statement, if that is an expression and not None; capped.
        ended_by: the terminal function that was called and accepted, if any.
        ended_with: its arguments, by name.
        error: what went wrong, if anything.
        duration: seconds of the code's own time.
        call_duration: seconds in which at least one function of the parent was at work.
        state_lost: the worker had to go; the next step begins without variables.
        commands_lost: commands that it had started in the background went with it.
    """

    output: str = ""
    pieces: list[Any] = field(default_factory=list)
    output_cut: int = 0
    printed: list[Any] = field(default_factory=list)
    value: str | None = None
    ended_by: str | None = None
    ended_with: dict[str, Any] | None = None
    error: CodeError | None = None
    duration: float = 0.0
    call_duration: float = 0.0
    state_lost: bool = False
    commands_lost: bool = False


@dataclass(frozen=True)
class LocalCall:
    """What a function gives back to have the worker do the call itself, inside the sandbox.

    The code gets what the worker's own function of that name gives (`worker/workspace.py`).

    Attributes:
        name: of that function.
        kwargs: its arguments, plain data.
        stays: it leaves something behind that ends with the worker.
    """

    name: str
    kwargs: dict[str, Any]
    stays: bool = False

    def __str__(self) -> str:
        return "(done in the workspace)"


def read_done(
    message: list[Any], step: int, longest: int
) -> tuple[str | None, CodeError | None, bool]:
    """Read the worker's word that a step has ended. It is hostile input.

    Args:
        message: `["done", step, value, error, threads_left]`.
        step: the step that runs.
        longest: characters of a value at most.

    Returns:
        The value, the error, and whether threads are left.

    Raises:
        WireError: it has another form, or another step.
    """
    if len(message) != 5 or type(message[1]) is not int or message[1] != step:
        raise WireError("the end of another step")
    _, _, value, error, threads_left = message
    if not (value is None or type(value) is str):
        raise WireError("a value that is not text")
    shown = None if value is None else clean_text(value[:longest])
    return shown, None if error is None else read_error(error), bool(threads_left)


def read_error(frame: Any) -> CodeError:
    """An error as the worker tells it: type, message, line, traceback. It is hostile input.

    Raises:
        WireError: it has another form.
    """
    if not (isinstance(frame, list) and len(frame) == 4):
        raise WireError("a malformed error")
    kind, message, line, trace = frame
    if not (type(kind) is type(message) is type(trace) is str):
        raise WireError("a malformed error")
    if line is not None and type(line) is not int:
        raise WireError("a malformed error")
    return CodeError(
        clean_text(kind[:200]), clean_text(message[:20_000]), line, clean_text(trace[:40_000])
    )


def clean_text(text: str) -> str:
    """Make a text one that can be written as UTF-8, whatever the code put into it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
