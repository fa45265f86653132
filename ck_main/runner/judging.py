"""The prompt about a try that failed, and the question of the next try with the advice.

`ck_main.scoring.judge` has the prompt that judges an answer, and `ck_pro.run.sampling` the one that
chooses among tries. Only the judge sees the right answer; it never reaches the advice for the next
try.
"""

from __future__ import annotations

from collections.abc import Sequence

from ck_pro.run.sampling import Messages, fenced_prompt, shortened
from ck_pro.session.observed import observation_text
from ck_pro.session.rows import Step

JUDGE, REFLECT = "tool:judge", "tool:reflect"
"""Phases of the model calls; sessions count them as `judge` and `reflect`."""

_ANSWER_CHARS = 4000
_STEP_CHARS = 600
_STEPS = 12


def reflect_messages(question: str, steps: Sequence[Step], ending: str) -> Messages:
    """Build the prompt that asks for advice for the next try.

    Args:
        question: the task.
        steps: steps of the failed try's session.
        ending: how the try ended.
    """
    rules = (
        "An agent that writes Python failed a task. It will try again, but remembers nothing. Find "
        "its mistake in its steps. Then advise the agent: what to do differently, which facts are "
        "certain, and what to check before it answers. Address the agent, in at most 150 words. Do "
        "not guess the answer."
    )
    return fenced_prompt(
        rules, [("Task", question), ("Steps", _format_steps(steps)), ("Result", ending)]
    )


def with_advice(question: str, failed: Sequence[tuple[str, str]]) -> str:
    """Build the question for the next try.

    Args:
        question: the task.
        failed: answer and advice of each earlier try.
    """
    if not any(advice for _, advice in failed):
        return question
    lines = ["", "", "Earlier tries at this task failed. Advice from each:"]
    for number, (answer, advice) in enumerate(failed, 1):
        gave = f"wrong answer: {shortened(answer, 200)!r}" if answer else "no answer"
        lines.append(f"{number}. ({gave}) {' '.join(advice.split())}".rstrip())  # on one line
    return question + "\n".join(lines)


def _format_steps(steps: Sequence[Step]) -> str:
    """Format the last steps of a session: thought, code and observation, each truncated."""
    lines = [f"({len(steps) - _STEPS} earlier steps omitted)"] if len(steps) > _STEPS else []
    for step in steps[-_STEPS:]:
        action = step["action"]
        parts = (action["thought"], action["code"], observation_text(action["observation"]))
        shown = "\n".join(shortened(p, _STEP_CHARS) for p in parts if p)
        lines.append(f"Step {step['step_idx']}:\n{shown}")
    return "\n".join(lines)[-_ANSWER_CHARS * 4 :]
