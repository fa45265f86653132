"""Short traces of the steps that the history of a prompt omits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ck_pro.language import fenced
from ck_pro.session.rows import Step

OMITTED = "(Earlier steps omitted.)"
_PARTS, _PART_CHARS, _MIN_CHARS = 3, 120, 20
_RESULT_CHARS = 200
_CODE_LINES = 2
_UNINFORMATIVE = re.compile(r"\s*(?:#|import\s|from\s+\S+\s+import\s|$)")


@dataclass(frozen=True)
class StepTrace:
    """What is left of a step: its thought, the first lines of its code, and its result."""

    number: int
    thought: str
    code: str
    result: str

    @classmethod
    def of(cls, step: Step, observation: str) -> StepTrace:
        """Return the trace of a finished step.

        Args:
            step: the step.
            observation: its observation as text.
        """
        action = step["action"]
        lines = [line for line in action["code"].splitlines() if not _UNINFORMATIVE.match(line)]
        result = observation
        if "error" in action:  # the last line of a traceback names the error
            result = observation.rstrip().rpartition("\n")[2]
        return cls(
            step["step_idx"],
            _one_line(action["thought"], _PART_CHARS),
            _one_line("; ".join(map(str.strip, lines[:_CODE_LINES])), _PART_CHARS),
            _one_line(result, _RESULT_CHARS),
        )

    def text(self, chars: int, same_code: bool = False) -> str:
        """Return the trace in up to three lines; the result uses what the other parts leave.

        Args:
            chars: characters of a part, on average.
            same_code: whether the code is that of the step before.
        """
        thought, code = _one_line(self.thought, chars), _one_line(self.code, chars)
        if same_code:
            code = ""
        parts = [f"Step {self.number}: {thought}{' (same code)' if same_code else ''}"]
        if code:
            parts.append(f"  code: {code}")
        left = _PARTS * chars - len(thought) - len(code)
        parts.append(f"  result: {_one_line(self.result, min(left, _RESULT_CHARS))}")
        return "\n".join(parts)


def trace_message(traces: Sequence[StepTrace], limit: int) -> str:
    """Return the text that replaces omitted steps in a prompt.

    Args:
        traces: of the omitted steps, oldest first.
        limit: maximum characters. The parts of each trace get shorter, then the oldest traces are
            left out.
    """
    share = limit // max(1, len(traces)) // _PARTS
    chars = min(_PART_CHARS, max(_MIN_CHARS, share))
    kept = traces[-max(1, limit // (_PARTS * _MIN_CHARS)) :]
    codes = ["", *(trace.code for trace in kept)]
    lines = [
        trace.text(chars, same_code=bool(trace.code) and trace.code == before)
        for trace, before in zip(kept, codes, strict=False)
    ]
    if len(kept) < len(traces):
        lines.insert(0, f"Steps 0 to {kept[0].number - 1}: omitted.")
    return f"{OMITTED} Their traces:\n{fenced(chr(10).join(lines))}"


def _one_line(text: str, limit: int) -> str:
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
