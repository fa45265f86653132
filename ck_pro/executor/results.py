"""The result of a step of code."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ck_pro.executor.worker.names import MAX_LINE, MAX_LINES, MAX_VALUES
from ck_pro.executor.worker.wire import WireError


@dataclass(frozen=True)
class CodeError:
    """The error of a step.

    Attributes:
        type: name of the exception's class. A step that was killed has "TimeoutError" (a time
            limit), "MemoryError", "OSError" (disk), "Cancelled", or "WorkerDied" (a crash,
            `os._exit`, a malformed frame).
        message: the text for the model.
        line: line number in the step's source, from 1; None if unknown.
        traceback: as Python prints it, without the executor's frames.
    """

    type: str
    message: str
    line: int | None = None
    traceback: str = ""

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line is not None else ""
        return f"{self.type}: {self.message}{where}"


class CallLine(str):
    """A line that a function of the parent added to the output; see `CallFlag.report`."""


@dataclass
class CodeResult:
    """The result of a step.

    Attributes:
        output: everything that the step wrote to standard output and standard error, in order.
            Long output has only its beginning and its end, with a notice between them.
        pieces: the output as a list of texts, objects and `CallLine`s. Where `print` printed an
            object with `to_worker` that a function returned, the object replaces its text.
        output_cut: number of omitted bytes.
        printed: one entry per printed argument in the output: such an object, or a text.
        value: `repr` of the last statement if it is an expression other than None; shortened.
        ended_by: name of the terminal function that ended the step, if any.
        ended_with: its arguments by name.
        error: the error, if any.
        duration: seconds of the code's own time.
        call_duration: seconds in which at least one function was running in the parent.
        state_lost: whether the worker was replaced; the next step starts without variables.
        commands_lost: whether background commands ended with the worker.
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
    """A return value that makes the worker run the call itself, inside the sandbox.

    The code gets the result of the worker's function with this name: one of `worker/workspace.py`,
    or one that a package from `CodeExecutor(packages=...)` defines.

    Attributes:
        name: of the worker's function.
        kwargs: its arguments, plain data.
        stays: whether it starts something that keeps running until the worker ends.
        package: folder of the package with the function; "" for one of the worker.
    """

    name: str
    kwargs: dict[str, Any]
    stays: bool = False
    package: str = ""

    def __str__(self) -> str:
        return "(done in the workspace)"


def read_done(
    message: list[Any], step: int, longest: int
) -> tuple[str | None, CodeError | None, bool]:
    """Check and read the message that ends a step.

    Args:
        message: `["done", step, value, error, threads_left]`.
        step: number of the running step.
        longest: maximum length of the value.

    Returns:
        The value, the error, and whether threads of the step are still running.

    Raises:
        WireError: the message is malformed, or belongs to another step.
    """
    if len(message) != 5 or type(message[1]) is not int or message[1] != step:
        raise WireError("the end of another step")
    _, _, value, error, threads_left = message
    if not (value is None or type(value) is str):
        raise WireError("a value that is not text")
    shown = None if value is None else clean_text(value[:longest])
    return shown, None if error is None else read_error(error), bool(threads_left)


def read_names(message: list[Any]) -> list[str]:
    """Check and read the description of names: `["names", number, lines]`.

    Raises:
        WireError: it is malformed.
    """
    lines = message[2] if len(message) == 3 else None
    if type(lines) is not list or not all(type(line) is str for line in lines):
        raise WireError("a malformed description of names")
    shown = [clean_text(" ".join(line.split())) for line in lines[: MAX_LINES + 1]]
    return [line[:MAX_LINE] for line in shown]


def read_values(message: list[Any]) -> dict[str, Any]:
    """Check and read the values of variables: `["values", number, json]`.

    Raises:
        WireError: it is malformed.
    """
    text = message[2] if len(message) == 3 else None
    if type(text) is not str or len(text) > MAX_VALUES:
        raise WireError("malformed values of variables")
    try:
        values = json.loads(text)
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise WireError("malformed values of variables") from None
    if not isinstance(values, dict):
        raise WireError("malformed values of variables")
    return values


def read_error(frame: Any) -> CodeError:
    """Check and read an error: `[type, message, line, traceback]`.

    Raises:
        WireError: it is malformed.
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
    """Escape the characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
